import type { Db } from '../db/db.ts'
import type { Instant } from '../values/instant.ts'
import { consumedBy } from './item.ts'
import { inGroups } from './statements-store.ts'

/** SQL of pruning: its schedule, how far it has come, and what it removes. */

export type PruningSchedule = { cron: string; maxDurationMs: number; retentionMs: number }

/** Items read at a time to find out what they consumed. */
const ITEMS_PER_READ = 100

export async function selectSchedule(db: Db): Promise<PruningSchedule | undefined> {
  const [row] = await db.query<{ cron: string; max_duration_ms: number; retention_ms: number }>(
    'select cron, max_duration_ms, retention_ms from pruning_schedule where id = 1',
  )
  return (
    row && { cron: row.cron, maxDurationMs: row.max_duration_ms, retentionMs: row.retention_ms }
  )
}

export async function writeSchedule(db: Db, schedule: PruningSchedule): Promise<void> {
  await db.execute(
    `insert into pruning_schedule (id, cron, max_duration_ms, retention_ms) values (1, ?, ?, ?)
     on conflict (id) do update set cron = excluded.cron,
       max_duration_ms = excluded.max_duration_ms, retention_ms = excluded.retention_ms`,
    [schedule.cron, schedule.maxDurationMs, schedule.retentionMs],
  )
}

export async function clearSchedule(db: Db): Promise<void> {
  await db.execute('delete from pruning_schedule where id = 1')
}

/** Updates up to this offset are gone; 0 when none are. */
export async function selectPruned(db: Db): Promise<bigint> {
  const [row] = await db.query<{ pruned_offset: number | bigint }>(
    'select pruned_offset from ledger where id = 1',
  )
  return BigInt(row?.pruned_offset ?? 0)
}

/** The record time of the oldest update that is left. */
export async function selectOldest(db: Db): Promise<Instant | undefined> {
  const [row] = await db.query<{ record_time: Instant }>(
    'select record_time from ledger_updates order by ledger_offset limit 1',
  )
  return row?.record_time
}

/** Where the first contract set out that has not arrived yet; undefined when none is on its way. */
export async function selectFirstDeparture(db: Db): Promise<bigint | undefined> {
  // A departure whose offset was not noted holds everything back until it has arrived.
  const [row] = await db.query<{ first: number | bigint | null }>(
    `select min(coalesce(unassigned_offset, 1)) as first from reassignments
     where assigned_offset is null and coalesce(unassigned_offset, 1) > 0`,
  )
  return row === undefined || row.first === null ? undefined : BigInt(row.first)
}

/**
 * Removes the updates between two offsets and the contracts that they archived, in one transaction.
 * False when another process has pruned in the meantime: then nothing is done.
 */
export async function pruneBetween(db: Db, from: bigint, to: bigint): Promise<boolean> {
  const archived = await selectConsumed(db, from, to)
  return db.transaction(async (tx) => {
    const moved = await tx.execute(
      'update ledger set pruned_offset = ? where id = 1 and pruned_offset = ?',
      [to, from],
    )
    if (moved === 0) return false
    for (const some of inGroups(archived)) {
      await tx.execute(
        `delete from contracts where contract_id in (${some.map(() => '?').join(', ')})
         and archived_offset <= ?`,
        [...some, to],
      )
    }
    // The newest update is the ledger's end.
    await tx.execute(
      `delete from ledger_updates where ledger_offset <= ?
       and ledger_offset < (select max(ledger_offset) from ledger_updates)`,
      [to],
    )
    await tx.execute('delete from reassignments where assigned_offset <= ?', [to])
    return true
  })
}

/** Found through the updates themselves, so that contracts need no index by the offset of their end. */
async function selectConsumed(db: Db, from: bigint, to: bigint): Promise<string[]> {
  const consumed: string[] = []
  for (let after = from; after < to; ) {
    const rows = await db.query<{ ledger_offset: number | bigint; item: string }>(
      `select ledger_offset, item from ledger_updates
       where ledger_offset > ? and ledger_offset <= ? and refusal is null
       order by ledger_offset limit ?`,
      [after, to, ITEMS_PER_READ],
    )
    for (const { item } of rows) consumed.push(...consumedBy(item))
    after = BigInt(rows.at(-1)?.ledger_offset ?? to)
  }
  return [...new Set(consumed)]
}
