import { PlainError } from '../http/plain-error.ts'

// The refusals of a sponsor, one function each. None of them repeats the secret.

/** Why somebody was not admitted or given a secret, in a word for those who count. */
export const REFUSAL_REASONS = [
  'party',
  'missing',
  'foreign',
  'unknown',
  'used',
  'expired',
  'hint',
  'not-devnet',
  'too-many',
  'contended',
] as const

export type RefusalReason = (typeof REFUSAL_REASONS)[number]

export class Refusal extends PlainError {
  readonly reason: RefusalReason
  constructor(
    reason: RefusalReason,
    status: number,
    sentence: string,
    headers?: Record<string, string>,
  ) {
    super(status, sentence, headers)
    this.reason = reason
  }
}

export const notAParty = (found: string): Refusal =>
  new Refusal(
    'party',
    400,
    `party_id must be a party id, such as acme-validator-1::1220…; found ${JSON.stringify(found.slice(0, 80))}.`,
  )

export const missingSecret = (): Refusal =>
  new Refusal('missing', 400, 'secret must be the onboarding secret that the sponsor issued.')

export const foreignSecret = (sponsor: string, named: string): Refusal =>
  new Refusal(
    'foreign',
    400,
    `The secret was issued by another sponsor (${named.slice(0, 300)}), and this is ${sponsor}. Check the sponsor URL.`,
  )

export const unknownSecret = (): Refusal =>
  new Refusal(
    'unknown',
    401,
    'Unknown secret: it was not issued here, was revoked, or has expired. Ask the sponsor for a new one.',
  )

export const secretOfAnother = (): Refusal =>
  new Refusal(
    'used',
    401,
    'Secret has already been used for a different validator. Ask the sponsor for one of your own.',
  )

export const expiredSecret = (expiredAt: string): Refusal =>
  new Refusal(
    'expired',
    401,
    `The secret has expired at ${expiredAt}. Ask the sponsor for a new one.`,
  )

export const otherHint = (fixed: string, hint: string): Refusal =>
  new Refusal(
    'hint',
    400,
    `The secret was issued for the party hint ${fixed}, but the party's hint is ${hint}. Set validatorPartyHint to ${fixed}, or ask the sponsor for a secret for ${hint}.`,
  )

export const notDevNet = (): Refusal =>
  new Refusal(
    'not-devnet',
    501,
    'Validator onboarding preparation self-service is only available in DevNet. Ask the administrator of this sponsor for a secret.',
  )

export const tooManySecrets = (max: number): Refusal =>
  new Refusal(
    'too-many',
    429,
    `There are ${max} unused secrets already. Revoke some, or wait until some expire.`,
    { 'retry-after': '60' },
  )

export const noSuchOnboarding = (): PlainError =>
  new PlainError(
    404,
    'There is no such unused secret: it was used, has expired, was revoked, or never existed.',
  )

export const joinContended = (): Refusal =>
  new Refusal(
    'contended',
    503,
    'Too many validators join at the same moment; repeat in a few seconds.',
    {
      'retry-after': '2',
    },
  )
