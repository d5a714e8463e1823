import type { Position } from '../history/position.ts'
import { compareWithNetwork, NotCompared } from '../mirror/compare.ts'
import type { ConfigurationArguments } from './configuration.ts'
import { type CliContext, CommandError, EXIT, printNumber } from './output.ts'
import { startProgress } from './progress.ts'
import { findScans } from './scans.ts'
import { openOfflineStore } from './store.ts'

export type VerifyAgainstArguments = ConfigurationArguments & {
  against: string[]
  from?: Position
  to?: Position
  discovery: boolean
  json: boolean
}

/** `annals verify --against`: compares a stored range with what a network says. */
export async function runVerifyAgainst(
  args: VerifyAgainstArguments,
  context: CliContext,
): Promise<number> {
  const { terminal } = context
  await using parts = new AsyncDisposableStack()
  const { peers, close } = await findScans(args.against, { isDiscovering: args.discovery })
  parts.defer(close)
  const { history, pool } = parts.use(await openOfflineStore(args, context, { create: false }))
  const progress = startProgress(terminal, { json: args.json, name: 'verify' })
  try {
    const { checked, difference } = await compareWithNetwork({
      history,
      peers,
      pool,
      from: args.from,
      to: args.to,
      onDissent: () => {},
      onProgress: ({ checked: done, total, agreeing }) =>
        progress.report({ total, done, updates: done, note: `${agreeing} scans agree` }),
    })
    progress.end()
    if (args.json) {
      const event = difference === undefined ? 'verified' : 'difference'
      terminal.stdout.write(
        `${JSON.stringify({ event, updates: checked, message: difference ?? null })}\n`,
      )
    } else if (difference === undefined) {
      terminal.stdout.write(
        `The network says the same: ${printNumber(checked)} updates compared.\n`,
      )
    } else {
      terminal.stderr.write(`${difference}\n`)
    }
    return difference === undefined ? EXIT.ok : EXIT.failed
  } catch (error) {
    progress.end()
    throw error instanceof NotCompared ? new CommandError(error.message) : error
  }
}
