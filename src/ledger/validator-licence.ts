import {
  contractId,
  int64,
  optional,
  party,
  record,
  text,
  timestamp,
  type ValueOf,
} from '../values/value-type.ts'
import { fetchOpenRound } from './round.ts'
import { type Choice, defineChoice, defineTemplate, type Steps } from './template.ts'

/** The network admits a validator, and sees by this contract that it is alive. */

const metadata = record({ lastUpdatedAt: timestamp, version: text, contactPoint: text })

export const validatorLicence = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.ValidatorLicense:ValidatorLicense',
  payload: record({
    validator: party,
    sponsor: party,
    dso: party,
    faucetState: optional(
      record({
        firstReceivedFor: record({ number: int64 }),
        lastReceivedFor: record({ number: int64 }),
        numCouponsMissed: int64,
      }),
    ),
    metadata: optional(metadata),
    lastActiveAt: optional(timestamp),
  }),
  signatories: ({ dso }) => [dso],
  observers: ({ validator }) => [validator],
})

export type ValidatorLicencePayload = ValueOf<(typeof validatorLicence)['payload']>

const renewed = record({ licenseCid: contractId })

export const recordActivity = defineChoice(validatorLicence, {
  name: 'ValidatorLicense_RecordValidatorLivenessActivity',
  consuming: true,
  argument: record({ openRoundCid: contractId }),
  result: renewed,
  controllers: ({ validator }) => [validator],
  async run(steps: Steps, { payload }, { openRoundCid }) {
    await fetchOpenRound(steps, openRoundCid, payload.dso)
    const alive = { ...payload, lastActiveAt: steps.nowMicros }
    return { licenseCid: await steps.create(validatorLicence, alive) }
  },
})

const updateMetadata = defineChoice(validatorLicence, {
  name: 'ValidatorLicense_UpdateMetadata',
  consuming: true,
  argument: record({ version: text, contactPoint: text }),
  result: renewed,
  controllers: ({ validator }) => [validator],
  async run(steps: Steps, { payload }, { version, contactPoint }) {
    const told = {
      ...payload,
      metadata: { lastUpdatedAt: steps.nowMicros, version, contactPoint },
    }
    return { licenseCid: await steps.create(validatorLicence, told) }
  },
})

const withdraw = defineChoice(validatorLicence, {
  name: 'ValidatorLicense_Withdraw',
  consuming: true,
  argument: record({ reason: text }),
  result: record({}),
  controllers: ({ dso }) => [dso],
  run: async () => ({}),
})

export const validatorLicenceChoices: Choice<ValidatorLicencePayload, unknown, unknown>[] = [
  recordActivity,
  updateMetadata,
  withdraw,
]
