import { FRAME_UPDATES } from './frame.ts'
import type { History } from './history.ts'
import { importMigrations, readImportsByUpdate } from './imports-store.ts'
import { type EachUpdate, findOrdinal, readEach } from './pages.ts'
import { comparePositions, IMPORT_RECORD_TIME, justBefore, type Position } from './position.ts'
import { createTail } from './view.ts'

/** From `from` (included) to `to` (excluded); the whole history where they are left out. */
export type ExportRange = { from: Position | undefined; to: Position | undefined }

const NEWLINE = Buffer.from('\n')
const BOTH_FORMS = [
  Buffer.from('{"protobuf_json":'),
  Buffer.from(',"compact_json":'),
  Buffer.from('}\n'),
] as const

/**
 * The lines of an import file, in order. An update is printed in the lossless form, and in both
 * where the compact one does not follow from it, so that importing them yields the same bytes.
 */
export async function* exportLines(history: History, range: ExportRange): AsyncGenerator<Buffer> {
  const source = { cache: history.cache, view: history.view }
  const form = { version: 'export', encoding: 'protobuf_json' } as const
  const ordinalOf = (position: Position) =>
    findOrdinal(source, { ...form, after: justBefore(position) })
  const end = range.to === undefined ? source.view.updates : await ordinalOf(range.to)
  let next = range.from === undefined ? 0 : await ordinalOf(range.from)
  for (const migrationId of source.view.imports > 0 ? await importMigrations(history.db) : []) {
    if (!holdsImportsOf(migrationId, range)) continue
    const before = await ordinalOf({ migrationId, recordTime: IMPORT_RECORD_TIME })
    if (before > next) yield* ordinaryLines(source, next, before)
    next = Math.max(next, before)
    yield* importedLines(history, migrationId)
  }
  yield* ordinaryLines(source, next, end)
}

function holdsImportsOf(migrationId: bigint, { from, to }: ExportRange): boolean {
  const position = { migrationId, recordTime: IMPORT_RECORD_TIME }
  return (
    (from === undefined || comparePositions(position, from) >= 0) &&
    (to === undefined || comparePositions(position, to) < 0)
  )
}

type Source = Parameters<typeof readEach>[0]

async function* ordinaryLines(source: Source, from: number, to: number): AsyncGenerator<Buffer> {
  const compact = readEach(source, { version: 'export', encoding: 'compact_json' }, from, to)
  const lossless = readEach(source, { version: 'export', encoding: 'protobuf_json' }, from, to)
  for await (const updates of lossless) {
    const compactUpdates = (await compact.next()).value as EachUpdate[]
    yield Buffer.concat(
      updates.flatMap((update, i) =>
        printLine(
          update.bytes,
          (compactUpdates[i] as EachUpdate).bytes,
          update.index.derived[update.entry] === 1,
        ),
      ),
    )
  }
}

async function* importedLines(history: History, migrationId: bigint): AsyncGenerator<Buffer> {
  for (let after = ''; ; ) {
    const rows = await readImportsByUpdate(history.db, migrationId, after, FRAME_UPDATES)
    for (const row of rows) {
      const tail = createTail([row])
      const lossless = tail.bytes('export', 'protobuf_json').bytes
      const compact = tail.bytes('export', 'compact_json').bytes
      yield Buffer.concat(printLine(lossless, compact, tail.index.derived[0] === 1))
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < FRAME_UPDATES) return
    after = last.updateId
  }
}

function printLine(lossless: Buffer, compact: Buffer, isDerived: boolean): Buffer[] {
  if (isDerived) return [lossless, NEWLINE]
  const [start, between, end] = BOTH_FORMS
  return [start, lossless, between, compact, end]
}
