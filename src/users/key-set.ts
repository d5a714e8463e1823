import type { JSONWebKeySet } from 'jose'
import { importKeys, type Key, type KeyWanted, pickKey } from './verification-key.ts'

/**
 * The public keys of an identity provider.
 *
 * Keys are fetched when first needed and again, in the background, when they are old. While the
 * provider cannot be reached the known keys go on serving, for a day; with no known key nothing is
 * accepted. A key id that is not known causes one fetch, because providers rotate their keys; a
 * flood of invented key ids does not cause a flood of fetches.
 */
export type KeySet = {
  /** The key if it is among the known ones; the first calls wait for the first fetch. */
  known(want: KeyWanted): Promise<Key | undefined>
  /** As `known`, but an unknown key causes a fetch if none was caused lately. */
  find(want: KeyWanted): Promise<Key | undefined>
  /** Whether a key found before still belongs to the set. */
  holds(key: Key): boolean
  /** Why no token can be verified now, undefined when one can; fetches the keys if there are none. */
  fault(): Promise<string | undefined>
  /** Milliseconds since the keys were fetched; undefined for keys that are not, or not yet. */
  ageMs(): number | undefined
}

export type KeySetEvents = {
  onFetch?: (outcome: 'ok' | 'failed') => void
  log?: {
    info(record: object, message: string): void
    error(record: object, message: string): void
  }
}

export type RemoteKeySetOptions = KeySetEvents & {
  url: string
  fetch?: typeof globalThis.fetch
  now?: () => number
}

/** Key sets change rarely; five minutes is what deployed nodes use. */
export const KEYS_MAX_AGE_MS = 5 * 60_000
/** Long enough for an outage, short enough that a key revoked meanwhile does not live for ever. */
export const STALE_KEYS_MAX_AGE_MS = 24 * 60 * 60_000
/** After a failed fetch the provider gets this much rest. */
export const RETRY_AFTER_MS = 1000
/** The same unknown key id is looked for again after this time. */
export const UNKNOWN_KEY_REST_MS = 30_000
/** Unknown key ids may cause this many fetches at once, and one more in each of these times. */
const UNKNOWN_KEY_FETCHES_MAX = 3
const UNKNOWN_KEY_FETCH_EACH_MS = 10_000
/** Remembered unknown key ids; older ones are forgotten, the fetches stay bounded by the rule above. */
const UNKNOWN_KEYS_MAX = 100
/** A request waits for the first fetch, so it must end while the client still listens. */
const FETCH_TIMEOUT_MS = 5000
/** Real key sets have a few kilobytes. */
const KEY_SET_BYTES_MAX = 256 * 1024

export const createRemoteKeySet = (options: RemoteKeySetOptions): KeySet => {
  const now = options.now ?? Date.now
  const fetchKeys = options.fetch ?? globalThis.fetch
  const missed = new Map<string, number>()
  let keys: Key[] = []
  let fetchedAt = Number.NEGATIVE_INFINITY
  let failedAt = Number.NEGATIVE_INFINITY
  let failure = 'they were not fetched yet'
  let fetching: Promise<void> | undefined
  let allowance = UNKNOWN_KEY_FETCHES_MAX
  let allowanceAt = now()

  const load = async (): Promise<void> => {
    try {
      keys = await importKeys(await fetchJwks(fetchKeys, options.url), keys)
      if (failedAt > Number.NEGATIVE_INFINITY) {
        options.log?.info({ host: hostOf(options.url) }, 'key set can be fetched again')
      }
      fetchedAt = now()
      failedAt = Number.NEGATIVE_INFINITY
      options.onFetch?.('ok')
    } catch (error) {
      failure = reasonOf(error, options.url)
      if (failedAt === Number.NEGATIVE_INFINITY) {
        const record = {
          host: hostOf(options.url),
          knownKeys: keys.length,
          reason: failure,
        }
        options.log?.error(
          record,
          'key set cannot be fetched; tokens of unknown keys are refused until it can',
        )
      }
      failedAt = now()
      options.onFetch?.('failed')
    }
  }

  const refresh = (): Promise<void> => {
    fetching ??= load().finally(() => {
      fetching = undefined
    })
    return fetching
  }

  const mayFetch = (): boolean => now() - failedAt >= RETRY_AFTER_MS

  /** What may be served now; starts a fetch in the background when the keys are old. */
  const current = (): Key[] => {
    const age = now() - fetchedAt
    if (age >= KEYS_MAX_AGE_MS && mayFetch()) void refresh()
    return age >= STALE_KEYS_MAX_AGE_MS ? [] : keys
  }

  const known = async (want: KeyWanted): Promise<Key | undefined> => {
    // Only the very first fetch is waited for: a provider that hangs must not hold up the others.
    if (fetchedAt === failedAt) await refresh()
    return pickKey(current(), want)
  }

  /** Whether an unknown key id is worth a fetch now. */
  const spendFetch = (kid: string): boolean => {
    const last = missed.get(kid)
    if (last !== undefined && now() - last < UNKNOWN_KEY_REST_MS) return false
    const earned = (now() - allowanceAt) / UNKNOWN_KEY_FETCH_EACH_MS
    allowance = Math.min(UNKNOWN_KEY_FETCHES_MAX, allowance + earned)
    allowanceAt = now()
    if (allowance < 1) return false
    allowance -= 1
    missed.delete(kid)
    missed.set(kid, now())
    for (const oldest of missed.keys()) {
      if (missed.size <= UNKNOWN_KEYS_MAX) break
      missed.delete(oldest)
    }
    return true
  }

  return {
    known,
    async find(want) {
      const before = fetchedAt
      const key = await known(want)
      if (key !== undefined || before !== fetchedAt) return key
      // Whoever comes while a fetch is under way shares it.
      if (fetching !== undefined) await fetching
      else if (mayFetch() && spendFetch(want.kid ?? '')) await refresh()
      return pickKey(current(), want)
    },
    holds: (key) => current().includes(key),
    async fault() {
      const isFetched = () => now() - fetchedAt < STALE_KEYS_MAX_AGE_MS
      if (!isFetched() && mayFetch()) await refresh()
      if (current().length > 0) return undefined
      const host = hostOf(options.url)
      return isFetched()
        ? `The key set at ${host} has no key that this node can use; publish an RSA or EC key there.`
        : `The keys at ${host} are not known (${failure}); check that the key set URL answers from this node.`
    },
    ageMs: () => (Number.isFinite(fetchedAt) ? now() - fetchedAt : undefined),
  }
}

/** A key set that is known from the start and never changes. */
export const createLocalKeySet = async (jwks: JSONWebKeySet): Promise<KeySet> => {
  const keys = await importKeys(jwks.keys, [])
  const known = async (want: KeyWanted) => pickKey(keys, want)
  return {
    known,
    find: known,
    holds: (key) => keys.includes(key),
    fault: async () => undefined,
    ageMs: () => undefined,
  }
}

/** The host alone: a path or query may carry a secret. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : 'invalid URL')

/** What can be said of a failed fetch in a log; a message may quote the URL. */
const reasonOf = (error: unknown, url: string): string => {
  if (!(error instanceof Error)) return 'unknown'
  const { code } = (error.cause ?? error) as { code?: unknown }
  return typeof code === 'string' ? code : error.message.replaceAll(url, hostOf(url)).slice(0, 200)
}

const fetchJwks = async (fetchKeys: typeof globalThis.fetch, url: string): Promise<unknown[]> => {
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS)
  const response = await fetchKeys(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    redirect: 'manual',
    signal,
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the provider answered with status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > KEY_SET_BYTES_MAX) throw new Error(`the key set is above ${KEY_SET_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
  const list =
    typeof parsed === 'object' && parsed !== null ? (parsed as { keys?: unknown }).keys : []
  if (!Array.isArray(list)) throw new Error('the answer of the provider is not a key set')
  return list
}
