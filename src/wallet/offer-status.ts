import { acceptedOffer, transferOffer } from '../ledger/transfer-offer.ts'
import type { ExercisedEvent, LedgerEvent, Transaction } from './ledger-event.ts'

/** How far the offer with a tracking id has come, as its sender asks. */
export type OfferStatus = {
  sender: string
  trackingId: string
  status: 'created' | 'accepted' | 'completed' | 'failed'
  updateId: string
  contractId: string
  failureKind?: 'expired' | 'rejected' | 'withdrawn'
  reason?: string
}

type Ending = Required<Pick<OfferStatus, 'failureKind'>>
/** The ways in which an offer ends without a transfer. */
const ENDINGS: Record<string, Ending['failureKind']> = {
  TransferOffer_Reject: 'rejected',
  TransferOffer_Withdraw: 'withdrawn',
  TransferOffer_Expire: 'expired',
  AcceptedTransferOffer_Abort: 'withdrawn',
  AcceptedTransferOffer_Withdraw: 'rejected',
  AcceptedTransferOffer_Expire: 'expired',
}

/** What a transaction says of offers, in the order in which it happened. */
export function offerStatusesOf({ events, updateId }: Transaction): OfferStatus[] {
  return events.flatMap((event) => {
    const status = event.kind === 'created' ? readMade(event) : readEnded(event)
    return status === undefined ? [] : [{ ...status, updateId }]
  })
}

function readMade(event: LedgerEvent & { kind: 'created' }) {
  const status =
    event.template === transferOffer.name
      ? ('created' as const)
      : event.template === acceptedOffer.name
        ? ('accepted' as const)
        : undefined
  if (status === undefined) return undefined
  const { sender, trackingId } = event.payload as { sender: string; trackingId: string }
  return { sender, trackingId, status, contractId: event.contractId }
}

type Result = {
  trackingInfo?: { trackingId: string; sender: string }
  transferResult?: { createdAmulets: { value: string }[] }
}

function readEnded(event: ExercisedEvent) {
  const { trackingInfo, transferResult } = (event.result ?? {}) as Result
  if (trackingInfo === undefined) return undefined
  const { sender, trackingId } = trackingInfo
  if (event.choice === 'AcceptedTransferOffer_Complete') {
    const contractId = transferResult?.createdAmulets[0]?.value ?? event.contractId
    return { sender, trackingId, status: 'completed' as const, contractId }
  }
  const failureKind = ENDINGS[event.choice]
  if (failureKind === undefined) return undefined
  const { reason } = (event.argument ?? {}) as { reason?: string }
  return {
    sender,
    trackingId,
    status: 'failed' as const,
    contractId: event.contractId,
    failureKind,
    ...(reason === undefined ? {} : { reason }),
  }
}
