import { printPosition } from '../history/position.ts'
import { FaultError, verifyHistory } from '../history/verify.ts'
import { EXIT, printNumber, type Terminal } from './output.ts'
import { startProgress } from './progress.ts'
import { type OfflineTarget, openOfflineStore } from './store.ts'

/** `annals verify`: checks a stored history completely and reports the first fault. */
export async function runVerify(
  args: OfflineTarget & { json: boolean },
  terminal: Terminal,
): Promise<number> {
  await using store = await openOfflineStore({ ...args, create: false })
  const progress = startProgress(terminal, { json: args.json, name: 'verify' })
  try {
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
    if (!(error instanceof FaultError)) throw error
    if (args.json)
      terminal.stdout.write(`${JSON.stringify({ event: 'fault', message: error.message })}\n`)
    else terminal.stderr.write(`${error.message}\n`)
    return EXIT.failed
  }
}
