import { type HttpAnswer, type HttpCall, NoAnswer } from '../http/call.ts'
import { readRetryAfter } from '../http/retry-after.ts'
import { decodeSecret } from './secret.ts'

/** A node that cannot join its network; the message is for the operator. */
export class OnboardingError extends Error {
  override name = 'OnboardingError'
}

/** The sponsor may well answer otherwise in a moment; the message says how it did now. */
export class SponsorAway extends Error {
  override name = 'SponsorAway'
  /** How long it wants to be left alone. */
  readonly retryAfterMs: number
  constructor(message: string, retryAfterMs = 0) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

export type Application = {
  partyId: string
  partyHint: string
  version: string
  contactPoint: string
}

export type SponsorClient = {
  /** The version of the sponsor's software; refuses what is not a super validator. */
  version(signal: AbortSignal): Promise<string>
  /** A secret from a development network's self-service. */
  devNetSecret(signal: AbortSignal): Promise<string>
  /** Resolves when the sponsor has admitted the party, now or before. */
  apply(application: Application, secret: string, signal: AbortSignal): Promise<void>
}

/** Joining is one small ledger transaction; who needs longer is asked again. */
const ANSWER_TIMEOUT_MS = 10_000
/** Of what a sponsor says, as much as fits a terminal. */
const SENTENCE_LENGTH_MAX = 400
/** A sponsor that wants to be left alone for longer is asked again all the same: readiness waits for it. */
const RETRY_AFTER_MS_MAX = 60_000
const TRANSIENT = new Set([408, 429, 500, 502, 503, 504])

export function createSponsorClient(options: { call: HttpCall; url: string }): SponsorClient {
  const { call, url } = options

  async function ask(
    request: { method: 'GET' | 'POST'; path: string; body?: object },
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const { method, path, body } = request
    const timeout = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
    try {
      const answer = await call({
        method,
        path,
        signal: AbortSignal.any([signal, timeout]),
        ...(body === undefined
          ? {}
          : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      })
      if (!TRANSIENT.has(answer.status)) return answer
      throw new SponsorAway(
        `${url} answers ${answer.status}: ${sentenceOf(answer)}`,
        readRetryAfter(answer.header?.('retry-after'), RETRY_AFTER_MS_MAX),
      )
    } catch (error) {
      if (timeout.aborted && !signal.aborted) {
        throw new SponsorAway(`${url} does not answer within ${ANSWER_TIMEOUT_MS / 1000} seconds.`)
      }
      throw error instanceof NoAnswer ? new SponsorAway(error.message) : error
    }
  }

  async function explainStranger(signal: AbortSignal): Promise<OnboardingError> {
    const probe = await ask({ method: 'GET', path: '/api/scan/version' }, signal)
    if (versionOf(probe) !== undefined) {
      return new OnboardingError(
        `SPONSOR_SV_URL (svSponsorAddress) is ${url}, and that is a scan. The URL of the sponsoring super validator's SV app is needed; by custom its host begins with sv. where the scan's begins with scan. Ask the sponsor for it.`,
      )
    }
    return new OnboardingError(
      `SPONSOR_SV_URL (svSponsorAddress) is ${url}, but no super validator app answers there (nothing at /api/sv/version). Ask the sponsor for the URL of its SV app.`,
    )
  }

  return {
    async version(signal) {
      const version = versionOf(await ask({ method: 'GET', path: '/api/sv/version' }, signal))
      if (version === undefined) throw await explainStranger(signal)
      return version
    },
    async devNetSecret(signal) {
      const path = '/api/sv/v0/devnet/onboard/validator/prepare'
      const answer = await ask({ method: 'POST', path }, signal)
      if (answer.status === 200 && answer.body.trim() !== '') return answer.body.trim()
      if (answer.status === 501) {
        throw new OnboardingError(
          `The sponsor at ${url} gives no secrets by itself, because its network is not a development network. Ask the sponsor for an onboarding secret, and set ONBOARDING_SECRET.`,
        )
      }
      throw new OnboardingError(
        `The sponsor at ${url} answered ${answer.status} to the question for a secret. Ask the sponsor for an onboarding secret, and set ONBOARDING_SECRET.`,
      )
    },
    async apply({ partyId, partyHint, version, contactPoint }, secret, signal) {
      const body = {
        party_id: partyId,
        secret,
        version,
        contact_point: contactPoint,
        party_hint: partyHint,
      }
      const path = '/api/sv/v0/onboard/validator'
      const answer = await ask({ method: 'POST', path, body }, signal)
      if (answer.status === 200) return
      throw refusal(answer, { url, partyId, secret })
    },
  }
}

function refusal(
  answer: HttpAnswer,
  { url, partyId, secret }: { url: string; partyId: string; secret: string },
): OnboardingError {
  const said = without(sentenceOf(answer), secret)
  if (answer.status === 401) {
    return new OnboardingError(
      `The sponsor at ${url} does not accept the onboarding secret: ${said} A secret lives 48 hours unless the sponsor chose otherwise, and serves one validator. Ask the sponsor for a new secret for ${partyId}, and set ONBOARDING_SECRET.`,
    )
  }
  if (answer.status === 400) {
    return new OnboardingError(
      `The sponsor at ${url} refuses to onboard ${partyId}: ${said} Check that SPONSOR_SV_URL is the sponsor that issued the secret and validatorPartyHint the one that it was issued for; otherwise ask the sponsor for a new secret.`,
    )
  }
  return new OnboardingError(
    `The sponsor at ${url} answered ${answer.status} to the request to onboard ${partyId}: ${said} Ask the sponsor whether its SV app takes validators.`,
  )
}

function versionOf({ status, body }: HttpAnswer): string | undefined {
  if (status !== 200) return undefined
  const { version } = (parsed(body) ?? {}) as { version?: unknown }
  return typeof version === 'string' ? printable(version).slice(0, SENTENCE_LENGTH_MAX) : undefined
}

/** What the sponsor says, as one sentence that cannot steer a terminal. */
function sentenceOf({ body }: HttpAnswer): string {
  const { error } = (parsed(body) ?? {}) as { error?: unknown }
  const said = printable(typeof error === 'string' ? error : '').trim()
  if (said === '') return 'it does not say why.'
  const cut = said.length > SENTENCE_LENGTH_MAX ? `${said.slice(0, SENTENCE_LENGTH_MAX)}…` : said
  return /[.!?…]$/.test(cut) ? cut : `${cut}.`
}

/** A sponsor may repeat what it was told. */
function without(text: string, secret: string): string {
  const inner = decodeSecret(secret).secret
  return text.replaceAll(secret, '****').replaceAll(inner, '****')
}

function printable(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ')
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
