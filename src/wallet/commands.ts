import {
  createPreapproval,
  preapproval,
  preapprovalChoices,
  sendPreapproved,
} from '../ledger/preapproval.ts'
import { amuletRules, tapCoins, transferCoins } from '../ledger/rules.ts'
import type { Choice, Template } from '../ledger/template.ts'
import { type TopUpStatePayload, topUp, topUpState } from '../ledger/top-up-state.ts'
import { buyTraffic } from '../ledger/traffic.ts'
import {
  acceptedOffer,
  acceptedOfferChoices,
  acceptOffer,
  completeOffer,
  rejectOffer,
  type TransferOfferPayload,
  transferOffer,
  transferOfferChoices,
  withdrawOffer,
} from '../ledger/transfer-offer.ts'
import type { Decimal } from '../values/decimal.ts'
import type { ValueType } from '../values/value-type.ts'
import { idOf } from './holdings.ts'
import type { ExercisedEvent, LedgerEvent } from './ledger-event.ts'
import type { Command } from './participant.ts'

// What wallets tell the ledger to do, one function a command. Amounts are exact, times are microseconds.

/** The contracts of the network that every payment names. */
export type PaymentContext = { rules: string; round: string }
type Coin = { contractId: string }

const inputsOf = (coins: readonly Coin[]) =>
  coins.map(({ contractId }) => ({ tag: 'InputAmulet' as const, value: contractId }))
const contextOf = ({ rules, round }: PaymentContext) => ({
  amuletRules: rules,
  openMiningRound: round,
})

export function tapCommand(
  { rules, round }: PaymentContext,
  to: { receiver: string; amount: Decimal },
): Command {
  return exercise(amuletRules, rules, tapCoins, { ...to, openRound: round })
}

/** Makes one coin of several. */
export function mergeCommand(
  { rules, round }: PaymentContext,
  of: { owner: string; coins: readonly Coin[]; total: Decimal },
): Command {
  const { owner, coins, total } = of
  return exercise(amuletRules, rules, transferCoins, {
    transfer: {
      sender: owner,
      provider: owner,
      inputs: inputsOf(coins),
      outputs: [{ receiver: owner, amount: total, lock: null }],
    },
    openMiningRound: round,
  })
}

export function sendCommand(
  context: PaymentContext,
  of: {
    preapproval: string
    sender: string
    coins: readonly Coin[]
    amount: Decimal
    description: string | null
  },
): Command {
  const { sender, coins, amount, description } = of
  return exercise(preapproval, of.preapproval, sendPreapproved, {
    sender,
    inputs: inputsOf(coins),
    amount,
    context: contextOf(context),
    description,
  })
}

export function offerCommand(offer: TransferOfferPayload): Command {
  const createArguments = transferOffer.payload.toJson(offer)
  return { CreateCommand: { templateId: idOf(transferOffer), createArguments } }
}

export function acceptCommand(offer: string): Command {
  return exercise(transferOffer, offer, acceptOffer, {})
}

export function rejectCommand(offer: string): Command {
  return exercise(transferOffer, offer, rejectOffer, {})
}

export function withdrawCommand(offer: string, reason: string): Command {
  return exercise(transferOffer, offer, withdrawOffer, { reason })
}

export function expireOfferCommand(offer: string, actor: string): Command {
  return exercise(transferOffer, offer, named(transferOfferChoices, 'TransferOffer_Expire'), {
    actor,
  })
}

export function completeCommand(
  context: PaymentContext,
  of: { accepted: string; coins: readonly Coin[]; walletProvider: string },
): Command {
  return exercise(acceptedOffer, of.accepted, completeOffer, {
    inputs: inputsOf(of.coins),
    transferContext: contextOf(context),
    walletProvider: of.walletProvider,
  })
}

export function abortCommand(accepted: string, reason: string): Command {
  const choice = named(acceptedOfferChoices, 'AcceptedTransferOffer_Abort')
  return exercise(acceptedOffer, accepted, choice, { reason })
}

export function expireAcceptedCommand(accepted: string, actor: string): Command {
  const choice = named(acceptedOfferChoices, 'AcceptedTransferOffer_Expire')
  return exercise(acceptedOffer, accepted, choice, { actor })
}

/** Acts as the receiver and as the provider. */
export function createPreapprovalCommand(
  { rules }: PaymentContext,
  of: { receiver: string; provider: string; expiresAt: bigint },
): Command {
  return exercise(amuletRules, rules, createPreapproval, of)
}

export function renewPreapprovalCommand(contractId: string, newExpiresAt: bigint): Command {
  const choice = named(preapprovalChoices, 'TransferPreapproval_Renew')
  return exercise(preapproval, contractId, choice, { newExpiresAt })
}

export function cancelPreapprovalCommand(contractId: string, party: string): Command {
  const choice = named(preapprovalChoices, 'TransferPreapproval_Cancel')
  return exercise(preapproval, contractId, choice, { p: party })
}

/** Traffic for a member of a synchronizer, paid by the provider. */
export type Purchase = {
  provider: string
  coins: readonly Coin[]
  memberId: string
  synchronizerId: string
  migrationId: bigint
  bytes: bigint
}

export function buyTrafficCommand(context: PaymentContext, purchase: Purchase): Command {
  return exercise(amuletRules, context.rules, buyTraffic, purchaseOf(context, purchase))
}

export function createTopUpStateCommand(state: TopUpStatePayload): Command {
  const createArguments = topUpState.payload.toJson(state)
  return { CreateCommand: { templateId: idOf(topUpState), createArguments } }
}

/** Buys traffic unless the last purchase is too young. */
export function topUpCommand(
  context: PaymentContext,
  of: { state: string; purchase: Purchase; minTopupIntervalMicros: bigint },
): Command {
  return exercise(topUpState, of.state, topUp, {
    amuletRules: context.rules,
    purchase: purchaseOf(context, of.purchase),
    minTopupInterval: { microseconds: of.minTopupIntervalMicros },
  })
}

/** What a choice of a transaction returned; undefined when it was not exercised. */
export function resultOf<R>(
  events: readonly LedgerEvent[],
  choice: { name: string; result: ValueType<R> },
): R | undefined {
  const event = events.find(
    (candidate): candidate is ExercisedEvent =>
      candidate.kind === 'exercised' && candidate.choice === choice.name,
  )
  return event && choice.result.read(event.result, choice.name)
}

function purchaseOf({ round }: PaymentContext, purchase: Purchase) {
  const { coins, bytes, ...rest } = purchase
  return { ...rest, inputs: inputsOf(coins), openMiningRound: round, trafficAmount: bytes }
}

function exercise<P, A, R>(
  template: Template<P>,
  contractId: string,
  choice: Choice<P, A, R>,
  argument: A,
): Command {
  return {
    ExerciseCommand: {
      templateId: idOf(template),
      contractId,
      choice: choice.name,
      choiceArgument: choice.argument.toJson(argument),
    },
  }
}

function named<P>(
  choices: readonly Choice<P, unknown, unknown>[],
  name: string,
): Choice<P, unknown, unknown> {
  const found = choices.find((choice) => choice.name === name)
  if (found === undefined) throw new TypeError(`There is no choice ${name}.`)
  return found
}
