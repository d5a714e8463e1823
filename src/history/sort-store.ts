import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import type { Db, SqlValue } from '../db/db.ts'
import { readLinePosition } from './encode.ts'
import { ImportError } from './import-error.ts'
import { UpdateError } from './item-fields.ts'
import { splitLines } from './lines.ts'

/**
 * Lines of any number in the order of their positions. The lines are copied to a file and only
 * their positions sorted, by a small database beside it, so memory does not grow with the input.
 */
export async function* sortLines(
  source: AsyncIterable<Uint8Array>,
  options: { directory: string; openDb(path: string): Promise<Db> },
): AsyncGenerator<Buffer> {
  const folder = await mkdtemp(join(options.directory, 'sort-'))
  try {
    const db = await options.openDb(join(folder, 'positions.sqlite'))
    try {
      await db.execute(
        'create table line (migration_id integer, record_time text, update_id text, number integer, start integer, length integer)',
      )
      await copyLines(source, join(folder, 'lines.ndjson'), db)
      await db.execute(
        'create index line_order on line (migration_id, record_time, update_id, number)',
      )
      yield* readSorted(join(folder, 'lines.ndjson'), db)
    } finally {
      await db.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Lines looked up at a time. */
const SLICE = 1000
const NEWLINE = 10

async function copyLines(source: AsyncIterable<Uint8Array>, path: string, db: Db): Promise<void> {
  const file = createWriteStream(path)
  let start = 0
  for await (const block of splitLines(source)) {
    const bytes = Buffer.from(block.bytes.buffer)
    const rows: SqlValue[][] = []
    let number = block.firstLine
    for (let at = 0; at < bytes.length; number += 1) {
      const newline = bytes.indexOf(NEWLINE, at)
      const end = newline < 0 ? bytes.length : newline
      const text = bytes.toString('utf8', at, end).trim()
      if (text !== '') {
        const { migrationId, recordTime, updateId } = positionOf(text, number)
        rows.push([migrationId, recordTime, updateId, number, start + at, end - at])
      }
      at = end + 1
    }
    start += bytes.length
    if (!file.write(bytes)) await once(file, 'drain')
    await db.executeMany(
      'insert into line (migration_id, record_time, update_id, number, start, length) values (?, ?, ?, ?, ?, ?)',
      rows,
    )
  }
  file.end()
  await finished(file)
}

function positionOf(text: string, line: number) {
  try {
    return readLinePosition(text)
  } catch (error) {
    throw error instanceof UpdateError ? new ImportError(line, error.message) : error
  }
}

type LineRow = {
  migration_id: number | bigint
  record_time: string
  update_id: string
  number: number
  start: number
  length: number
}

async function* readSorted(path: string, db: Db): AsyncGenerator<Buffer> {
  const file = await open(path)
  try {
    let last: LineRow | undefined
    for (;;) {
      const rows: LineRow[] = await db.query<LineRow>(
        `select migration_id, record_time, update_id, number, start, length from line
         where (migration_id, record_time, update_id, number) > (?, ?, ?, ?)
         order by migration_id, record_time, update_id, number limit ?`,
        last === undefined
          ? [-(2n ** 63n), '', '', 0, SLICE]
          : [last.migration_id, last.record_time, last.update_id, last.number, SLICE],
      )
      for (const row of rows) {
        const line = Buffer.alloc(row.length + 1, NEWLINE)
        await file.read(line, 0, row.length, row.start)
        yield line
      }
      last = rows.at(-1)
      if (last === undefined || rows.length < SLICE) return
    }
  } finally {
    await file.close()
  }
}
