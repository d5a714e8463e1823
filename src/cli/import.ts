import { openSqlite } from '../db/sqlite.ts'
import { importLines } from '../history/import.ts'
import { ImportError } from '../history/import-error.ts'
import { printPosition } from '../history/position.ts'
import { sortLines } from '../history/sort-store.ts'
import type { ConfigurationArguments } from './configuration.ts'
import { openInput } from './input.ts'
import { type CliContext, CommandError, EXIT, printBytes, printNumber } from './output.ts'
import { startProgress } from './progress.ts'
import { openOfflineStore } from './store.ts'

export type ImportArguments = {
  files: string[]
  sort: boolean
  json: boolean
} & ConfigurationArguments

/** `annals import`: appends the updates of NDJSON files to the history of a stopped node. */
export async function runImport(args: ImportArguments, context: CliContext): Promise<number> {
  const input = await openInput(args.files, process.stdin)
  const { terminal } = context
  await using store = await openOfflineStore(args, context, { create: true })
  const progress = startProgress(terminal, { json: args.json, name: 'import' })
  const source = args.sort
    ? sortLines(input.lines(), {
        directory: store.dataDirectory,
        openDb: (path) => openSqlite({ path }),
      })
    : input.lines()
  try {
    const result = await importLines(store.history, {
      source,
      pool: store.pool,
      onProgress: ({ stored, skipped }) =>
        progress.report({
          total: input.totalBytes,
          done: input.readBytes,
          updates: stored + skipped,
          note: printBytes(input.readBytes),
        }),
    })
    progress.end()
    const { stored, skipped } = result
    const last = store.history.view.last
    if (args.json) {
      const position = last && {
        migrationId: String(last.migrationId),
        recordTime: last.recordTime,
      }
      terminal.stdout.write(
        `${JSON.stringify({ event: 'imported', stored, skipped, last: position ?? null })}\n`,
      )
    } else {
      const already = skipped === 0 ? '' : ` ${printNumber(skipped)} were there already.`
      const end =
        last === undefined
          ? ' The history is empty.'
          : ` The history ends at ${printPosition(last)}.`
      terminal.stdout.write(`Stored ${printNumber(stored)} updates.${already}${end}\n`)
    }
    return EXIT.ok
  } catch (error) {
    progress.end()
    if (!(error instanceof ImportError)) throw error
    const place = args.sort ? `${error.message} (in sorted order)` : error.message
    const kept = `${printNumber(store.history.view.updates)} updates are stored; mend the input and run the same command again.`
    throw new CommandError(`${place}\n${kept}`)
  }
}
