import { setTimeout as wait } from 'node:timers/promises'

/** The token with which the validator app comes to its participant. */
export type ServiceToken = {
  /** Undefined where authentication is off. Throws `NoServiceToken` while none can be had. */
  get(): Promise<string | undefined>
  /** Why there is none, if there is none; a provider that is away is no fault while the old one serves. */
  fault(): string | undefined
  close(): Promise<void>
}

/** Where a token comes from that lives for a while. */
export type TokenSource = (signal: AbortSignal) => Promise<{ token: string; lifetimeMs: number }>

/** There is no token at the moment; the sentence says why and is free of secrets. */
export class NoServiceToken extends Error {
  override name = 'NoServiceToken'
}

/** A token is replaced when this part of its life is over, while nobody waits for it. */
const RENEW_AFTER = 0.8
/** Providers count whole seconds, and a request takes its time. */
const SAFETY_MS = 1000
/** While the provider is away it is asked again after 1, 2, 4 … seconds, and at least every minute. */
const RETRY_MS = 1000
const RETRY_MS_MAX = 60_000
/** Callers who find no token make it be asked for at once, but not oftener than this. */
const ATTEMPT_INTERVAL_MS = 500
/** Deployed validators give a provider this long. */
const ATTEMPT_MS_MAX = 30_000
/** Timers of Node take no more; a token that lives longer is renewed all the same. */
const RENEWAL_MS_MAX = 24 * 60 * 60 * 1000

/** A token that never changes, or none at all. */
export function fixedToken(token: string | undefined): ServiceToken {
  return { get: async () => token, fault: () => undefined, close: async () => {} }
}

export type RenewedTokenOptions = {
  source: TokenSource
  now?: () => number
  onAttempt?(outcome: 'ok' | 'failed'): void
}

/**
 * A token that is renewed in the background, long before it expires. While the source is away the old
 * one serves until it expires; then callers are told, and whoever asks makes the source be asked again.
 */
export function openRenewedToken(options: RenewedTokenOptions): ServiceToken {
  const now = options.now ?? Date.now
  const stop = new AbortController()
  let held: { token: string; expiresAt: number; renewAt: number } | undefined
  let failure: string | undefined
  let failures = 0
  let attempt: Promise<void> | undefined
  let attemptedAt = Number.NEGATIVE_INFINITY

  const valid = () => (held !== undefined && held.expiresAt > now() ? held.token : undefined)

  function obtain(): Promise<void> {
    attempt ??= tryOnce().finally(() => {
      attempt = undefined
    })
    return attempt
  }

  async function tryOnce(): Promise<void> {
    attemptedAt = now()
    try {
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(ATTEMPT_MS_MAX)])
      const { token, lifetimeMs } = await options.source(signal)
      const livesMs = Math.max(0, lifetimeMs - SAFETY_MS)
      held = { token, expiresAt: now() + livesMs, renewAt: now() + livesMs * RENEW_AFTER }
      failure = undefined
      failures = 0
      options.onAttempt?.('ok')
    } catch (error) {
      if (stop.signal.aborted) return
      failure = (error as Error).message
      failures += 1
      options.onAttempt?.('failed')
    }
  }

  function pauseMs(): number {
    if (failures > 0) return Math.min(RETRY_MS * 2 ** (failures - 1), RETRY_MS_MAX)
    const untilRenewal = (held?.renewAt ?? 0) - now()
    return Math.min(Math.max(untilRenewal, ATTEMPT_INTERVAL_MS), RENEWAL_MS_MAX)
  }

  async function renewForEver(): Promise<void> {
    while (!stop.signal.aborted) {
      await obtain()
      await wait(pauseMs(), undefined, { signal: stop.signal }).catch(() => {})
    }
  }

  const renewing = renewForEver()
  return {
    async get() {
      const token = valid()
      if (token !== undefined) return token
      if (attempt !== undefined || now() - attemptedAt >= ATTEMPT_INTERVAL_MS) await obtain()
      const fresh = valid()
      if (fresh === undefined) throw new NoServiceToken(failure ?? 'The token has expired.')
      return fresh
    },
    fault: () => (valid() === undefined ? (failure ?? 'There is no token yet.') : undefined),
    async close() {
      stop.abort()
      await renewing
    },
  }
}
