import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Db } from '../db/db.ts'
import { isOnboarded, noteOnboarded } from './onboarding-store.ts'
import {
  type Application,
  OnboardingError,
  SponsorAway,
  type SponsorClient,
} from './sponsor-client.ts'

/**
 * The joining validator's side. At the first start the node presents itself to its sponsor, and
 * notes the answer in the app database; later starts find the note and ask nobody. A crash between
 * the answer and the note makes the node ask again, with the same party and the same secret, which
 * the sponsor answers as before.
 *
 * A refusal ends the start. A sponsor that is away does not hold up the rest of the node: it is
 * asked again in the background, and readiness says so, until it answers or the attempts are used up.
 */
export type Joining = {
  /** Resolves when the node has joined or the sponsor is away for now; rejects with a refusal. */
  firstAnswer: Promise<void>
  /** Resolves with what ended it: undefined when the node has joined. */
  ended: Promise<Error | undefined>
  /** What readiness says while the node has not joined. */
  failure(): string | undefined
  close(): Promise<void>
}

export const ATTEMPT_OUTCOMES = ['joined', 'away', 'refused', 'failed'] as const
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number]

export type JoiningOptions = {
  db: Db
  sponsor: SponsorClient
  sponsorUrl: string
  application: Application
  /** Undefined on a development network, and once the node is onboarded. */
  secret: string | undefined
  /** Whether the sponsor gives a secret to anyone who asks. */
  isDevNet: boolean
  log: Logger
  onAttempt?: (outcome: AttemptOutcome) => void
  /** Waits between two attempts; tests do not. */
  pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/**
 * From a fifth of a second to five: about ten minutes in all, as on the deployed network, and two
 * hours with a sponsor that asks for the longest pause each time.
 */
const ATTEMPTS_MAX = 120
const PAUSE_MS_MIN = 200
const PAUSE_MS_MAX = 5_000

export function startJoining(options: JoiningOptions): Joining {
  const { log, pause = (ms, signal) => wait(ms, undefined, { signal }) } = options
  const stop = new AbortController()
  const first = Promise.withResolvers<void>()
  let reason: string | undefined = 'The node has not presented itself to its sponsor yet.'
  // A secret of the self-service is kept for the next attempt: the answer to this one may be lost.
  const given = { secret: options.secret }

  async function join(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await present(options, given, stop.signal)
      } catch (error) {
        if (!stop.signal.aborted) options.onAttempt?.(outcomeOf(error))
        if (!(error instanceof SponsorAway)) throw error
        if (attempt >= ATTEMPTS_MAX) throw exhausted(options, error)
        const backOffMs = Math.min(PAUSE_MS_MIN * 2 ** (attempt - 1), PAUSE_MS_MAX)
        const pauseMs = Math.max(backOffMs, error.retryAfterMs)
        reason = `The node has not joined its network: ${error.message} It asked ${attempt} times and will ask again.`
        log.warn(
          { attempt, attemptsMax: ATTEMPTS_MAX, pauseMs, reason: error.message },
          'the sponsor is away; the node asks again',
        )
        first.resolve()
        await pause(pauseMs, stop.signal)
      }
    }
  }

  const ended = join().then(
    () => {
      reason = undefined
      first.resolve()
      return undefined
    },
    (error: Error) => {
      if (stop.signal.aborted) {
        first.resolve()
        return undefined
      }
      reason = error.message
      first.reject(error)
      return error
    },
  )
  return {
    firstAnswer: first.promise,
    ended,
    failure: () => reason,
    async close() {
      stop.abort()
      await ended
    },
  }
}

async function present(
  options: JoiningOptions,
  given: { secret: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { db, sponsor, sponsorUrl, application, log } = options
  const { partyId: party } = application
  if (await isOnboarded(db, party)) return
  if (given.secret === undefined && !options.isDevNet) throw noSecret(options)
  const sponsorVersion = await sponsor.version(signal)
  given.secret ??= await sponsor.devNetSecret(signal)
  await sponsor.apply(application, given.secret, signal)
  await noteOnboarded(db, { party, sponsorUrl, onboardedAt: new Date().toISOString() })
  options.onAttempt?.('joined')
  log.info({ party, sponsorUrl, sponsorVersion }, 'onboarded; ONBOARDING_SECRET is needed no more')
}

function outcomeOf(error: unknown): AttemptOutcome {
  if (error instanceof SponsorAway) return 'away'
  return error instanceof OnboardingError ? 'refused' : 'failed'
}

function noSecret({ sponsorUrl, application }: JoiningOptions): OnboardingError {
  return new OnboardingError(
    `This node is not onboarded yet, and ONBOARDING_SECRET (onboardingSecretFrom) is missing or empty. Ask the sponsor at ${sponsorUrl} for a secret for ${application.partyId}; it lives 48 hours.`,
  )
}

function exhausted({ sponsorUrl }: JoiningOptions, last: SponsorAway): OnboardingError {
  return new OnboardingError(
    `The sponsor at ${sponsorUrl} was asked ${ATTEMPTS_MAX} times without success; the last time: ${last.message} Check SPONSOR_SV_URL and that the sponsor lets this machine's address in, then start again.`,
  )
}
