import assert from 'node:assert/strict'
import type { Db, Statement } from '../db/db.ts'
import { INSTANT_MIN, type Instant } from '../values/instant.ts'
import { countActive } from './contracts-store.ts'
import { insertsOf } from './statements-store.ts'
import type { TrafficAccount } from './traffic-account.ts'

/** SQL of the ledger's end and of its own updates. */

export type LedgerState = {
  lastOffset: bigint
  lastRecordTime: Instant
  nonce: string
  secondSynchronizerId: string | undefined
  activeContracts: bigint
  /** The participant's traffic; undefined while no rules say what it costs. */
  traffic: TrafficAccount | undefined
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

/** A command that was refused: why, as a gRPC status. It changes nothing, but takes an offset. */
export type Refusal = {
  offset: bigint
  recordTime: Instant
  command: CommandMark
  status: { code: number; message: string }
}

/** What an offset of the ledger stands for. */
export type LedgerEntry = LedgerUpdate | Refusal

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

export type LedgerIdentity = Pick<LedgerState, 'nonce' | 'secondSynchronizerId' | 'traffic'>

export async function insertIdentity(db: Db, identity: LedgerIdentity): Promise<void> {
  await db.execute(
    `insert into ledger (id, nonce, second_synchronizer_id, ${TRAFFIC}) values (1, ?, ?, ?, ?, ?, ?)
     on conflict (id) do nothing`,
    [identity.nonce, identity.secondSynchronizerId ?? null, ...trafficValues(identity.traffic)],
  )
}

export async function readState(db: Db): Promise<LedgerState> {
  const state = await findState(db)
  assert.ok(state !== undefined, 'the ledger has its one row')
  return state
}

/** Undefined when there is no ledger yet. */
export async function findState(db: Db): Promise<LedgerState | undefined> {
  const [row] = await db.query<
    { nonce: string; second_synchronizer_id: string | null } & TrafficRow
  >(`select nonce, second_synchronizer_id, ${TRAFFIC} from ledger where id = 1`)
  if (row === undefined) return undefined
  const [last] = await db.query<
    {
      ledger_offset: number | bigint
      record_time: Instant
      active_contracts: number | bigint | null
    } & TrafficRow
  >(
    `select ledger_offset, record_time, active_contracts, ${TRAFFIC} from ledger_updates
     order by ledger_offset desc limit 1`,
  )
  return {
    lastOffset: BigInt(last?.ledger_offset ?? 0),
    lastRecordTime: last?.record_time ?? INSTANT_MIN,
    nonce: row.nonce,
    secondSynchronizerId: row.second_synchronizer_id ?? undefined,
    // Only a ledger without updates of its own, or with old ones alone, has to be counted.
    activeContracts: BigInt(last?.active_contracts ?? (await countActive(db))),
    traffic: trafficFromRow(last ?? row),
  }
}

export async function setSecondSynchronizer(db: Db, id: string): Promise<void> {
  await db.execute(
    'update ledger set second_synchronizer_id = ? where id = 1 and second_synchronizer_id is null',
    [id],
  )
}

const TRAFFIC = 'traffic_purchased, traffic_consumed, traffic_base, traffic_base_at'

type TrafficRow = {
  traffic_purchased: number | bigint | null
  traffic_consumed: number | bigint
  traffic_base: number | bigint
  traffic_base_at: number | bigint
}

function trafficValues(account: TrafficAccount | undefined): (bigint | null)[] {
  if (account === undefined) return [null, null, null, null]
  return [account.purchased, account.consumed, account.base, account.baseAt]
}

function trafficFromRow(row: TrafficRow): TrafficAccount | undefined {
  if (row.traffic_purchased === null) return undefined
  return {
    purchased: BigInt(row.traffic_purchased),
    consumed: BigInt(row.traffic_consumed),
    base: BigInt(row.traffic_base),
    baseAt: BigInt(row.traffic_base_at),
  }
}

const COLUMNS = `ledger_offset, record_time, update_id, item, witnesses, change_id, command_id, user_id,
  act_as, submission_id, refusal`

/** The last of them, which becomes the ledger's newest, also says how the ledger stands with it. */
export function insertEntries(entries: readonly LedgerEntry[], end: LedgerState): Statement[] {
  const rows = entries.map((entry) => [
    ...entryValues(entry),
    entry.offset === end.lastOffset ? end.activeContracts : null,
    ...trafficValues(entry.offset === end.lastOffset ? end.traffic : undefined),
  ])
  return insertsOf('ledger_updates', `${COLUMNS}, active_contracts, ${TRAFFIC}`, rows)
}

function entryValues(entry: LedgerEntry) {
  const { command, offset, recordTime } = entry
  const isRefusal = 'status' in entry
  return [
    offset,
    recordTime,
    isRefusal ? '' : entry.updateId,
    isRefusal ? '' : entry.item,
    isRefusal ? '' : JSON.stringify(entry.witnesses),
    // Only what was accepted makes a later command a repeated one.
    isRefusal ? null : (command.changeId ?? null),
    command.commandId,
    command.userId,
    JSON.stringify(command.actAs),
    command.submissionId,
    isRefusal ? JSON.stringify(entry.status) : null,
  ]
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
  refusal: string | null
}

type UpTo = { offset: bigint; limit: number }

export async function selectUpdatesAfter(
  db: Db,
  after: bigint,
  upTo: UpTo,
): Promise<LedgerUpdate[]> {
  const rows = await db.query<UpdateRow>(
    `select ${COLUMNS} from ledger_updates
     where ledger_offset > ? and ledger_offset <= ? and refusal is null
     order by ledger_offset limit ?`,
    [after, upTo.offset, upTo.limit],
  )
  return rows.map(updateFromRow)
}

/** Updates and refusals. */
export async function selectEntriesAfter(
  db: Db,
  after: bigint,
  upTo: UpTo,
): Promise<LedgerEntry[]> {
  const rows = await db.query<UpdateRow>(
    `select ${COLUMNS} from ledger_updates where ledger_offset > ? and ledger_offset <= ?
     order by ledger_offset limit ?`,
    [after, upTo.offset, upTo.limit],
  )
  return rows.map((row) => (row.refusal === null ? updateFromRow(row) : refusalFromRow(row)))
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
    command: commandFromRow(row),
  }
}

function refusalFromRow(row: UpdateRow): Refusal {
  return {
    offset: BigInt(row.ledger_offset),
    recordTime: row.record_time,
    command: commandFromRow(row),
    status: JSON.parse(row.refusal as string) as Refusal['status'],
  }
}

function commandFromRow(row: UpdateRow): CommandMark {
  return {
    changeId: row.change_id ?? undefined,
    commandId: row.command_id,
    userId: row.user_id,
    actAs: JSON.parse(row.act_as) as string[],
    submissionId: row.submission_id,
  }
}
