import type { Db } from '../db/db.ts'
import { DEFAULT_PROVIDER, type IdentityProvider } from './user.ts'

/**
 * SQL of identity providers. The default provider is a row too (the empty id, no issuer), so that a
 * user always refers to a provider that exists.
 *
 * Locks, on PostgreSQL: whoever puts a user or a party into a provider *holds* the provider's row,
 * and whoever deletes a provider *locks* it, so neither passes the other. Whoever writes providers
 * also locks the default provider's row against other such writers: issuers stay unique and the
 * count stays right. SQLite has one writer at a time and needs none of this.
 */
type ProviderRow = {
  identity_provider_id: string
  is_deactivated: number
  issuer: string
  jwks_url: string
  audience: string
}

const COLUMNS = 'identity_provider_id, is_deactivated, issuer, jwks_url, audience'

export const selectProvider = async (db: Db, id: string): Promise<IdentityProvider | undefined> => {
  const rows = await db.query<ProviderRow>(
    `select ${COLUMNS} from identity_providers where identity_provider_id = ? and issuer is not null`,
    [id],
  )
  return rows[0] && providerFromRow(rows[0])
}

export const selectProviderByIssuer = async (
  db: Db,
  issuer: string,
): Promise<IdentityProvider | undefined> => {
  const rows = await db.query<ProviderRow>(
    `select ${COLUMNS} from identity_providers where issuer = ?`,
    [issuer],
  )
  return rows[0] && providerFromRow(rows[0])
}

export const selectProviders = async (db: Db): Promise<IdentityProvider[]> => {
  const rows = await db.query<ProviderRow>(
    `select ${COLUMNS} from identity_providers where issuer is not null order by identity_provider_id`,
  )
  return rows.map(providerFromRow)
}

/** Whether the provider exists; if so, it stays until the transaction ends. */
export const holdProvider = async (tx: Db, id: string): Promise<boolean> => {
  const hold = tx.engine === 'postgres' ? ' for key share' : ''
  const rows = await tx.query(
    `select identity_provider_id from identity_providers where identity_provider_id = ?${hold}`,
    [id],
  )
  return rows.length === 1
}

/** Waits until no one else puts anything into the provider, and keeps them out. */
export const lockProvider = async (tx: Db, id: string): Promise<IdentityProvider | undefined> => {
  const lock = tx.engine === 'postgres' ? ' for update' : ''
  const rows = await tx.query<ProviderRow>(
    `select ${COLUMNS} from identity_providers where identity_provider_id = ? and issuer is not null${lock}`,
    [id],
  )
  return rows[0] && providerFromRow(rows[0])
}

/** One writer of providers at a time; users of the default provider are not held up. */
export const lockProviderWrites = async (tx: Db): Promise<void> => {
  if (tx.engine !== 'postgres') return
  await tx.query(
    'select identity_provider_id from identity_providers where identity_provider_id = ? for no key update',
    [DEFAULT_PROVIDER],
  )
}

export const insertProvider = async (tx: Db, provider: IdentityProvider): Promise<void> => {
  await tx.execute(`insert into identity_providers (${COLUMNS}) values (?, ?, ?, ?, ?)`, [
    provider.identityProviderId,
    Number(provider.isDeactivated),
    provider.issuer,
    provider.jwksUrl,
    provider.audience,
  ])
}

export const updateProviderRow = async (tx: Db, provider: IdentityProvider): Promise<void> => {
  await tx.execute(
    'update identity_providers set is_deactivated = ?, issuer = ?, jwks_url = ?, audience = ? where identity_provider_id = ?',
    [
      Number(provider.isDeactivated),
      provider.issuer,
      provider.jwksUrl,
      provider.audience,
      provider.identityProviderId,
    ],
  )
}

export const deleteProviderRow = async (tx: Db, id: string): Promise<void> => {
  await tx.execute('delete from identity_providers where identity_provider_id = ?', [id])
}

const providerFromRow = (row: ProviderRow): IdentityProvider => ({
  identityProviderId: row.identity_provider_id,
  isDeactivated: row.is_deactivated === 1,
  issuer: row.issuer,
  jwksUrl: row.jwks_url,
  audience: row.audience,
})
