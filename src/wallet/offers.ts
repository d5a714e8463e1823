import { notFound, PlainError } from '../http/plain-error.ts'
import { acceptOffer as acceptChoice } from '../ledger/transfer-offer.ts'
import type { Decimal } from '../values/decimal.ts'
import {
  acceptCommand,
  offerCommand,
  rejectCommand,
  resultOf,
  withdrawCommand,
} from './commands.ts'
import type { Held } from './holdings.ts'
import type { Once } from './once.ts'
import type { Command } from './participant.ts'
import { catchUp, type Wallet } from './wallet.ts'
import { selectOfferStatus, selectRequest } from './wallet-store.ts'

/** Offers of coins: the sender makes and withdraws them, the receiver accepts or rejects them. */

export type NewOffer = {
  sender: string
  receiver: string
  amount: Decimal
  description: string
  expiresAt: bigint
  trackingId: string
}

export async function createOffer(wallet: Wallet, once: Once, offer: NewOffer): Promise<string> {
  const { sender, receiver, amount, description, expiresAt, trackingId } = offer
  return once.carryOut(wallet, {
    party: sender,
    kind: 'offer',
    trackingId,
    content: { receiver, amount: String(amount), description, expiresAt: String(expiresAt) },
    async submit(commandId) {
      const payload = {
        sender,
        receiver,
        dso: await wallet.network.dso(),
        amount: { amount, unit: 'AmuletUnit' as const },
        description,
        expiresAt,
        trackingId,
      }
      const commands = [offerCommand(payload)]
      const workflowId = 'offer'
      return wallet.participant.submit({
        actAs: [sender],
        commandId,
        commands,
        workflowId,
        priority: 'low',
      })
    },
    read({ events }) {
      const created = events.find((event) => event.kind === 'created')
      if (created === undefined) throw new TypeError('An offer that was made has been created.')
      return created.contractId
    },
    async recall() {
      const status = await selectOfferStatus(wallet.db, { sender, trackingId })
      if (status === undefined || status.status === 'created') return status?.contractId
      // The offer itself is gone; the ledger, which forgets commands, must not be asked for another.
      throw new PlainError(
        409,
        `The offer with the tracking id ${trackingId} was made before and is ${status.status}. Ask for its status.`,
      )
    },
  })
}

export function acceptOffer(
  wallet: Wallet,
  once: Once,
  of: { party: string; contractId: string },
): Promise<string> {
  return endOffer(wallet, once, {
    ...of,
    kind: 'accept',
    isMine: (offer) => offer.payload.receiver === of.party,
    command: acceptCommand(of.contractId),
    read: (events) => resultOf(events, acceptChoice)?.acceptedTransferOffer ?? '',
  })
}

export async function rejectOffer(
  wallet: Wallet,
  once: Once,
  of: { party: string; contractId: string },
): Promise<void> {
  await endOffer(wallet, once, {
    ...of,
    kind: 'reject',
    isMine: (offer) => offer.payload.receiver === of.party,
    command: rejectCommand(of.contractId),
    read: () => '',
  })
}

export async function withdrawOffer(
  wallet: Wallet,
  once: Once,
  of: { party: string; contractId: string },
): Promise<void> {
  await endOffer(wallet, once, {
    ...of,
    kind: 'withdraw',
    isMine: (offer) => offer.payload.sender === of.party,
    command: withdrawCommand(of.contractId, 'withdrawn by the sender'),
    read: () => '',
  })
}

/** The contract id is the tracking id: whoever repeats the request gets the same answer. */
async function endOffer(
  wallet: Wallet,
  once: Once,
  of: {
    party: string
    contractId: string
    kind: string
    isMine(offer: Held<'offer'>): boolean
    command: Command
    read(events: Parameters<typeof resultOf>[0]): string
  },
): Promise<string> {
  const { party, contractId, kind } = of
  const key = { party, kind, trackingId: contractId }
  if (!isOpen(wallet, of) && (await selectRequest(wallet.db, key)) === undefined) {
    await catchUp(wallet)
    if (!isOpen(wallet, of)) {
      throw notFound(
        `There is no open transfer offer ${shortened(contractId)} that you may ${kind}. It may have been accepted, rejected, withdrawn or expired.`,
      )
    }
  }
  return once.carryOut(wallet, {
    ...key,
    content: {},
    submit: (commandId) =>
      wallet.participant.submit({
        actAs: [party],
        commandId,
        commands: [of.command],
        workflowId: 'offer',
        priority: 'low',
      }),
    read: ({ events }) => of.read(events),
  })
}

function isOpen(
  { view }: Wallet,
  of: { party: string; contractId: string; isMine(offer: Held<'offer'>): boolean },
): boolean {
  const offer = view.find('offer', of.contractId)
  return offer !== undefined && of.isMine(offer)
}

function shortened(id: string): string {
  return id.length <= 24 ? id : `${id.slice(0, 24)}…`
}
