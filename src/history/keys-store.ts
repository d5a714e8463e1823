import { createHash } from 'node:crypto'
import type { Db } from '../db/db.ts'

/** What an update can be found by. */
export type UpdateKey = { kind: 'id' | 'hash'; text: string }

/** 64 bits of a hash take a tenth of the space of the text; a rare collision costs one comparison. */
function keyNumber(key: UpdateKey): bigint {
  return createHash('sha256').update(`${key.kind}:${key.text}`).digest().readBigInt64BE(0)
}

export async function insertKeys(
  tx: Db,
  keys: { key: UpdateKey; ordinal: number }[],
): Promise<void> {
  await tx.executeMany(
    'insert into update_key (key, ordinal) values (?, ?)',
    keys.map(({ key, ordinal }) => [keyNumber(key), ordinal]),
  )
}

/** Ordinals of the updates that may have the key, oldest first. */
export async function findOrdinals(db: Db, key: UpdateKey): Promise<number[]> {
  const rows = await db.query<{ ordinal: number }>(
    'select ordinal from update_key where key = ? order by ordinal',
    [keyNumber(key)],
  )
  return rows.map((row) => row.ordinal)
}
