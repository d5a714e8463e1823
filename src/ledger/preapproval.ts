import {
  contractId,
  list,
  numeric,
  optional,
  party,
  record,
  text,
  timestamp,
  type ValueOf,
  variant,
} from '../values/value-type.ts'
import { amuletRules, paymentContext, transferCoins, transferResult } from './rules.ts'
import { type Choice, defineChoice, defineTemplate, require, type Steps } from './template.ts'

/** The receiver has agreed beforehand to whatever is sent. */

export const preapproval = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.AmuletRules:TransferPreapproval',
  payload: record({
    dso: party,
    receiver: party,
    provider: party,
    validFrom: timestamp,
    lastRenewedAt: timestamp,
    expiresAt: timestamp,
  }),
  signatories: ({ dso, receiver, provider }) => [dso, receiver, provider],
  observers: () => [],
  ensure: ({ validFrom, expiresAt }) =>
    validFrom < expiresAt ? undefined : 'A preapproval must end after it begins.',
  // Senders find it through a scan.
  isPublic: true,
})

export type PreapprovalPayload = ValueOf<(typeof preapproval)['payload']>

const inputs = list(variant({ InputAmulet: contractId }))

/** Receiver and provider ask the network for a preapproval; it costs nothing here. */
export const createPreapproval = defineChoice(amuletRules, {
  name: 'AmuletRules_CreateTransferPreapproval',
  consuming: false,
  argument: record({ receiver: party, provider: party, expiresAt: timestamp }),
  result: record({ transferPreapprovalCid: contractId }),
  controllers: (_payload, { receiver, provider }) => [...new Set([receiver, provider])],
  async run(steps: Steps, { payload }, { receiver, provider, expiresAt }) {
    const { nowMicros } = steps
    require(expiresAt > nowMicros, 'The preapproval would have expired already.')
    const transferPreapprovalCid = await steps.create(preapproval, {
      dso: payload.dso,
      receiver,
      provider,
      validFrom: nowMicros,
      lastRenewedAt: nowMicros,
      expiresAt,
    })
    return { transferPreapprovalCid }
  },
})

export const sendPreapproved = defineChoice(preapproval, {
  name: 'TransferPreapproval_Send',
  consuming: false,
  argument: record({
    sender: party,
    inputs,
    amount: numeric,
    context: paymentContext,
    description: optional(text),
  }),
  result: record({ result: transferResult }),
  controllers: (_payload, { sender }) => [sender],
  async run(steps: Steps, { payload }, argument) {
    require(steps.nowMicros < payload.expiresAt, 'The preapproval has expired.')
    const { receiver, provider, dso } = payload
    const rules = await steps.fetch(amuletRules, argument.context.amuletRules)
    require(rules.dso === dso, 'The rules belong to another network.')
    const result = await steps.exercise({
      template: amuletRules,
      contractId: argument.context.amuletRules,
      choice: transferCoins,
      argument: {
        transfer: {
          sender: argument.sender,
          provider,
          inputs: argument.inputs,
          outputs: [{ receiver, amount: argument.amount, lock: null }],
        },
        openMiningRound: argument.context.openMiningRound,
      },
    })
    return { result }
  },
})

const renewPreapproval = defineChoice(preapproval, {
  name: 'TransferPreapproval_Renew',
  consuming: true,
  argument: record({ newExpiresAt: timestamp }),
  result: record({ transferPreapprovalCid: contractId }),
  controllers: ({ provider }) => [provider],
  async run(steps: Steps, { payload }, { newExpiresAt }) {
    require(newExpiresAt > payload.expiresAt, 'A renewal must end later than before.')
    const renewed = { ...payload, lastRenewedAt: steps.nowMicros, expiresAt: newExpiresAt }
    return { transferPreapprovalCid: await steps.create(preapproval, renewed) }
  },
})

const cancelPreapproval = defineChoice(preapproval, {
  name: 'TransferPreapproval_Cancel',
  consuming: true,
  argument: record({ p: party }),
  result: record({}),
  controllers: (_payload, { p }) => [p],
  async run(_steps, { payload }, { p }) {
    require(p === payload.receiver ||
      p === payload.provider, 'Only the receiver and the provider may cancel a preapproval.')
    return {}
  },
})

export const preapprovalChoices: Choice<PreapprovalPayload, unknown, unknown>[] = [
  sendPreapproved,
  renewPreapproval,
  cancelPreapproval,
]
