import { type Automation, type AutomationContext, createAutomation } from './automation.ts'
import { readCoin, sumOf } from './coin-inputs.ts'
import { acceptCommand } from './commands.ts'
import { type Decision, printAmount } from './decision.ts'
import { type Offer, readOffer } from './offer.ts'
import { canPayTopUp, type TopUpRule } from './top-up.ts'

/** Acceptance of offers from listed senders, whatever their amount. */

export type AutoAcceptRule = { receiver: string; fromParties: readonly string[] }

export type AcceptPlan = { offer: Offer }

/** The first to expire is accepted first. An expired one would be refused by the contract. */
export function decideAccept(
  rule: AutoAcceptRule,
  facts: { offers: readonly Offer[]; nowMicros: bigint },
): Decision<AcceptPlan> {
  const { receiver, fromParties } = rule
  const open = facts.offers.filter(
    (offer) => offer.receiver === receiver && offer.expiresAtMicros > facts.nowMicros,
  )
  const [offer] = open
    .filter(({ sender }) => fromParties.includes(sender))
    .toSorted((a, b) => (a.expiresAtMicros < b.expiresAtMicros ? -1 : 1))
  if (offer !== undefined) {
    return {
      kind: 'act',
      plan: { offer },
      what: `accept the offer of ${printAmount(offer.amount)} from ${offer.sender}`,
      because: 'autoAcceptTransfers lists the sender',
    }
  }
  const others = open.length === 0 ? 'no offer' : `none of the ${open.length} open offers`
  return { kind: 'wait', because: `${others} from a listed sender waits` }
}

/**
 * Acceptance can wait for traffic like other commands, except where the coin it brings is what the
 * next purchase of traffic is to be paid with.
 */
export function acceptPriority(of: { isOperator: boolean; canPayTopUp: boolean }): 'high' | 'low' {
  return of.isOperator && !of.canPayTopUp ? 'high' : 'low'
}

export function autoAcceptAutomation(
  context: AutomationContext,
  of: { rule: AutoAcceptRule; topUp: TopUpRule | undefined; intervalMs: number },
): Automation {
  const { view, network, operator } = context
  const { rule, topUp, intervalMs } = of
  const party = rule.receiver

  async function mayPayTopUp(): Promise<boolean> {
    if (topUp === undefined || party !== operator) return true
    const { traffic } = await network.terms()
    return canPayTopUp(topUp, traffic, sumOf(view.coins(party).map(readCoin)))
  }

  return createAutomation(context, {
    name: 'auto-accept',
    party,
    intervalMs,
    isEventDriven: true,
    isIdle: () => view.offers(party).length === 0,
    decide: async () =>
      decideAccept(rule, {
        offers: view.offers(party).map(readOffer),
        nowMicros: context.nowMicros(),
      }),
    toAct: async ({ offer }) => ({
      subject: offer.contractId,
      priority: acceptPriority({
        isOperator: party === operator,
        canPayTopUp: await mayPayTopUp(),
      }),
      commands: () => [acceptCommand(offer.contractId)],
    }),
  })
}
