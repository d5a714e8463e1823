import { createHash, randomBytes } from 'node:crypto'
import type { Db } from '../db/db.ts'
import {
  type AuditRow,
  insertAudit,
  isRecorded,
  selectAuditPage,
  selectAuditPageOf,
} from './audit-store.ts'
import { invalidArgument } from './errors.ts'

/**
 * The record of every administrative change: who, from which provider, what, before, after, when
 * and in which trace. An entry is written in the transaction of its change, so there is never one
 * without the other. Tokens never come near it, and key set URLs lose their query string.
 */
export type Actor = { userId: string | undefined; identityProviderId: string; traceId: string }

export type AuditAction =
  | 'user.create'
  | 'user.update'
  | 'user.delete'
  | 'user.rights.grant'
  | 'user.rights.revoke'
  | 'user.identity-provider.move'
  | 'identity-provider.create'
  | 'identity-provider.update'
  | 'identity-provider.delete'
  | 'party.allocate'
  | 'party.update'
  | 'automation.act'

export type AuditSubject = { kind: 'user' | 'identity-provider' | 'party'; id: string }

export type AuditEntry = {
  id: string
  at: string
  caller: { userId: string | null; identityProviderId: string }
  action: string
  subject: { kind: string; id: string }
  before: unknown
  after: unknown
  traceId: string
}

export const AUDIT_PAGE_MAX = 1000

/** An act is recorded again only after a crash, when few others can have come between. */
const REPEATS_MAX = 100

/** Above every id: ids are hex digits. */
const AFTER_EVERY_ID = 'g'
const AUDIT_ID = /^[0-9a-f]{24}$/

export const recordChange = (
  tx: Db,
  actor: Actor,
  change: { action: AuditAction; subject: AuditSubject; before?: unknown; after?: unknown },
): Promise<void> =>
  insertAudit(tx, {
    audit_id: newAuditId(),
    at: timestamp(),
    caller_user_id: actor.userId ?? null,
    caller_identity_provider_id: actor.identityProviderId,
    action: change.action,
    subject_kind: change.subject.kind,
    subject_id: change.subject.id,
    before_change: change.before === undefined ? null : JSON.stringify(change.before),
    after_change: change.after === undefined ? null : JSON.stringify(change.after),
    trace_id: actor.traceId,
  })

/**
 * Records what an automation did with a party's wallet, once: the trace id follows from the act's
 * tracking id, and an entry that is there already is not written again.
 */
export const recordAct = (
  db: Db,
  act: { userId: string | undefined; party: string; trackingId: string; after: unknown },
): Promise<void> =>
  db.transaction(async (tx) => {
    const subject = { kind: 'party' as const, id: act.party }
    const traceId = createHash('sha256').update(act.trackingId).digest('hex').slice(0, 32)
    const of = { subjectKind: subject.kind, subjectId: subject.id, traceId, newest: REPEATS_MAX }
    if (await isRecorded(tx, of)) return
    const actor = { userId: act.userId, identityProviderId: '', traceId }
    await recordChange(tx, actor, { action: 'automation.act', subject, after: act.after })
  })

export type AuditPage = { entries: AuditEntry[]; nextPageToken: string }

/** A page of the record, newest first; of one subject when it is named. */
export const listAudit = async (
  db: Db,
  query: { subject?: AuditSubject; pageSize: number | undefined; pageToken: string },
): Promise<AuditPage> => {
  if (query.pageToken !== '' && !AUDIT_ID.test(query.pageToken)) {
    throw invalidArgument('Invalid page token')
  }
  const limit = Math.min(query.pageSize ?? AUDIT_PAGE_MAX, AUDIT_PAGE_MAX)
  const beforeId = query.pageToken === '' ? AFTER_EVERY_ID : query.pageToken
  const rows =
    query.subject === undefined
      ? await selectAuditPage(db, { beforeId, limit })
      : await selectAuditPageOf(db, {
          subjectKind: query.subject.kind,
          subjectId: query.subject.id,
          beforeId,
          limit,
        })
  const last = rows.at(-1)
  return {
    entries: rows.map(entryFromRow),
    nextPageToken: rows.length === limit && last !== undefined ? last.audit_id : '',
  }
}

/** The time as the store writes it. */
export const timestamp = (): string => new Date().toISOString().replace('Z', '000Z')

/** A URL as it may be recorded: a key set's address sometimes carries a secret in its query. */
export const withoutQuery = (url: string): string => url.replace(/[?#].*$/s, '?…')

/** Microseconds since 1970 in 16 hex digits, then chance: the order of ids is the order of time. */
const newAuditId = (): string => {
  const micros = Math.floor((performance.timeOrigin + performance.now()) * 1000)
  return micros.toString(16).padStart(16, '0') + randomBytes(4).toString('hex')
}

const entryFromRow = (row: AuditRow): AuditEntry => ({
  id: row.audit_id,
  at: row.at,
  caller: { userId: row.caller_user_id, identityProviderId: row.caller_identity_provider_id },
  action: row.action,
  subject: { kind: row.subject_kind, id: row.subject_id },
  before: row.before_change === null ? null : JSON.parse(row.before_change),
  after: row.after_change === null ? null : JSON.parse(row.after_change),
  traceId: row.trace_id,
})
