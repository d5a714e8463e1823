import { hash } from 'node:crypto'
import { notFound, PlainError } from '../http/plain-error.ts'
import { createPreapproval as createChoice } from '../ledger/preapproval.ts'
import type { Decimal } from '../values/decimal.ts'
import {
  cancelPreapprovalCommand,
  createPreapprovalCommand,
  resultOf,
  sendCommand,
} from './commands.ts'
import type { Held } from './holdings.ts'
import { type Once, recallEntry } from './once.ts'
import { pay, withFreshContracts } from './pay.ts'
import { catchUp, type Wallet, waitForView } from './wallet.ts'

/** Preapprovals: a receiver agrees beforehand, and senders pay without asking. */

/** The one that has not ended and that this node provides. */
export function findPreapproval(
  { view }: Pick<Wallet, 'view'>,
  receiver: string,
  nowMicros: bigint,
): Held<'preapproval'> | undefined {
  return view
    .preapprovals(receiver)
    .filter(({ payload }) => payload.receiver === receiver && payload.expiresAt > nowMicros)
    .toSorted((a, b) => (a.payload.expiresAt < b.payload.expiresAt ? 1 : -1))[0]
}

export type CreatedPreapproval = { contractId: string; isNew: boolean }

export function createPreapproval(wallet: Wallet, receiver: string): Promise<CreatedPreapproval> {
  return wallet.turns.take(receiver, () =>
    withFreshContracts(wallet, async (network) => {
      const nowMicros = await wallet.participant.now()
      const known = findPreapproval(wallet, receiver, nowMicros)
      if (known !== undefined) return { contractId: known.contractId, isNew: false }
      const { operator: provider } = wallet
      const expiresAt = nowMicros + BigInt(wallet.preapprovalLifetimeMs) * 1000n
      const done = await wallet.participant.submit({
        actAs: [...new Set([receiver, provider])],
        // Of two requests at the same time one is accepted, and the other finds what it has made.
        commandId: `annals-preapproval-${hash('sha256', receiver)}-${wallet.view.end}`,
        workflowId: 'preapproval',
        commands: [createPreapprovalCommand(network, { receiver, provider, expiresAt })],
        priority: 'low',
      })
      await waitForView(wallet, done.offset)
      const result = resultOf(done.events, createChoice)
      if (result === undefined) throw new TypeError('A preapproval that was made has an id.')
      return { contractId: result.transferPreapprovalCid, isNew: true }
    }),
  )
}

/** One after another, so that whoever comes second is told that there is none any more. */
export function cancelPreapproval(wallet: Wallet, receiver: string): Promise<void> {
  return wallet.turns.take(receiver, () => cancelNow(wallet, receiver))
}

async function cancelNow(wallet: Wallet, receiver: string): Promise<void> {
  await catchUp(wallet)
  const known = findPreapproval(wallet, receiver, await wallet.participant.now())
  if (known === undefined) throw noPreapproval(receiver)
  const { provider } = known.payload
  const actor = wallet.view.parties.includes(receiver) ? receiver : provider
  const done = await wallet.participant.submit({
    actAs: [actor],
    commandId: `annals-cancel-${known.contractId}`,
    workflowId: 'preapproval',
    commands: [cancelPreapprovalCommand(known.contractId, actor)],
    priority: 'low',
  })
  await waitForView(wallet, done.offset)
}

export type NewPayment = {
  sender: string
  receiver: string
  amount: Decimal
  description: string | null
  trackingId: string
}

/** A payment to a receiver who has agreed beforehand. */
export async function sendPayment(
  wallet: Wallet,
  once: Once,
  payment: NewPayment,
): Promise<{ transaction_id: string }> {
  const { sender, receiver, amount, description, trackingId } = payment
  return once.carryOut(wallet, {
    party: sender,
    kind: 'send',
    trackingId,
    content: { receiver, amount: String(amount), description },
    submit: (commandId) =>
      pay(wallet, {
        payer: sender,
        commandId,
        workflowId: 'send',
        amount: () => amount,
        async command(network, coins) {
          const preapproval = await wallet.network.preapproval(receiver)
          if (preapproval === undefined) {
            throw new PlainError(
              400,
              `${receiver} has given no preapproval, or it has ended. Send a transfer offer instead.`,
            )
          }
          const { contractId } = preapproval
          return sendCommand(network, {
            preapproval: contractId,
            sender,
            coins,
            amount,
            description,
          })
        },
      }),
    read: ({ updateId }) => ({ transaction_id: updateId }),
    async recall(commandId) {
      const entry = await recallEntry(wallet, sender, commandId)
      return entry && { transaction_id: entry.transaction_id }
    },
  })
}

export function noPreapproval(receiver: string): PlainError {
  return notFound(
    `${receiver} has no preapproval from this node. The receiver creates one in its wallet.`,
  )
}
