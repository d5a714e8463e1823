import assert from 'node:assert/strict'
import type { Db } from '../db/db.ts'
import type { Instant } from '../values/instant.ts'
import type { Position } from './position.ts'

/** Where a history ends. `updates` and `frames` leave import updates out. */
export type HistoryState = {
  updates: number
  frames: number
  imports: number
  lastOffset: bigint
  last: (Position & { updateId: string }) | undefined
}

type Row = {
  updates: number
  frames: number
  imports: number
  last_offset: number | bigint
  last_migration_id: number | bigint | null
  last_record_time: Instant | null
  last_update_id: string | null
}

export async function readState(db: Db): Promise<HistoryState> {
  const [row] = await db.query<Row>(
    `select updates, frames, imports, last_offset, last_migration_id, last_record_time, last_update_id
     from history where id = 1`,
  )
  assert.ok(row !== undefined, 'the history has its one row')
  const { last_migration_id: migrationId, last_record_time: recordTime } = row
  return {
    updates: row.updates,
    frames: row.frames,
    imports: row.imports,
    lastOffset: BigInt(row.last_offset),
    last:
      migrationId === null || recordTime === null
        ? undefined
        : { migrationId: BigInt(migrationId), recordTime, updateId: row.last_update_id ?? '' },
  }
}

/** Moves the end of the history; false when somebody else has moved it since `from` was read. */
export async function moveState(tx: Db, from: HistoryState, to: HistoryState): Promise<boolean> {
  const changed = await tx.execute(
    `update history set updates = ?, frames = ?, imports = ?, last_offset = ?,
       last_migration_id = ?, last_record_time = ?, last_update_id = ?
     where id = 1 and last_offset = ?`,
    [
      to.updates,
      to.frames,
      to.imports,
      to.lastOffset,
      to.last?.migrationId ?? null,
      to.last?.recordTime ?? null,
      to.last?.updateId ?? null,
      from.lastOffset,
    ],
  )
  return changed === 1
}

export type SynchronizerRange = {
  migrationId: bigint
  synchronizerId: string
  first: Instant
  last: Instant
}

/** Updates arrive in order, so the first time stays and the last one moves. */
export async function extendRanges(tx: Db, ranges: SynchronizerRange[]): Promise<void> {
  await tx.executeMany(
    `insert into synchronizer_range (migration_id, synchronizer_id, first_record_time, last_record_time)
     values (?, ?, ?, ?)
     on conflict (migration_id, synchronizer_id) do update set last_record_time = excluded.last_record_time`,
    ranges.map((range) => [range.migrationId, range.synchronizerId, range.first, range.last]),
  )
}

export async function readRanges(db: Db): Promise<SynchronizerRange[]> {
  const rows = await db.query<{
    migration_id: number | bigint
    synchronizer_id: string
    first_record_time: Instant
    last_record_time: Instant
  }>(
    `select migration_id, synchronizer_id, first_record_time, last_record_time
     from synchronizer_range order by migration_id, synchronizer_id`,
  )
  return rows.map((row) => ({
    migrationId: BigInt(row.migration_id),
    synchronizerId: row.synchronizer_id,
    first: row.first_record_time,
    last: row.last_record_time,
  }))
}
