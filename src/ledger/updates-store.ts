import assert from 'node:assert/strict'
import type { Db } from '../db/db.ts'
import { INSTANT_MIN, type Instant } from '../values/instant.ts'
import { insertsOf, type Statement } from './statements-store.ts'

/** SQL of the ledger's end and of its own updates. */

export type LedgerState = {
  lastOffset: bigint
  lastRecordTime: Instant
  nonce: string
  secondSynchronizerId: string | undefined
}

/** An update of the ledger with the command that made it. */
export type LedgerUpdate = {
  offset: bigint
  recordTime: Instant
  updateId: string
  /** The item of the history as JSON text. */
  item: string
  witnesses: Witnesses
  command: CommandMark
}

/** Who sees which event: for each event, in event order, the places of parties in the list. */
export type Witnesses = { parties: string[]; events: number[][] }

export type CommandMark = {
  /** Undefined where nothing is deduplicated. */
  changeId: string | undefined
  commandId: string
  userId: string
  actAs: string[]
  submissionId: string
}

export type LedgerIdentity = Pick<LedgerState, 'nonce' | 'secondSynchronizerId'>

export async function insertIdentity(db: Db, identity: LedgerIdentity): Promise<void> {
  await db.execute(
    `insert into ledger (id, nonce, second_synchronizer_id) values (1, ?, ?)
     on conflict (id) do nothing`,
    [identity.nonce, identity.secondSynchronizerId ?? null],
  )
}

export async function readState(db: Db): Promise<LedgerState> {
  const state = await findState(db)
  assert.ok(state !== undefined, 'the ledger has its one row')
  return state
}

/** Undefined when there is no ledger yet. */
export async function findState(db: Db): Promise<LedgerState | undefined> {
  const [row] = await db.query<{ nonce: string; second_synchronizer_id: string | null }>(
    'select nonce, second_synchronizer_id from ledger where id = 1',
  )
  if (row === undefined) return undefined
  const [last] = await db.query<{ ledger_offset: number | bigint; record_time: Instant }>(
    'select ledger_offset, record_time from ledger_updates order by ledger_offset desc limit 1',
  )
  return {
    lastOffset: BigInt(last?.ledger_offset ?? 0),
    lastRecordTime: last?.record_time ?? INSTANT_MIN,
    nonce: row.nonce,
    secondSynchronizerId: row.second_synchronizer_id ?? undefined,
  }
}

export async function setSecondSynchronizer(db: Db, id: string): Promise<void> {
  await db.execute(
    'update ledger set second_synchronizer_id = ? where id = 1 and second_synchronizer_id is null',
    [id],
  )
}

const COLUMNS = `ledger_offset, record_time, update_id, item, witnesses, change_id, command_id, user_id,
  act_as, submission_id`

export function insertUpdates(updates: LedgerUpdate[]): Statement[] {
  return insertsOf(
    'ledger_updates',
    COLUMNS,
    updates.map(({ command, ...update }) => [
      update.offset,
      update.recordTime,
      update.updateId,
      update.item,
      JSON.stringify(update.witnesses),
      command.changeId ?? null,
      command.commandId,
      command.userId,
      JSON.stringify(command.actAs),
      command.submissionId,
    ]),
  )
}

type UpdateRow = {
  ledger_offset: number | bigint
  record_time: Instant
  update_id: string
  item: string
  witnesses: string
  change_id: string | null
  command_id: string
  user_id: string
  act_as: string
  submission_id: string
}

export async function selectUpdatesAfter(
  db: Db,
  after: bigint,
  upTo: { offset: bigint; limit: number },
): Promise<LedgerUpdate[]> {
  const rows = await db.query<UpdateRow>(
    `select ${COLUMNS} from ledger_updates where ledger_offset > ? and ledger_offset <= ?
     order by ledger_offset limit ?`,
    [after, upTo.offset, upTo.limit],
  )
  return rows.map(updateFromRow)
}

/** The last offset with a record time up to the given one; 0 when there is none. */
export async function offsetAtTime(db: Db, recordTime: Instant): Promise<bigint> {
  const [bounds] = await db.query<{ first: number | bigint | null; last: number | bigint | null }>(
    'select min(ledger_offset) as first, max(ledger_offset) as last from ledger_updates',
  )
  let before = BigInt(bounds?.first ?? 1) - 1n
  let end = BigInt(bounds?.last ?? 0)
  // Record times rise with the offsets, so a search needs no index, which every commit would pay for.
  while (before < end) {
    const middle = (before + end + 1n) / 2n
    const [row] = await db.query<{ record_time: Instant }>(
      'select record_time from ledger_updates where ledger_offset = ?',
      [middle],
    )
    if (row !== undefined && row.record_time <= recordTime) before = middle
    else end = middle - 1n
  }
  return before
}

/** The newest accepted command with the same change id. */
export async function findCommand(
  db: Db,
  changeId: string,
): Promise<{ offset: bigint; recordTime: Instant; submissionId: string } | undefined> {
  const [row] = await db.query<{
    ledger_offset: number | bigint
    record_time: Instant
    submission_id: string
  }>(
    `select ledger_offset, record_time, submission_id from ledger_updates where change_id = ?
     order by ledger_offset desc limit 1`,
    [changeId],
  )
  return (
    row && {
      offset: BigInt(row.ledger_offset),
      recordTime: row.record_time,
      submissionId: row.submission_id,
    }
  )
}

function updateFromRow(row: UpdateRow): LedgerUpdate {
  return {
    offset: BigInt(row.ledger_offset),
    recordTime: row.record_time,
    updateId: row.update_id,
    item: row.item,
    witnesses: JSON.parse(row.witnesses) as Witnesses,
    command: {
      changeId: row.change_id ?? undefined,
      commandId: row.command_id,
      userId: row.user_id,
      actAs: JSON.parse(row.act_as) as string[],
      submissionId: row.submission_id,
    },
  }
}
