import {
  contractId,
  optional,
  party,
  record,
  text,
  timestamp,
  type ValueOf,
} from '../values/value-type.ts'
import { type Choice, defineChoice, defineTemplate, require, type Steps } from './template.ts'

/**
 * An invitation: whoever knows the secret may become a validator, once, until the invitation ends.
 * The history is public, so contracts and choices hold the secret's hash and never the secret.
 */

export const validatorOnboarding = defineTemplate({
  packageName: 'splice-validator-lifecycle',
  name: 'Splice.ValidatorOnboarding:ValidatorOnboarding',
  payload: record({
    sv: party,
    candidateSecret: text,
    expiresAt: timestamp,
    partyHint: optional(text),
  }),
  signatories: ({ sv }) => [sv],
  observers: () => [],
})

export type ValidatorOnboardingPayload = ValueOf<(typeof validatorOnboarding)['payload']>

/** A secret that was used, and by whom. */
export const usedSecret = defineTemplate({
  packageName: 'splice-validator-lifecycle',
  name: 'Splice.ValidatorOnboarding:UsedSecret',
  payload: record({ sv: party, secret: text, validator: party }),
  signatories: ({ sv }) => [sv],
  observers: () => [],
})

export const matchOnboarding = defineChoice(validatorOnboarding, {
  name: 'ValidatorOnboarding_Match',
  consuming: true,
  argument: record({ providedSecret: text, validator: party }),
  result: record({ usedSecret: contractId }),
  controllers: ({ sv }) => [sv],
  async run(steps: Steps, { payload }, { providedSecret, validator }) {
    const { sv, candidateSecret, expiresAt } = payload
    require(providedSecret === candidateSecret, 'The secret is another one.')
    require(steps.nowMicros < expiresAt, 'The secret has expired.')
    return {
      usedSecret: await steps.create(usedSecret, { sv, secret: candidateSecret, validator }),
    }
  },
})

export const expireOnboarding = defineChoice(validatorOnboarding, {
  name: 'ValidatorOnboarding_Expire',
  consuming: true,
  argument: record({}),
  result: record({}),
  controllers: ({ sv }) => [sv],
  async run(steps: Steps, { payload }) {
    require(steps.nowMicros >= payload.expiresAt, 'The secret has not expired yet.')
    return {}
  },
})

export const validatorOnboardingChoices: Choice<ValidatorOnboardingPayload, unknown, unknown>[] = [
  matchOnboarding,
  expireOnboarding,
]
