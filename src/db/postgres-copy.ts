import assert from 'node:assert/strict'
import type pg from 'pg'
import { readInteger } from './postgres-types.ts'

// The header of a binary copy: an 11-byte signature, four bytes of flags, a header extension.
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
const HEADER_LENGTH = 19
// Stands in place of the number of fields, and says that no row follows.
const TRAILER = -1
const NULL_LENGTH = -1

export type Column = { name: string; type: number }

type ReadField = (bytes: Buffer) => unknown

const fieldReaders = new Map<number, ReadField>([
  // A copy, because the driver fills its buffer again; it also keeps one row from holding a page.
  [17, (bytes) => new Uint8Array(bytes)],
  [20, (bytes) => readInteger(bytes.readBigInt64BE())],
  [21, (bytes) => bytes.readInt16BE()],
  [23, (bytes) => bytes.readInt32BE()],
  [25, (bytes) => bytes.toString('utf8')],
  [1043, (bytes) => bytes.toString('utf8')],
])

/** The part of the driver's connection that a copy uses, and the messages that come back. */
type CopyQuery = {
  submit(connection: { query(text: string): void }): void
  handleCopyData(message: { chunk: Buffer }): void
  handleCommandComplete(): void
  handleReadyForQuery(): void
  handleError(error: Error): void
}

/**
 * Runs `copy (…) to stdout (format binary)` and decodes its rows. This is the one way to binary
 * columns through `pg`: as a result they come as hexadecimal text, twice the bytes and thrice the
 * time, and its own binary mode reads them as UTF-8 and spoils them. The server sends each row as a
 * message of its own, which is decoded while it lies in the driver's buffer.
 */
export function copyRows(
  client: pg.ClientBase,
  { sql, columns }: { sql: string; columns: Column[] },
): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    const rows: unknown[] = []
    let failure: Error | undefined
    let started = false
    const query: CopyQuery = {
      submit: (connection) => connection.query(`copy (${sql}) to stdout (format binary)`),
      handleCopyData({ chunk }) {
        if (failure !== undefined) return
        try {
          const start = started ? 0 : skipHeader(chunk)
          started = true
          if (start === chunk.length || chunk.readInt16BE(start) === TRAILER) return
          rows.push(readRow(chunk.subarray(start), columns))
        } catch (error) {
          failure = error as Error
        }
      },
      handleCommandComplete() {},
      handleReadyForQuery: () => (failure === undefined ? resolve(rows) : reject(failure)),
      handleError: reject,
    }
    client.query(query as unknown as pg.Submittable)
  })
}

/** Columns that `copyRows` can decode; a programmer error otherwise. */
export function assertReadable(columns: Column[]): void {
  for (const { name, type } of columns) {
    assert(fieldReaders.has(type), `column ${name} is not an integer, a text or binary`)
  }
}

function skipHeader(chunk: Buffer): number {
  assert(chunk.subarray(0, SIGNATURE.length).equals(SIGNATURE), 'a binary copy has its signature')
  return HEADER_LENGTH + chunk.readInt32BE(HEADER_LENGTH - 4)
}

function readRow(bytes: Buffer, columns: Column[]): unknown {
  assert.equal(bytes.readInt16BE(0), columns.length, 'a row has the columns that were described')
  const row: Record<string, unknown> = {}
  let position = 2
  for (const { name, type } of columns) {
    const length = bytes.readInt32BE(position)
    position += 4
    if (length === NULL_LENGTH) {
      row[name] = null
      continue
    }
    const read = fieldReaders.get(type)
    assert(read !== undefined)
    row[name] = read(bytes.subarray(position, position + length))
    position += length
  }
  assert.equal(position, bytes.length, 'a row is read to its end')
  return row
}
