import { printPosition } from '../history/position.ts'
import { FaultError, verifyHistory } from '../history/verify.ts'
import { DamagedHistoryError } from '../history/view.ts'
import type { ConfigurationArguments } from './configuration.ts'
import { type CliContext, EXIT, printNumber } from './output.ts'
import { startProgress } from './progress.ts'
import { openOfflineStore } from './store.ts'

/** `annals verify`: checks a stored history completely and reports the first fault. */
export async function runVerify(
  args: ConfigurationArguments & { json: boolean },
  context: CliContext,
): Promise<number> {
  const { terminal } = context
  const progress = startProgress(terminal, { json: args.json, name: 'verify' })
  try {
    await using store = await openOfflineStore(args, context, { create: false })
    const { checked, last } = await verifyHistory(store.history, {
      pool: store.pool,
      onProgress: ({ checked, total }) =>
        progress.report({ total, done: checked, updates: checked, note: 'checked' }),
    })
    progress.end()
    const end = last === undefined ? '' : ` up to ${printPosition(last)}`
    terminal.stdout.write(
      args.json
        ? `${JSON.stringify({ event: 'verified', updates: checked })}\n`
        : `The history is sound: ${printNumber(checked)} updates${end}.\n`,
    )
    return EXIT.ok
  } catch (error) {
    progress.end()
    if (!(error instanceof FaultError || error instanceof DamagedHistoryError)) throw error
    if (args.json)
      terminal.stdout.write(`${JSON.stringify({ event: 'fault', message: error.message })}\n`)
    else terminal.stderr.write(`${error.message}\n`)
    return EXIT.failed
  }
}
