import type { Db } from '../db/db.ts'
import { type Right, rightFromRow, rightNumber, type User } from './user.ts'

/** SQL of users and their rights. */
type UserRow = {
  user_id: string
  identity_provider_id: string
  primary_party: string
  is_deactivated: number
  primary_party_authentication: number
  resource_version: number | bigint
  annotations: string
}

const USER_COLUMNS =
  'user_id, identity_provider_id, primary_party, is_deactivated, primary_party_authentication, resource_version, annotations'

export const selectUser = async (db: Db, userId: string): Promise<User | undefined> => {
  const rows = await db.query<UserRow>(`select ${USER_COLUMNS} from users where user_id = ?`, [
    userId,
  ])
  return rows[0] && userFromRow(rows[0])
}

/**
 * Reads a user and keeps others from changing it until the transaction ends. SQLite has one writer
 * at a time and knows no row locks.
 */
export const lockUser = async (tx: Db, userId: string): Promise<User | undefined> => {
  const lock = tx.engine === 'postgres' ? ' for update' : ''
  const rows = await tx.query<UserRow>(
    `select ${USER_COLUMNS} from users where user_id = ?${lock}`,
    [userId],
  )
  return rows[0] && userFromRow(rows[0])
}

export const selectUsersPage = async (
  db: Db,
  page: { identityProviderId: string; afterUserId: string; limit: number },
): Promise<User[]> => {
  const rows = await db.query<UserRow>(
    `select ${USER_COLUMNS} from users where identity_provider_id = ? and user_id > ? order by user_id limit ?`,
    [page.identityProviderId, page.afterUserId, page.limit],
  )
  return rows.map(userFromRow)
}

/** Returns whether the id was free. */
export const insertUser = async (tx: Db, user: User & { createdAt: string }): Promise<boolean> => {
  const inserted = await tx.execute(
    `insert into users (${USER_COLUMNS}, created_at) values (?, ?, ?, ?, ?, 0, ?, ?) on conflict do nothing`,
    [
      user.id,
      user.identityProviderId,
      user.primaryParty,
      Number(user.isDeactivated),
      Number(user.primaryPartyAuthentication),
      JSON.stringify(user.metadata.annotations),
      user.createdAt,
    ],
  )
  return inserted === 1
}

/** Writes everything of a user that an update may change, and counts its version up. */
export const updateUserRow = async (tx: Db, user: User): Promise<void> => {
  await tx.execute(
    'update users set primary_party = ?, is_deactivated = ?, primary_party_authentication = ?, annotations = ?, resource_version = resource_version + 1 where user_id = ?',
    [
      user.primaryParty,
      Number(user.isDeactivated),
      Number(user.primaryPartyAuthentication),
      JSON.stringify(user.metadata.annotations),
      user.id,
    ],
  )
}

/** The move: one compare-and-set. Returns whether the user was in the source. */
export const moveUserRow = async (
  tx: Db,
  move: { userId: string; source: string; target: string },
): Promise<boolean> => {
  const moved = await tx.execute(
    'update users set identity_provider_id = ? where user_id = ? and identity_provider_id = ?',
    [move.target, move.userId, move.source],
  )
  return moved === 1
}

export const deleteUserRow = async (tx: Db, userId: string): Promise<void> => {
  await tx.execute('delete from users where user_id = ?', [userId])
}

export const countUsersOfProvider = async (db: Db, identityProviderId: string): Promise<number> => {
  const rows = await db.query<{ users: number }>(
    'select count(*) as users from users where identity_provider_id = ?',
    [identityProviderId],
  )
  return Number(rows[0]?.users ?? 0)
}

export const selectRights = async (db: Db, userId: string): Promise<Right[]> => {
  const rows = await db.query<{ kind: number; party: string }>(
    'select kind, party from user_rights where user_id = ? order by kind, party',
    [userId],
  )
  return rows.map(({ kind, party }) => rightFromRow(kind, party))
}

export const insertRights = async (tx: Db, userId: string, rights: Right[]): Promise<void> => {
  if (rights.length === 0) return
  await tx.executeMany(
    'insert into user_rights (user_id, kind, party) values (?, ?, ?)',
    rights.map(({ kind, party }) => [userId, rightNumber(kind), party]),
  )
}

export const deleteRights = async (tx: Db, userId: string, rights: Right[]): Promise<void> => {
  if (rights.length === 0) return
  await tx.executeMany(
    'delete from user_rights where user_id = ? and kind = ? and party = ?',
    rights.map(({ kind, party }) => [userId, rightNumber(kind), party]),
  )
}

/** What a request needs to know about its caller, in one row. */
export type CallerRow = {
  identity_provider_id: string
  is_deactivated: number
  provider_is_deactivated: number
  provider_issuer: string | null
  provider_jwks_url: string
  provider_audience: string
}

export const selectCaller = async (db: Db, userId: string): Promise<CallerRow | undefined> => {
  const rows = await db.query<CallerRow>(
    'select u.identity_provider_id, u.is_deactivated, p.is_deactivated as provider_is_deactivated, p.issuer as provider_issuer, p.jwks_url as provider_jwks_url, p.audience as provider_audience from users u join identity_providers p on p.identity_provider_id = u.identity_provider_id where u.user_id = ?',
    [userId],
  )
  return rows[0]
}

const userFromRow = (row: UserRow): User => ({
  id: row.user_id,
  primaryParty: row.primary_party,
  isDeactivated: row.is_deactivated === 1,
  metadata: {
    resourceVersion: String(row.resource_version),
    annotations: JSON.parse(row.annotations) as Record<string, string>,
  },
  identityProviderId: row.identity_provider_id,
  primaryPartyAuthentication: row.primary_party_authentication === 1,
})
