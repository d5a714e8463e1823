import type { Db } from '../db/db.ts'

/** SQL of the audit table. It is only ever added to: there is no function to change or delete. */
export type AuditRow = {
  audit_id: string
  at: string
  caller_user_id: string | null
  caller_identity_provider_id: string
  action: string
  subject_kind: string
  subject_id: string
  before_change: string | null
  after_change: string | null
  trace_id: string
}

const COLUMNS =
  'audit_id, at, caller_user_id, caller_identity_provider_id, action, subject_kind, subject_id, before_change, after_change, trace_id'
export const insertAudit = async (tx: Db, row: AuditRow): Promise<void> => {
  await tx.execute(`insert into audit (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, [
    row.audit_id,
    row.at,
    row.caller_user_id,
    row.caller_identity_provider_id,
    row.action,
    row.subject_kind,
    row.subject_id,
    row.before_change,
    row.after_change,
    row.trace_id,
  ])
}

/** Whether one of the newest entries of a subject has this trace id. */
export const isRecorded = async (
  db: Db,
  of: { subjectKind: string; subjectId: string; traceId: string; newest: number },
): Promise<boolean> => {
  const rows = await db.query<{ trace_id: string }>(
    'select trace_id from audit where subject_kind = ? and subject_id = ? order by audit_id desc limit ?',
    [of.subjectKind, of.subjectId, of.newest],
  )
  return rows.some(({ trace_id }) => trace_id === of.traceId)
}

/** Newest first. */
export const selectAuditPage = (
  db: Db,
  page: { beforeId: string; limit: number },
): Promise<AuditRow[]> =>
  db.query<AuditRow>(
    `select ${COLUMNS} from audit where audit_id < ? order by audit_id desc limit ?`,
    [page.beforeId, page.limit],
  )

/** Newest first, of one subject. */
export const selectAuditPageOf = (
  db: Db,
  page: { subjectKind: string; subjectId: string; beforeId: string; limit: number },
): Promise<AuditRow[]> =>
  db.query<AuditRow>(
    `select ${COLUMNS} from audit where subject_kind = ? and subject_id = ? and audit_id < ? order by audit_id desc limit ?`,
    [page.subjectKind, page.subjectId, page.beforeId, page.limit],
  )
