import type { Db, SqlValue } from '../db/db.ts'

/** SQL that carries a participant's people into the database of the next migration. */

/** Rows of one step. */
const PAGE_ROWS = 500

type Table = { name: string; key: string; columns: string[] }

const TABLES: Table[] = [
  {
    name: 'identity_providers',
    key: 'identity_provider_id',
    columns: ['identity_provider_id', 'is_deactivated', 'issuer', 'jwks_url', 'audience'],
  },
  {
    name: 'users',
    key: 'user_id',
    columns: [
      'user_id',
      'identity_provider_id',
      'primary_party',
      'is_deactivated',
      'primary_party_authentication',
      'resource_version',
      'annotations',
      'created_at',
    ],
  },
  {
    name: 'parties',
    key: 'party',
    columns: [
      'party',
      'identity_provider_id',
      'is_local',
      'resource_version',
      'annotations',
      'created_at',
    ],
  },
  {
    name: 'audit',
    key: 'audit_id',
    columns: [
      'audit_id',
      'at',
      'caller_user_id',
      'caller_identity_provider_id',
      'action',
      'subject_kind',
      'subject_id',
      'before_change',
      'after_change',
      'trace_id',
    ],
  },
]

/** Users with their rights, identity providers, parties, and the record of changes. */
export async function carryPeople(from: Db, tx: Db): Promise<void> {
  // The default provider, whose id is empty, is there from the start: keys begin after it.
  for (const table of TABLES) await copyTable(from, tx, table)
  const rights = { name: 'user_rights', columns: ['user_id', 'kind', 'party'] }
  for (let after = ''; ; ) {
    const users = await from.query<{ user_id: string }>(
      'select user_id from users where user_id > ? order by user_id limit ?',
      [after, PAGE_ROWS],
    )
    const last = users.at(-1)?.user_id
    if (last === undefined) return
    const rows = await from.query<Record<string, SqlValue>>(
      'select user_id, kind, party from user_rights where user_id > ? and user_id <= ?',
      [after, last],
    )
    await insertRows(tx, rights, rows)
    after = last
  }
}

/** The participant keeps its name and keys; only the migration is another. */
export async function carryParticipant(from: Db, tx: Db, migrationId: bigint): Promise<void> {
  const [row] = await from.query<Record<string, SqlValue>>(
    'select party_hint, node_identifier, fingerprint, synchronizer_id from participant',
  )
  if (row === undefined) throw new Error('The old database belongs to no participant.')
  await tx.execute(
    `insert into participant (id, migration_id, party_hint, node_identifier, fingerprint, synchronizer_id)
     values (1, ?, ?, ?, ?, ?)`,
    [
      migrationId,
      row.party_hint as string,
      row.node_identifier as string,
      row.fingerprint as string,
      row.synchronizer_id as string,
    ],
  )
}

/** The migration of a participant's database; undefined for a new one. */
export async function selectParticipantMigration(db: Db): Promise<bigint | undefined> {
  const [row] = await db.query<{ migration_id: number | bigint }>(
    'select migration_id from participant',
  )
  return row && BigInt(row.migration_id)
}

async function copyTable(from: Db, tx: Db, table: Table): Promise<void> {
  const { name, key, columns } = table
  for (let after: SqlValue = ''; ; ) {
    const rows: Record<string, SqlValue>[] = await from.query(
      `select ${columns.join(', ')} from ${name} where ${key} > ? order by ${key} limit ?`,
      [after, PAGE_ROWS],
    )
    await insertRows(tx, table, rows)
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE_ROWS) return
    after = last[key] as SqlValue
  }
}

async function insertRows(
  tx: Db,
  { name, columns }: { name: string; columns: string[] },
  rows: Record<string, SqlValue>[],
): Promise<void> {
  if (rows.length === 0) return
  await tx.executeMany(
    `insert into ${name} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
    rows.map((row) => columns.map((column) => row[column] as SqlValue)),
  )
}
