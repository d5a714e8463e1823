import type { Db, SqlValue } from '../db/db.ts'
import type { LogEntry, LogItem } from './log-entries.ts'
import type { OfferStatus } from './offer-status.ts'

/** SQL of wallets: who has one, where its log stands, the log, and requests that are carried out once. */

export type WalletUser = {
  userId: string
  party: string
  /** Whether the configuration names the user. */
  isConfigured: boolean
  /** Whether the node gave the user the right to act as the party. */
  isGranted: boolean
}

type UserRow = { user_id: string; party: string; is_configured: number; is_granted: number }

const USER_COLUMNS = 'user_id, party, is_configured, is_granted'

export async function selectWalletUser(db: Db, userId: string): Promise<WalletUser | undefined> {
  const [row] = await db.query<UserRow>(
    `select ${USER_COLUMNS} from wallet_user where user_id = ?`,
    [userId],
  )
  return row && userOf(row)
}

export async function selectWalletUsers(db: Db): Promise<WalletUser[]> {
  const rows = await db.query<UserRow>(`select ${USER_COLUMNS} from wallet_user order by user_id`)
  return rows.map(userOf)
}

export async function upsertWalletUser(db: Db, user: WalletUser): Promise<void> {
  await db.execute(
    `insert into wallet_user (${USER_COLUMNS}) values (?, ?, ?, ?)
     on conflict (user_id) do update set party = excluded.party,
       is_configured = excluded.is_configured, is_granted = excluded.is_granted`,
    [user.userId, user.party, user.isConfigured ? 1 : 0, user.isGranted ? 1 : 0],
  )
}

export async function deleteWalletUser(db: Db, userId: string): Promise<void> {
  await db.execute('delete from wallet_user where user_id = ?', [userId])
}

/** Where a log stands: offsets belong to one participant in one migration. */
export type LogPlace = { participantId: string; migrationId: bigint }

export async function selectFollowedOffset(
  db: Db,
  party: string,
  { participantId, migrationId }: LogPlace,
): Promise<bigint | undefined> {
  const [row] = await db.query<{ followed_offset: number | bigint }>(
    'select followed_offset from wallet_party where party = ? and participant_id = ? and migration_id = ?',
    [party, participantId, migrationId],
  )
  return row && BigInt(row.followed_offset)
}

/**
 * How far the log reaches of whoever is furthest behind: the operator and everyone who has a wallet now.
 * Undefined while nobody has a log.
 */
export async function selectLeastFollowed(
  db: Db,
  { participantId, migrationId }: LogPlace,
  operator: string,
): Promise<bigint | undefined> {
  const [row] = await db.query<{ least: number | bigint | null }>(
    `select min(followed_offset) as least from wallet_party
     where participant_id = ? and migration_id = ?
       and (party = ? or party in (select party from wallet_user))`,
    [participantId, migrationId, operator],
  )
  return row === undefined || row.least === null ? undefined : BigInt(row.least)
}

export type LogAppend = {
  place: LogPlace
  parties: readonly string[]
  entries: readonly LogEntry[]
  offers: readonly OfferStatus[]
  offset: bigint
}

/** Entries, what they say of offers, and how far the log now reaches: all or nothing. */
export async function appendLog(db: Db, append: LogAppend): Promise<void> {
  const { place, parties, entries, offers, offset } = append
  await db.transaction(async (tx) => {
    for (const [party, own] of Map.groupBy(entries, (entry) => entry.party)) {
      await insertEntries(tx, party, own)
    }
    for (const status of offers) await upsertOffer(tx, status)
    await tx.executeMany(
      `insert into wallet_party (party, participant_id, migration_id, followed_offset)
       values (?, ?, ?, ?)
       on conflict (party) do update set participant_id = excluded.participant_id,
         migration_id = excluded.migration_id, followed_offset = excluded.followed_offset`,
      parties.map((party) => [party, place.participantId, place.migrationId, offset]),
    )
  })
}

/** What is there already, because another participant told of the same update, stays as it is. */
async function insertEntries(tx: Db, party: string, entries: readonly LogEntry[]): Promise<void> {
  const [row] = await tx.query<{ last: number | bigint | null }>(
    'select max(sequence) as last from wallet_log where party = ?',
    [party],
  )
  let sequence = BigInt(row?.last ?? 0)
  const rows: SqlValue[][] = entries.map(({ eventId, commandId, recordTime, item }) => {
    sequence += 1n
    return [party, sequence, eventId, commandId, recordTime, JSON.stringify(item)]
  })
  await tx.executeMany(
    `insert into wallet_log (party, sequence, event_id, command_id, record_time, item)
     values (?, ?, ?, ?, ?, ?)
     on conflict (party, event_id) do nothing`,
    rows,
  )
}

async function upsertOffer(tx: Db, of: OfferStatus): Promise<void> {
  await tx.execute(
    `insert into wallet_offer (sender, tracking_id, status, update_id, contract_id, failure_kind, reason)
     values (?, ?, ?, ?, ?, ?, ?)
     on conflict (sender, tracking_id) do update set status = excluded.status,
       update_id = excluded.update_id, contract_id = excluded.contract_id,
       failure_kind = excluded.failure_kind, reason = excluded.reason`,
    [
      of.sender,
      of.trackingId,
      of.status,
      of.updateId,
      of.contractId,
      of.failureKind ?? null,
      of.reason ?? null,
    ],
  )
}

/** Newest first; those before the entry of an event when it is named. */
export async function selectLogPage(
  db: Db,
  page: { party: string; beforeSequence: bigint | undefined; limit: number },
): Promise<LogItem[]> {
  const { party, beforeSequence, limit } = page
  const rows =
    beforeSequence === undefined
      ? await db.query<{ item: string }>(
          'select item from wallet_log where party = ? order by sequence desc limit ?',
          [party, limit],
        )
      : await db.query<{ item: string }>(
          'select item from wallet_log where party = ? and sequence < ? order by sequence desc limit ?',
          [party, beforeSequence, limit],
        )
  return rows.map(({ item }) => JSON.parse(item) as LogItem)
}

export async function selectSequence(
  db: Db,
  { party, eventId }: { party: string; eventId: string },
): Promise<bigint | undefined> {
  const [row] = await db.query<{ sequence: number | bigint }>(
    'select sequence from wallet_log where party = ? and event_id = ?',
    [party, eventId],
  )
  return row && BigInt(row.sequence)
}

export async function selectOfferStatus(
  db: Db,
  { sender, trackingId }: { sender: string; trackingId: string },
): Promise<OfferStatus | undefined> {
  type Row = {
    status: OfferStatus['status']
    update_id: string
    contract_id: string
    failure_kind: NonNullable<OfferStatus['failureKind']> | null
    reason: string | null
  }
  const [row] = await db.query<Row>(
    `select status, update_id, contract_id, failure_kind, reason from wallet_offer
     where sender = ? and tracking_id = ?`,
    [sender, trackingId],
  )
  return (
    row && {
      sender,
      trackingId,
      status: row.status,
      updateId: row.update_id,
      contractId: row.contract_id,
      ...(row.failure_kind === null ? {} : { failureKind: row.failure_kind }),
      ...(row.reason === null ? {} : { reason: row.reason }),
    }
  )
}

/** The entry that a command of the wallet itself became. */
export async function selectEntryOfCommand(
  db: Db,
  { party, commandId }: { party: string; commandId: string },
): Promise<LogItem | undefined> {
  const [row] = await db.query<{ item: string }>(
    'select item from wallet_log where party = ? and command_id = ? order by sequence limit 1',
    [party, commandId],
  )
  return row && (JSON.parse(row.item) as LogItem)
}

export type RequestKey = { party: string; kind: string; trackingId: string }
export type StoredRequest = { content: string; answer: string | undefined }

/** Writes the request down unless one with its key is there; returns the one that is there now. */
export async function keepRequest(
  db: Db,
  { party, kind, trackingId }: RequestKey,
  content: string,
): Promise<StoredRequest & { isNew: boolean }> {
  const inserted = await db.execute(
    `insert into wallet_request (party, kind, tracking_id, content) values (?, ?, ?, ?)
     on conflict (party, kind, tracking_id) do nothing`,
    [party, kind, trackingId, content],
  )
  const stored = await selectRequest(db, { party, kind, trackingId })
  return { ...(stored ?? { content, answer: undefined }), isNew: inserted > 0 }
}

export async function selectRequest(
  db: Db,
  { party, kind, trackingId }: RequestKey,
): Promise<StoredRequest | undefined> {
  const [row] = await db.query<{ content: string; answer: string | null }>(
    'select content, answer from wallet_request where party = ? and kind = ? and tracking_id = ?',
    [party, kind, trackingId],
  )
  return row && { content: row.content, answer: row.answer ?? undefined }
}

export async function answerRequest(
  db: Db,
  { party, kind, trackingId }: RequestKey,
  { content, answer }: { content: string; answer: string },
): Promise<void> {
  await db.execute(
    `insert into wallet_request (party, kind, tracking_id, content, answer) values (?, ?, ?, ?, ?)
     on conflict (party, kind, tracking_id) do update set answer = excluded.answer`,
    [party, kind, trackingId, content, answer],
  )
}

/** The ledger has refused it for certain, so the tracking id is free again. */
export async function dropRequest(db: Db, { party, kind, trackingId }: RequestKey): Promise<void> {
  await db.execute(
    'delete from wallet_request where party = ? and kind = ? and tracking_id = ? and answer is null',
    [party, kind, trackingId],
  )
}

function userOf({ user_id, party, is_configured, is_granted }: UserRow): WalletUser {
  return {
    userId: user_id,
    party,
    isConfigured: is_configured === 1,
    isGranted: is_granted === 1,
  }
}
