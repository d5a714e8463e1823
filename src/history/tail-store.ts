import type { Db } from '../db/db.ts'

/** An update of the tail: its index entry (frame.ts) and its bytes in both forms. */
export type TailRow = { entry: Uint8Array; compact: Uint8Array; protobuf: Uint8Array }

/** The rows with the ordinals from `from` (included) to `to` (excluded) that are still in the tail. */
export async function readTail(db: Db, from: number, to: number): Promise<TailRow[]> {
  return db.queryBinary<TailRow>(
    'select entry, compact, protobuf from tail where ordinal >= ? and ordinal < ? order by ordinal',
    [from, to],
  )
}

export async function insertTail(tx: Db, firstOrdinal: number, rows: TailRow[]): Promise<void> {
  await tx.executeMany(
    'insert into tail (ordinal, entry, compact, protobuf) values (?, ?, ?, ?)',
    rows.map((row, i) => [firstOrdinal + i, row.entry, row.compact, row.protobuf]),
  )
}

export async function deleteTailBefore(tx: Db, ordinal: number): Promise<void> {
  await tx.execute('delete from tail where ordinal < ?', [ordinal])
}
