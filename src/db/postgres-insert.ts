import type { SqlValue } from './db.ts'
import { numberPlaceholders } from './sql-text.ts'

// The protocol counts parameters in 16 bits.
const PARAMETERS_MAX = 65_535
// More rows in one statement gain nothing measurable, and the text of the statement grows with them.
const ROWS_MAX = 1_000
// A statement is held in memory three times: here, on its way, and in the server.
const BYTES_MAX = 8 * 1024 * 1024

export type Insert = { head: string; tuple: string; tail: string; columns: number }

/** The parts of `insert … values (?, …) …`; undefined for a statement that cannot take several rows. */
export function parseInsert(sql: string): Insert | undefined {
  const match =
    /^\s*(insert\s+into\s+[^'"?]+?\svalues\s*)(\(\s*\?(?:\s*,\s*\?)*\s*\))([^?]*)$/i.exec(sql)
  if (match === null) return undefined
  const [, head = '', tuple = '', tail = ''] = match
  // One statement may not update a row twice, while statements one after another may.
  if (/\bdo\s+update\b/i.test(tail)) return undefined
  return { head, tuple, tail, columns: numberPlaceholders(tuple).count }
}

/** The statement for so many rows, its placeholders numbered. */
export function insertRowsText({ head, tuple, tail }: Insert, rowCount: number): string {
  const tuples = Array.from({ length: rowCount }, () => tuple).join(',')
  return numberPlaceholders(head + tuples + tail).text
}

/** Rows in the groups that fit into one statement each. */
export function* groupRows(rows: SqlValue[][], columns: number): Generator<SqlValue[][]> {
  const rowsMax = Math.min(ROWS_MAX, Math.floor(PARAMETERS_MAX / columns))
  let group: SqlValue[][] = []
  let bytes = 0
  for (const row of rows) {
    const size = sizeOf(row)
    if (group.length > 0 && (group.length === rowsMax || bytes + size > BYTES_MAX)) {
      yield group
      group = []
      bytes = 0
    }
    group.push(row)
    bytes += size
  }
  if (group.length > 0) yield group
}

function sizeOf(row: SqlValue[]): number {
  let size = 0
  for (const value of row) {
    if (typeof value === 'string' || value instanceof Uint8Array) size += value.length
  }
  return size
}
