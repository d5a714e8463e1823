import type { Decimal } from '../values/decimal.ts'
import type { Held } from './holdings.ts'

/** A transfer offer, open or accepted. */
export type Offer = {
  contractId: string
  sender: string
  receiver: string
  amount: Decimal
  expiresAtMicros: bigint
  trackingId: string
}

/** What a sender's offers to a receiver hold together. */
export function outstandingTo(
  offers: readonly Offer[],
  of: { sender: string; receiver: string },
): Decimal {
  return offers
    .filter(({ sender, receiver }) => sender === of.sender && receiver === of.receiver)
    .reduce((sum, { amount }) => sum + amount, 0n)
}

/** An offer as the view holds it. */
export function readOffer({ contractId, payload }: Held<'offer'> | Held<'acceptedOffer'>): Offer {
  const { sender, receiver, amount, expiresAt, trackingId } = payload
  return {
    contractId,
    sender,
    receiver,
    amount: amount.amount,
    expiresAtMicros: expiresAt,
    trackingId,
  }
}
