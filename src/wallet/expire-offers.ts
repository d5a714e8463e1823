import { type Automation, type AutomationContext, createAutomation } from './automation.ts'
import { expireAcceptedCommand, expireOfferCommand } from './commands.ts'
import { type Decision, printAmount } from './decision.ts'
import { type Offer, readOffer } from './offer.ts'

/** Removal of offers that nobody can use any more, so that they no longer count as outstanding. */

export type ExpiryPlan = { offer: Offer; state: 'open' | 'accepted' }

/** The sender's node does it; the receiver's own where the sender has its wallet elsewhere. */
export function decideExpiry(
  party: string,
  facts: {
    offers: readonly Offer[]
    accepted: readonly Offer[]
    nowMicros: bigint
    hasWallet: (party: string) => boolean
  },
): Decision<ExpiryPlan> {
  const isMine = ({ sender, receiver }: Offer) =>
    sender === party || (receiver === party && !facts.hasWallet(sender))
  const mine = [
    ...facts.offers.map((offer) => ({ offer, state: 'open' as const })),
    ...facts.accepted.map((offer) => ({ offer, state: 'accepted' as const })),
  ]
    .filter(({ offer }) => isMine(offer))
    .toSorted((a, b) => (a.offer.expiresAtMicros < b.offer.expiresAtMicros ? -1 : 1))
  const [first] = mine
  if (first === undefined) return { kind: 'wait', because: 'there is no offer' }
  const { offer, state } = first
  if (offer.expiresAtMicros > facts.nowMicros) {
    return {
      kind: 'wait',
      because: 'no offer has expired',
      untilMicros: offer.expiresAtMicros,
    }
  }
  return {
    kind: 'act',
    plan: { offer, state },
    what: `remove the ${state} offer of ${printAmount(offer.amount)} from ${offer.sender} to ${offer.receiver}`,
    because: 'its time is over',
  }
}

export function expiryAutomation(
  context: AutomationContext,
  party: string,
  intervalMs: number,
): Automation {
  const { view } = context
  return createAutomation(context, {
    name: 'expiry',
    party,
    intervalMs,
    isEventDriven: false,
    isIdle: () => view.offers(party).length + view.acceptedOffers(party).length === 0,
    decide: async () =>
      decideExpiry(party, {
        offers: view.offers(party).map(readOffer),
        accepted: view.acceptedOffers(party).map(readOffer),
        nowMicros: context.nowMicros(),
        hasWallet: (other) => view.parties.includes(other),
      }),
    toAct({ offer: { contractId }, state }) {
      const expire = state === 'open' ? expireOfferCommand : expireAcceptedCommand
      return {
        subject: contractId,
        priority: 'low',
        commands: () => [expire(contractId, party)],
      }
    },
  })
}
