import type { Db } from '../db/db.ts'
import { type Actor, recordChange, withoutQuery } from './audit.ts'
import {
  invalidField,
  invalidProviderUpdate,
  issuerAlreadyExists,
  missingField,
  providerAlreadyExists,
  providerInUse,
  providerNotFound,
  tooManyProviders,
} from './errors.ts'
import {
  deleteProviderRow,
  insertProvider,
  lockProvider,
  lockProviderWrites,
  selectProvider,
  selectProviders,
  updateProviderRow,
} from './idps-store.ts'
import { countPartiesOfProvider } from './parties-store.ts'
import { checkMask } from './update-mask.ts'
import {
  IDENTITY_PROVIDERS_MAX,
  type IdentityProvider,
  isStorableText,
  providerIdFault,
} from './user.ts'
import { countUsersOfProvider } from './users-store.ts'

/** Long enough for any real issuer, audience or URL; an index entry must stay small. */
const TEXT_CHARACTERS_MAX = 2048

export const createProvider = async (
  db: Db,
  actor: Actor,
  provider: IdentityProvider,
): Promise<IdentityProvider> => {
  const id = requireProviderId(provider.identityProviderId)
  if (provider.jwksUrl === '') throw missingField('jwks_url')
  checkKeySetUrl(provider.jwksUrl)
  if (provider.issuer === '') throw missingField('issuer')
  checkText('issuer', provider.issuer)
  checkText('audience', provider.audience)
  const operation = 'creating identity provider config'
  return db.transaction(async (tx) => {
    await lockProviderWrites(tx)
    const existing = await selectProviders(tx)
    if (existing.some((other) => other.identityProviderId === id)) throw providerAlreadyExists(id)
    if (existing.some((other) => other.issuer === provider.issuer)) {
      throw issuerAlreadyExists(operation, provider.issuer)
    }
    if (existing.length >= IDENTITY_PROVIDERS_MAX) throw tooManyProviders(id)
    await insertProvider(tx, provider)
    await recordChange(tx, actor, {
      action: 'identity-provider.create',
      subject: subject(id),
      after: recorded(provider),
    })
    return provider
  })
}

export const getProvider = async (db: Db, id: string): Promise<IdentityProvider> => {
  const provider = await selectProvider(db, requireProviderId(id))
  if (provider === undefined) throw providerNotFound('getting identity provider config', id)
  return provider
}

export const listProviders = (db: Db): Promise<IdentityProvider[]> => selectProviders(db)

const UPDATE_PATHS = new Set([
  'is_deactivated',
  'jwks_url',
  'issuer',
  'audience',
  'identity_provider_id',
])

/** An empty issuer or key set URL changes nothing; an empty audience is cleared. */
export const updateProvider = async (
  db: Db,
  actor: Actor,
  { provider, mask }: { provider: IdentityProvider; mask: string[] | undefined },
): Promise<IdentityProvider> => {
  const id = requireProviderId(provider.identityProviderId)
  if (provider.jwksUrl !== '') checkKeySetUrl(provider.jwksUrl)
  checkText('issuer', provider.issuer)
  checkText('audience', provider.audience)
  if (mask === undefined) throw missingField('update_mask')
  checkMask(mask, UPDATE_PATHS, (reason) => invalidProviderUpdate(id, reason))
  const operation = 'updating identity provider config'
  return db.transaction(async (tx) => {
    await lockProviderWrites(tx)
    const existing = await selectProviders(tx)
    const before = existing.find((other) => other.identityProviderId === id)
    if (before === undefined) throw providerNotFound(operation, id)
    const after: IdentityProvider = {
      identityProviderId: id,
      isDeactivated: mask.includes('is_deactivated')
        ? provider.isDeactivated
        : before.isDeactivated,
      issuer: (mask.includes('issuer') && provider.issuer) || before.issuer,
      jwksUrl: (mask.includes('jwks_url') && provider.jwksUrl) || before.jwksUrl,
      audience: mask.includes('audience') ? provider.audience : before.audience,
    }
    if (existing.some((other) => other !== before && other.issuer === after.issuer)) {
      throw issuerAlreadyExists(operation, after.issuer)
    }
    await updateProviderRow(tx, after)
    await recordChange(tx, actor, {
      action: 'identity-provider.update',
      subject: subject(id),
      before: recorded(before),
      after: recorded(after),
    })
    return after
  })
}

/** A provider that still has users or parties stays: they would belong to nobody. */
export const deleteProvider = async (db: Db, actor: Actor, id: string): Promise<void> => {
  requireProviderId(id)
  await db.transaction(async (tx) => {
    await lockProviderWrites(tx)
    const before = await lockProvider(tx, id)
    if (before === undefined) throw providerNotFound('deleting identity provider config', id)
    const users = await countUsersOfProvider(tx, id)
    const parties = await countPartiesOfProvider(tx, id)
    if (users + parties > 0) throw providerInUse(id, { users, parties })
    await deleteProviderRow(tx, id)
    await recordChange(tx, actor, {
      action: 'identity-provider.delete',
      subject: subject(id),
      before: recorded(before),
    })
  })
}

const requireProviderId = (id: string): string => {
  if (id === '') throw missingField('identity_provider_id')
  const fault = providerIdFault(id)
  if (fault !== undefined) throw invalidField('identity_provider_id', fault)
  return id
}

const checkKeySetUrl = (url: string): void => {
  checkText('jwks_url', url)
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !['http:', 'https:'].includes(parsed.protocol)) {
    throw invalidField('jwks_url', 'it must be an absolute URL with http or https')
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw invalidField('jwks_url', 'it must not carry a user name or password')
  }
}

const checkText = (field: string, text: string): void => {
  if (text.length > TEXT_CHARACTERS_MAX) {
    throw invalidField(field, `it has at most ${TEXT_CHARACTERS_MAX} characters`)
  }
  if (!isStorableText(text)) {
    throw invalidField(field, 'it has a character that is not Unicode text')
  }
}

const recorded = (provider: IdentityProvider) => ({
  ...provider,
  jwksUrl: withoutQuery(provider.jwksUrl),
})

const subject = (id: string) => ({ kind: 'identity-provider' as const, id })
