import { type Automation, type AutomationContext, createAutomation } from './automation.ts'
import { type ChosenCoins, type Coin, chooseCoins, readCoin } from './coin-inputs.ts'
import { abortCommand, completeCommand, mergeCommand } from './commands.ts'
import { type Decision, printAmount } from './decision.ts'
import { type Offer, readOffer } from './offer.ts'

/** The sender's part after an acceptance: pay, or give up for want of coins. */

export type CompletionPlan =
  | { kind: 'complete'; offer: Offer; chosen: Exclude<ChosenCoins, { kind: 'missing' }> }
  | { kind: 'abort'; offer: Offer; reason: string }

/** One at a time, because a payment changes the coins; the first to expire comes first. */
export function decideCompletion(
  sender: string,
  facts: { accepted: readonly Offer[]; coins: readonly Coin[]; nowMicros: bigint },
): Decision<CompletionPlan> {
  const [offer] = facts.accepted
    .filter((offer) => offer.sender === sender && offer.expiresAtMicros > facts.nowMicros)
    .toSorted((a, b) => (a.expiresAtMicros < b.expiresAtMicros ? -1 : 1))
  if (offer === undefined) return { kind: 'wait', because: 'no accepted offer waits for payment' }
  const amount = printAmount(offer.amount)
  const accepted = `${offer.receiver} has accepted the offer`
  const chosen = chooseCoins(facts.coins, offer.amount)
  if (chosen.kind === 'missing') {
    const reason = `out of funds: the sender holds ${printAmount(chosen.held)} of ${amount}`
    return {
      kind: 'act',
      plan: { kind: 'abort', offer, reason },
      what: `give up paying ${amount} to ${offer.receiver}`,
      because: `${accepted}, but the wallet is ${reason}`,
    }
  }
  return {
    kind: 'act',
    plan: { kind: 'complete', offer, chosen },
    what:
      chosen.kind === 'merge'
        ? `make one of ${chosen.inputs.length} coins, and then pay ${amount} to ${offer.receiver}`
        : `pay ${amount} to ${offer.receiver}`,
    because: accepted,
  }
}

export function completionAutomation(
  context: AutomationContext,
  party: string,
  intervalMs: number,
): Automation {
  const { view, network, operator } = context
  return createAutomation(context, {
    name: 'completion',
    party,
    intervalMs,
    isEventDriven: true,
    isIdle: () => view.acceptedOffers(party).length === 0,
    decide: async () =>
      decideCompletion(party, {
        accepted: view.acceptedOffers(party).map(readOffer),
        coins: view.coins(party).map(readCoin),
        nowMicros: context.nowMicros(),
      }),
    async toAct(plan) {
      const priority = 'low'
      const { contractId } = plan.offer
      if (plan.kind === 'abort') {
        const abort = abortCommand(contractId, plan.reason)
        return { subject: contractId, priority, commands: () => [abort] }
      }
      const { payment } = await network.terms()
      const { chosen } = plan
      if (chosen.kind === 'merge') {
        const { inputs, total } = chosen
        const merge = mergeCommand(payment, { owner: party, coins: inputs, total })
        const what = `make one of ${inputs.length} coins, to pay an accepted offer`
        return { subject: 'merge', what, priority, commands: () => [merge] }
      }
      const complete = completeCommand(payment, {
        accepted: contractId,
        coins: chosen.inputs,
        walletProvider: operator,
      })
      return { subject: contractId, priority, commands: () => [complete] }
    },
  })
}
