import type { Db } from '../db/db.ts'
import type { Encoding } from './encode.ts'
import type { SealedFrame } from './frame.ts'

export type DirectoryEntry = { number: number; migrationId: bigint; micros: bigint }
export type StoredFrame = {
  number: number
  entries: Uint8Array
  compact: Uint8Array
  protobuf?: Uint8Array
}

const COLUMNS: Record<Encoding, string> = {
  compact_json: 'compact',
  protobuf_json: 'compact, protobuf',
}

export async function insertFrames(
  tx: Db,
  frames: (SealedFrame & DirectoryEntry)[],
): Promise<void> {
  await tx.executeMany(
    'insert into frame (number, entries, compact, protobuf, checksum) values (?, ?, ?, ?, ?)',
    frames.map((f) => [f.number, f.index, f.compact, f.protobuf, f.checksum]),
  )
  await tx.executeMany(
    'insert into frame_directory (number, migration_id, micros) values (?, ?, ?)',
    frames.map((f) => [f.number, f.migrationId, f.micros]),
  )
}

/** What a form needs of the frames with numbers from `from` (included) to `to` (excluded), in order. */
export async function readFrames(
  db: Db,
  encoding: Encoding,
  from: number,
  to: number,
): Promise<StoredFrame[]> {
  return db.queryBinary<StoredFrame>(
    `select number, entries, ${COLUMNS[encoding]} from frame
     where number >= ? and number < ? order by number`,
    [from, to],
  )
}

/** A whole frame with its checksum, for `verify`. */
export async function readWholeFrame(
  db: Db,
  number: number,
): Promise<(SealedFrame & DirectoryEntry) | undefined> {
  const [row] = await db.queryBinary<
    Omit<SealedFrame, 'index'> & {
      number: number
      entries: Uint8Array
      migration_id: number | bigint
      micros: number | bigint
    }
  >(
    `select f.number, entries, compact, protobuf, checksum, migration_id, micros
     from frame f join frame_directory d on d.number = f.number where f.number = ?`,
    [number],
  )
  if (row === undefined) return undefined
  const { entries, migration_id: migrationId, micros, ...frame } = row
  return { ...frame, index: entries, migrationId: BigInt(migrationId), micros: BigInt(micros) }
}

/** A slice of the directory; a whole one of millions would hold the event loop. */
export async function readDirectory(
  db: Db,
  from: number,
  limit: number,
): Promise<DirectoryEntry[]> {
  const rows = await db.queryBinary<{
    number: number
    migration_id: number | bigint
    micros: number | bigint
  }>(
    'select number, migration_id, micros from frame_directory where number >= ? order by number limit ?',
    [from, limit],
  )
  return rows.map((row) => ({
    number: row.number,
    migrationId: BigInt(row.migration_id),
    micros: BigInt(row.micros),
  }))
}
