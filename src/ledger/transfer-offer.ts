import {
  contractId,
  enumeration,
  list,
  numeric,
  party,
  record,
  text,
  timestamp,
  unit,
  type ValueOf,
  variant,
} from '../values/value-type.ts'
import { amuletRules, paymentContext, transferCoins, transferResult } from './rules.ts'
import { type Choice, defineChoice, defineTemplate, require, type Steps } from './template.ts'

/**
 * An offer of coins. The receiver accepts, which makes an accepted offer that both have signed; the
 * sender then completes it with coins, or aborts it.
 */

const amountType = record({ amount: numeric, unit: enumeration('AmuletUnit') })

export const transferOffer = defineTemplate({
  packageName: 'splice-wallet',
  name: 'Splice.Wallet.TransferOffer:TransferOffer',
  payload: record({
    sender: party,
    receiver: party,
    dso: party,
    amount: amountType,
    description: text,
    expiresAt: timestamp,
    trackingId: text,
  }),
  signatories: ({ sender }) => [sender],
  observers: ({ receiver }) => [receiver],
  ensure: ({ amount }) =>
    amount.amount > 0n ? undefined : 'The amount of an offer must be above zero.',
})

export type TransferOfferPayload = ValueOf<(typeof transferOffer)['payload']>

export const acceptedOffer = defineTemplate({
  packageName: 'splice-wallet',
  name: 'Splice.Wallet.TransferOffer:AcceptedTransferOffer',
  payload: record({
    sender: party,
    receiver: party,
    dso: party,
    amount: amountType,
    expiresAt: timestamp,
    trackingId: text,
  }),
  signatories: ({ sender, receiver }) => [sender, receiver],
  observers: () => [],
})

export type AcceptedOfferPayload = ValueOf<(typeof acceptedOffer)['payload']>

const tracking = record({ trackingId: text, sender: party, receiver: party })
const trackingOf = ({ trackingId, sender, receiver }: ValueOf<typeof tracking>) => ({
  trackingId,
  sender,
  receiver,
})
const ended = record({ trackingInfo: tracking })

export const acceptOffer = defineChoice(transferOffer, {
  name: 'TransferOffer_Accept',
  consuming: true,
  argument: unit,
  result: record({ acceptedTransferOffer: contractId }),
  controllers: ({ receiver }) => [receiver],
  async run(steps: Steps, { payload }) {
    require(steps.nowMicros < payload.expiresAt, 'The offer has expired.')
    const { description: _, ...accepted } = payload
    return { acceptedTransferOffer: await steps.create(acceptedOffer, accepted) }
  },
})

export const rejectOffer = defineChoice(transferOffer, {
  name: 'TransferOffer_Reject',
  consuming: true,
  argument: unit,
  result: ended,
  controllers: ({ receiver }) => [receiver],
  run: async (_steps, { payload }) => ({ trackingInfo: trackingOf(payload) }),
})

export const withdrawOffer = defineChoice(transferOffer, {
  name: 'TransferOffer_Withdraw',
  consuming: true,
  argument: record({ reason: text }),
  result: ended,
  controllers: ({ sender }) => [sender],
  run: async (_steps, { payload }) => ({ trackingInfo: trackingOf(payload) }),
})

const expireOffer = defineChoice(transferOffer, {
  name: 'TransferOffer_Expire',
  consuming: true,
  argument: record({ actor: party }),
  result: ended,
  controllers: (_payload, { actor }) => [actor],
  async run(steps: Steps, { payload }, { actor }) {
    requireStakeholder(payload, actor)
    require(payload.expiresAt <= steps.nowMicros, 'The offer has not expired yet.')
    return { trackingInfo: trackingOf(payload) }
  },
})

export const transferOfferChoices: Choice<TransferOfferPayload, unknown, unknown>[] = [
  acceptOffer,
  rejectOffer,
  withdrawOffer,
  expireOffer,
]

export const completeOffer = defineChoice(acceptedOffer, {
  name: 'AcceptedTransferOffer_Complete',
  consuming: true,
  argument: record({
    inputs: list(variant({ InputAmulet: contractId })),
    transferContext: paymentContext,
    walletProvider: party,
  }),
  result: record({ transferResult, trackingInfo: tracking }),
  controllers: ({ sender }) => [sender],
  async run(steps: Steps, { payload }, { inputs, transferContext, walletProvider }) {
    const { sender, receiver, amount, dso } = payload
    require(steps.nowMicros < payload.expiresAt, 'The accepted offer has expired.')
    const rules = await steps.fetch(amuletRules, transferContext.amuletRules)
    require(rules.dso === dso, 'The rules belong to another network.')
    const result = await steps.exercise({
      template: amuletRules,
      contractId: transferContext.amuletRules,
      choice: transferCoins,
      argument: {
        transfer: {
          sender,
          provider: walletProvider,
          inputs,
          outputs: [{ receiver, amount: amount.amount, lock: null }],
        },
        openMiningRound: transferContext.openMiningRound,
      },
    })
    return { transferResult: result, trackingInfo: trackingOf(payload) }
  },
})

/** The sender gives up, usually for want of coins. */
const abortOffer = defineChoice(acceptedOffer, {
  name: 'AcceptedTransferOffer_Abort',
  consuming: true,
  argument: record({ reason: text }),
  result: ended,
  controllers: ({ sender }) => [sender],
  run: async (_steps, { payload }) => ({ trackingInfo: trackingOf(payload) }),
})

const withdrawAccepted = defineChoice(acceptedOffer, {
  name: 'AcceptedTransferOffer_Withdraw',
  consuming: true,
  argument: record({ reason: text }),
  result: ended,
  controllers: ({ receiver }) => [receiver],
  run: async (_steps, { payload }) => ({ trackingInfo: trackingOf(payload) }),
})

const expireAccepted = defineChoice(acceptedOffer, {
  name: 'AcceptedTransferOffer_Expire',
  consuming: true,
  argument: record({ actor: party }),
  result: ended,
  controllers: (_payload, { actor }) => [actor],
  async run(steps: Steps, { payload }, { actor }) {
    requireStakeholder(payload, actor)
    require(payload.expiresAt <= steps.nowMicros, 'The accepted offer has not expired yet.')
    return { trackingInfo: trackingOf(payload) }
  },
})

export const acceptedOfferChoices: Choice<AcceptedOfferPayload, unknown, unknown>[] = [
  completeOffer,
  abortOffer,
  withdrawAccepted,
  expireAccepted,
]

function requireStakeholder(offer: { sender: string; receiver: string }, actor: string): void {
  require(actor === offer.sender ||
    actor === offer.receiver, 'Only the sender and the receiver may expire an offer.')
}
