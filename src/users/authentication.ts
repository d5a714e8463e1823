import type { JSONWebKeySet } from 'jose'
import type { Db } from '../db/db.ts'
import { type Authentication, createAuthentication } from './caller.ts'
import { selectProviderByIssuer } from './idps-store.ts'
import { createLocalKeySet, createRemoteKeySet, type KeySet } from './key-set.ts'
import { createTokenVerifier, type TokenVerifier, type TokenVerifierOptions } from './token.ts'
import type { TokenTarget } from './token-claims.ts'

export type AuthenticationOptions = Pick<
  TokenVerifierOptions,
  'participantId' | 'leewaySeconds' | 'lifetimeMaxSeconds' | 'fetch' | 'events'
> & {
  db: Db
  /** Who signs the tokens of the default provider: a remote key set, or the node's own. */
  defaultProvider: ({ jwksUrl: string } | { keySet: JSONWebKeySet }) & TokenTarget
}

export type OpenAuthentication = Authentication & { defaultKeySet: KeySet }

/** How a node tells who asks: the default provider of its configuration, then those of its store. */
export const openAuthentication = async (
  options: AuthenticationOptions,
): Promise<OpenAuthentication> => {
  const { db, defaultProvider, ...rest } = options
  const keySet = await keySetOf(options)
  const verifier = createTokenVerifier({
    ...rest,
    defaultProvider: { ...defaultProvider, keySet },
    providerByIssuer: (issuer) => selectProviderByIssuer(db, issuer),
  })
  return { ...createAuthentication({ db, verifier }), defaultKeySet: keySet }
}

/** Tells whose token it is by the default provider alone, for an API whose users are kept elsewhere. */
export const openTokenVerifier = async (
  options: Omit<AuthenticationOptions, 'db'>,
): Promise<{ verifier: TokenVerifier; keySet: KeySet }> => {
  const { defaultProvider, ...rest } = options
  const keySet = await keySetOf(options)
  const verifier = createTokenVerifier({
    ...rest,
    defaultProvider: { ...defaultProvider, keySet },
    providerByIssuer: async () => undefined,
  })
  return { verifier, keySet }
}

const keySetOf = async (options: Omit<AuthenticationOptions, 'db'>): Promise<KeySet> => {
  const { defaultProvider, events, fetch } = options
  if ('keySet' in defaultProvider) return createLocalKeySet(defaultProvider.keySet)
  return createRemoteKeySet({
    url: defaultProvider.jwksUrl,
    ...(fetch && { fetch }),
    ...(events?.onKeySetFetch && { onFetch: events.onKeySetFetch }),
    ...(events?.log && { log: events.log }),
  })
}
