import { hash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose'
import { LedgerError } from '../http/ledger-error.ts'
import { unauthenticated } from './errors.ts'
import { createRemoteKeySet, type KeySet, type KeySetEvents } from './key-set.ts'
import { checkClaims, isExpired, type TokenClock, type TokenTarget } from './token-claims.ts'
import { DEFAULT_PROVIDER, type IdentityProvider, isStorableText } from './user.ts'
import type { Key, KeyWanted } from './verification-key.ts'

/**
 * Verification of bearer tokens.
 *
 * A token belongs to the default provider if that provider's keys and audience accept it, whatever
 * its `iss` says; otherwise to the active provider whose issuer is exactly its `iss`. A token is
 * accepted only with RS256, ES256 or ES512, the algorithm fixed by the kind of the key. All
 * refusals look alike to the client; the reason goes to the log.
 *
 * Verified tokens are remembered by their hash, so that a caller who comes often costs no signature
 * check. What may change while a token lives (its key, its provider) is kept with it and compared
 * by whoever uses it: here the key and the times, in caller.ts the provider and the user.
 */
export type VerifiedToken = {
  userId: string
  identityProviderId: string
  /** The provider as it was; undefined for the default one. */
  provider: IdentityProvider | undefined
  expiresAtSeconds: number | undefined
  keySet: KeySet
  key: Key
}

export type Verification = { verified: VerifiedToken; remembered: boolean }

export type TokenVerifierOptions = {
  /** Absent: only named providers are accepted. */
  defaultProvider?: { keySet: KeySet } & TokenTarget
  providerByIssuer: (issuer: string) => Promise<IdentityProvider | undefined>
  /** Tokens may name the participant that they are for. */
  participantId: string
  leewaySeconds?: number
  /** The longest remaining life of an acceptable token; tokens without `exp` are then refused. */
  lifetimeMaxSeconds?: number
  fetch?: typeof globalThis.fetch
  now?: () => number
  events?: TokenEvents
}

export type TokenEvents = {
  onTokenCheck?: (outcome: 'verified' | 'cached' | 'refused') => void
  onKeySetFetch?: (outcome: 'ok' | 'failed') => void
  log?: NonNullable<KeySetEvents['log']>
}

export type TokenVerifier = {
  /**
   * Throws the redacted 401 unless the token is good. A remembered token is the same object each
   * time; `fresh` leaves out what is remembered.
   */
  verify(token: string, options?: { fresh: boolean }): Promise<Verification>
}

/** What deployed nodes take at most. */
export const TOKEN_BYTES_MAX = 8192
/** About 5 MB when full; a hot caller has one token. */
const VERIFIED_TOKENS_MAX = 10_000
/** A node has at most 16 providers; this leaves room for changed addresses. */
const KEY_SETS_MAX = 64
const ISSUER_CHARACTERS_MAX = 2048
const ALGORITHMS = new Set(['RS256', 'ES256', 'ES512'])

export const createTokenVerifier = (options: TokenVerifierOptions): TokenVerifier => {
  const now = options.now ?? Date.now
  const verifiedTokens = new Map<string, VerifiedToken>()
  const keySets = new Map<string, KeySet>()

  const keySetOf = (url: string): KeySet => {
    const keySet =
      keySets.get(url) ??
      createRemoteKeySet({
        url,
        now,
        ...(options.fetch && { fetch: options.fetch }),
        ...(options.events?.onKeySetFetch && { onFetch: options.events.onKeySetFetch }),
        ...(options.events?.log && { log: options.events.log }),
      })
    remember(keySets, url, keySet, KEY_SETS_MAX)
    return keySet
  }

  const check = async (token: string, read: ReadToken): Promise<VerifiedToken> => {
    const attempt = async (by: Omit<VerifiedToken, 'userId' | 'expiresAtSeconds'>) => {
      const payload = await verifySignature(token, by.key, { now, ...options })
      const target = by.provider ?? options.defaultProvider ?? {}
      const { userId, expiresAtSeconds } = checkClaims(payload, target, { now, ...options })
      return { ...by, userId, expiresAtSeconds }
    }
    const reasons: string[] = []
    const byDefault = async (key: Key | undefined) => {
      const keySet = options.defaultProvider?.keySet
      if (keySet === undefined || key === undefined) return undefined
      return refusalAsReason(reasons, () =>
        attempt({ identityProviderId: DEFAULT_PROVIDER, provider: undefined, keySet, key }),
      )
    }
    // The default provider always needs a key id, and it comes first, but only with the keys that
    // it is known to have: the tokens of other providers shall not make it fetch.
    const keyWanted = read.wanted.kid === undefined ? undefined : read.wanted
    const knownKey = keyWanted && (await options.defaultProvider?.keySet.known(keyWanted))
    const first = await byDefault(knownKey)
    if (first !== undefined) return first

    const provider =
      read.issuer === undefined ? undefined : await options.providerByIssuer(read.issuer)
    if (provider !== undefined && !provider.isDeactivated) {
      const keySet = keySetOf(provider.jwksUrl)
      const key = await keySet.find(read.wanted)
      const { identityProviderId } = provider
      const second =
        key &&
        (await refusalAsReason(reasons, () =>
          attempt({ identityProviderId, provider, keySet, key }),
        ))
      if (second !== undefined) return second
    }

    const foundKey =
      keyWanted && knownKey === undefined
        ? await options.defaultProvider?.keySet.find(keyWanted)
        : undefined
    const third = await byDefault(foundKey)
    if (third !== undefined) return third
    throw unauthenticated(reasons.at(-1) ?? 'no provider has the key of the token')
  }

  const recall = (digest: string): VerifiedToken | undefined => {
    const verified = verifiedTokens.get(digest)
    if (verified === undefined) return undefined
    const expired = isExpired(verified.expiresAtSeconds, { now, ...options })
    if (!expired && verified.keySet.holds(verified.key)) {
      remember(verifiedTokens, digest, verified, VERIFIED_TOKENS_MAX)
      return verified
    }
    verifiedTokens.delete(digest)
    return undefined
  }

  const verify: TokenVerifier['verify'] = async (token, { fresh } = { fresh: false }) => {
    if (token.length > TOKEN_BYTES_MAX) throw unauthenticated('the token is too long')
    const digest = hash('sha256', token, 'base64')
    const recalled = fresh ? undefined : recall(digest)
    if (recalled !== undefined) {
      options.events?.onTokenCheck?.('cached')
      return { verified: recalled, remembered: true }
    }
    verifiedTokens.delete(digest)
    const verified = await check(token, readToken(token))
    remember(verifiedTokens, digest, verified, VERIFIED_TOKENS_MAX)
    options.events?.onTokenCheck?.('verified')
    return { verified, remembered: false }
  }

  return {
    async verify(token, choice) {
      try {
        return await verify(token, choice)
      } catch (error) {
        // A store that is away says nothing about the token.
        if (error instanceof LedgerError) options.events?.onTokenCheck?.('refused')
        throw error
      }
    },
  }
}

type ReadToken = { wanted: KeyWanted; issuer: string | undefined }

/** What a token says of itself, before anything of it is believed. */
const readToken = (token: string): ReadToken => {
  const { alg, kid, iss } = decodeToken(token)
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) {
    throw unauthenticated('the algorithm of the token is not accepted')
  }
  if (kid !== undefined && typeof kid !== 'string') {
    throw unauthenticated('the key id of the token is not a string')
  }
  const usable =
    typeof iss === 'string' && iss.length <= ISSUER_CHARACTERS_MAX && isStorableText(iss)
  return { wanted: { algorithm: alg, kid }, issuer: usable ? iss : undefined }
}

const decodeToken = (token: string): { alg: unknown; kid: unknown; iss: unknown } => {
  try {
    const { alg, kid } = decodeProtectedHeader(token)
    return { alg, kid, iss: decodeJwt(token).iss }
  } catch {
    throw unauthenticated('the token is not a JWT')
  }
}

const verifySignature = async (token: string, key: Key, clock: TokenClock): Promise<JWTPayload> => {
  try {
    const { payload } = await jwtVerify(token, key.publicKey, {
      algorithms: [key.algorithm],
      clockTolerance: clock.leewaySeconds ?? 0,
      currentDate: new Date(clock.now()),
    })
    return payload
  } catch (error) {
    const { code } = error as { code?: string }
    throw unauthenticated(`the token does not verify (${code ?? 'signature'})`)
  }
}

/** A refusal by one provider is a reason to try the next; a denial is final. */
const refusalAsReason = async <T>(
  reasons: string[],
  work: () => Promise<T>,
): Promise<T | undefined> => {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof LedgerError) || error.category !== 'unauthenticated') throw error
    reasons.push(String(error.detail))
    return undefined
  }
}

/** The newest entry is the last one of the map; the oldest go when there are too many. */
const remember = <V>(map: Map<string, V>, key: string, value: V, sizeMax: number): void => {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= sizeMax) return
    map.delete(oldest)
  }
}
