import type { JWTPayload } from 'jose'
import { permissionDenied, unauthenticated } from './errors.ts'

export type TokenTarget = {
  /** `aud` must contain this. */
  audience?: string
  /** Without an audience: `scope` (or `scp`) must contain this. */
  scope?: string
}

export type TokenClock = { now: () => number; leewaySeconds?: number; lifetimeMaxSeconds?: number }

const PARTICIPANT_AUDIENCE_PREFIX = 'https://daml.com/jwt/aud/participant/'
const LEDGER_API_SCOPE = 'daml_ledger_api'

/** The rules for claims, once the signature is good. `exp` and `nbf` were checked with it. */
export const checkClaims = (
  payload: JWTPayload,
  target: TokenTarget,
  options: TokenClock & { participantId: string },
): { userId: string; expiresAtSeconds: number | undefined } => {
  const { sub, exp, iat, nbf } = payload
  const nowSeconds = Math.floor(options.now() / 1000)
  for (const [name, time] of Object.entries({ exp, iat, nbf })) {
    if (time !== undefined && !Number.isSafeInteger(time)) {
      throw unauthenticated(`the claim ${name} is not a whole number`)
    }
  }
  if (iat !== undefined && iat > nowSeconds + (options.leewaySeconds ?? 0)) {
    throw unauthenticated('the token was issued in the future')
  }
  if (options.lifetimeMaxSeconds !== undefined) {
    if (exp === undefined || exp - nowSeconds > options.lifetimeMaxSeconds) {
      throw unauthenticated('the token lives longer than this node accepts')
    }
  }
  checkTarget(payload, target, options.participantId)
  if (typeof sub !== 'string') throw unauthenticated('the claim sub is not a string')
  return { userId: sub, expiresAtSeconds: exp }
}

/**
 * Whom the token is for: the audience if one is configured, else the scope, else either one
 * participant in the audience or the general scope of the ledger API.
 */
const checkTarget = (payload: JWTPayload, target: TokenTarget, participantId: string): void => {
  const audiences = textsOf(payload.aud)
  if (audiences === undefined) throw unauthenticated('the claim aud is neither text nor a list')
  if (target.audience) {
    if (!audiences.includes(target.audience)) throw unauthenticated('the audience is another one')
    return
  }
  const scopes = scopesOf(payload)
  if (target.scope) {
    if (!scopes.includes(target.scope)) throw unauthenticated('the scope is missing')
    return
  }
  const participants = audiences.filter((audience) =>
    audience.startsWith(PARTICIPANT_AUDIENCE_PREFIX),
  )
  const [only] = participants
  if (only !== undefined && participants.length === 1) {
    requireParticipant(only.slice(PARTICIPANT_AUDIENCE_PREFIX.length), participantId)
    return
  }
  if (participants.length > 1) throw unauthenticated('the token is for several participants')
  if (!scopes.includes(LEDGER_API_SCOPE) || audiences.length > 1) {
    throw unauthenticated('the token has neither a fitting audience nor a fitting scope')
  }
  if (audiences[0] !== undefined) requireParticipant(audiences[0], participantId)
}

const requireParticipant = (named: string, participantId: string): void => {
  if (named === '') throw unauthenticated('the token names no participant')
  if (named !== participantId) throw permissionDenied('the token is for another participant')
}

const textsOf = (claim: unknown): string[] | undefined => {
  if (claim === undefined) return []
  if (typeof claim === 'string') return [claim]
  if (Array.isArray(claim) && claim.every((item) => typeof item === 'string')) return claim
  return undefined
}

const scopesOf = ({ scope, scp }: JWTPayload): string[] => {
  if (typeof scope === 'string' && scope !== '') return scope.split(' ')
  return (textsOf(scp) ?? []).flatMap((item) => item.split(' '))
}

export const isExpired = (expiresAtSeconds: number | undefined, clock: TokenClock): boolean =>
  expiresAtSeconds !== undefined &&
  expiresAtSeconds <= Math.floor(clock.now() / 1000) - (clock.leewaySeconds ?? 0)
