import { badRequest } from '../http/plain-error.ts'
import { tapCoins, trafficCost } from '../ledger/rules.ts'
import { buyTraffic as buyChoice } from '../ledger/traffic.ts'
import { DECIMAL_MAX, type Decimal, divideDecimals } from '../values/decimal.ts'
import { buyTrafficCommand, resultOf, tapCommand } from './commands.ts'
import { type Once, recallEntry } from './once.ts'
import { pay, withFreshContracts } from './pay.ts'
import type { Wallet } from './wallet.ts'

/** Coins for the asking on a development network, and coins turned into traffic. */

export type TrafficRequest = {
  payer: string
  /** Traffic is bought for the participant of this party. */
  receiver: string
  synchronizerId: string
  bytes: bigint
  expiresAt: bigint
  trackingId: string
}

export type BoughtTraffic = { contractId: string; updateId: string }

export const TRAFFIC_KIND = 'traffic'

export function buyTraffic(
  wallet: Wallet,
  once: Once,
  request: TrafficRequest,
): Promise<BoughtTraffic> {
  const { payer, receiver, synchronizerId, bytes, expiresAt, trackingId } = request
  return once.carryOut(wallet, {
    party: payer,
    kind: TRAFFIC_KIND,
    trackingId,
    content: {
      receiver,
      synchronizerId,
      bytes: String(bytes),
      expiresAt: String(expiresAt),
    },
    async submit(commandId) {
      if (!(await wallet.participant.isKnownParty(receiver))) {
        throw badRequest(
          `The participant of this node does not host ${receiver}; traffic can be bought for its own parties only.`,
        )
      }
      return pay(wallet, {
        payer,
        commandId,
        workflowId: 'buy-traffic',
        priority: 'high',
        amount: ({ terms, price }) => trafficCost(terms, { bytes, amuletPrice: price }).coins,
        command: (network, coins) =>
          buyTrafficCommand(network, {
            provider: payer,
            coins,
            memberId: `PAR::${wallet.participantId}`,
            synchronizerId,
            migrationId: wallet.migrationId,
            bytes,
          }),
      })
    },
    read({ updateId, events }) {
      const contractId = resultOf(events, buyChoice)?.purchasedTraffic ?? ''
      return { contractId, updateId }
    },
    async recall(commandId) {
      const entry = await recallEntry(wallet, payer, commandId)
      return entry && { contractId: '', updateId: entry.transaction_id }
    },
  })
}

/** Coins worth so many USD at today's price. */
export function tap(
  wallet: Wallet,
  once: Once,
  of: { receiver: string; usd: Decimal; trackingId: string },
): Promise<string> {
  const { receiver, usd, trackingId } = of
  return once.carryOut(wallet, {
    party: receiver,
    kind: 'tap',
    trackingId,
    content: { usd: String(usd) },
    submit: (commandId) =>
      withFreshContracts(wallet, async (network) => {
        if (!network.isDevNet) {
          throw badRequest('Coins can be tapped on a development network only.')
        }
        const amount = divideDecimals(usd, network.price)
        if (amount === 0n) throw badRequest('The amount is less than the smallest coin.')
        if (amount > DECIMAL_MAX) {
          throw badRequest('The amount is worth more coins than one contract can hold: 10^28.')
        }
        return wallet.participant.submit({
          actAs: [receiver],
          commandId,
          workflowId: 'tap',
          commands: [tapCommand(network, { receiver, amount })],
          priority: 'low',
        })
      }),
    read: ({ events }) => resultOf(events, tapCoins)?.amuletSum.amulet ?? '',
  })
}
