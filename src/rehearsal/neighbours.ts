import type { Random } from '../base/random.ts'
import type { WalletConfig } from '../config/node-config.ts'
import { createCommand, exerciseCommand } from '../ledger/network.ts'
import { chooseInputs, coinsOf } from '../ledger/payments.ts'
import {
  acceptedOffer,
  acceptOffer,
  completeOffer,
  transferOffer,
} from '../ledger/transfer-offer.ts'
import type { Decimal } from '../values/decimal.ts'
import { DAY_MICROS, MINUTE_MICROS } from './activity.ts'
import type { Cast } from './cast.ts'
import type { World } from './world.ts'

/** Those outside who answer: they accept most offers after a while, and pay what was accepted of theirs. */
export type Neighbours = {
  prepare(): Promise<void>
  /** Somebody outside offers coins to a wallet. */
  offer(of: { sender: string; receiver: string; amount: Decimal }): Promise<void>
  /** Takes note of offers that were made to them and of theirs that were accepted. */
  react(): Promise<void>
  nextAt(): bigint
  /** Does what they meant to do by now; tells whether they did something. */
  actAt(nowMicros: bigint): Promise<boolean>
}

/** Beyond every rehearsal. */
export const NEVER = 2n ** 62n
/** One offer in so many is forgotten, and lapses. */
const FORGOTTEN_IN = 20
/** Long enough to last for any rehearsal. */
const PREAPPROVAL_DAYS = 3650n
const OFFER_DAYS = 1n

export function createNeighbours(
  world: World,
  of: { cast: Cast; config: WalletConfig; random: Random },
): Neighbours {
  const { ledger, clock, view } = world
  const { cast, config, random } = of
  const isOutside = (party: string) => !cast.wallets.includes(party)
  const seen = new Set<string>()
  const plans: { at: bigint; act(): Promise<void> }[] = []
  let offers = 0

  async function accept(contractId: string, receiver: string): Promise<void> {
    if (view.find('offer', contractId) === undefined) return
    const step = { template: transferOffer, contractId, choice: acceptOffer, argument: {} }
    await ledger.submit({ actAs: [receiver], commands: [exerciseCommand(ledger, step)] })
  }

  async function complete(contractId: string, sender: string, amount: Decimal): Promise<void> {
    const chosen = chooseInputs(await coinsOf(ledger, sender), amount)
    if (chosen === undefined) throw new Error('Outside there is always enough.')
    const { rules, round } = await world.network()
    await ledger.submit({
      actAs: [sender],
      commands: [
        exerciseCommand(ledger, {
          template: acceptedOffer,
          contractId,
          choice: completeOffer,
          argument: {
            inputs: chosen.inputs,
            transferContext: { amuletRules: rules, openMiningRound: round },
            walletProvider: sender,
          },
        }),
      ],
    })
  }

  return {
    async prepare() {
      const receivers = config.sweeps
        .filter(({ useTransferPreapproval }) => useTransferPreapproval)
        .map(({ receiver }) => receiver)
      for (const receiver of new Set(receivers)) {
        const provider = isOutside(receiver) ? receiver : cast.operator
        const expiresAtMicros = clock.nowMicros() + PREAPPROVAL_DAYS * DAY_MICROS
        await world.givePreapproval({ receiver, provider, expiresAtMicros })
      }
    },
    async offer({ sender, receiver, amount }) {
      await world.payIn(sender, amount)
      offers += 1
      await ledger.submit({
        actAs: [sender],
        commands: [
          createCommand(ledger, transferOffer, {
            sender,
            receiver,
            dso: cast.dso,
            amount: { amount, unit: 'AmuletUnit' },
            description: 'An offer of the rehearsal',
            expiresAt: clock.nowMicros() + OFFER_DAYS * DAY_MICROS,
            trackingId: `outside-${offers}`,
          }),
        ],
      })
    },
    async react() {
      await world.settle()
      for (const wallet of cast.wallets) {
        for (const { contractId, payload } of view.offers(wallet)) {
          const { receiver } = payload
          if (!isOutside(receiver) || seen.has(contractId)) continue
          seen.add(contractId)
          if (random(FORGOTTEN_IN) === 0) continue
          const at = clock.nowMicros() + BigInt(1 + random(8)) * MINUTE_MICROS
          plans.push({ at, act: () => accept(contractId, receiver) })
        }
        for (const { contractId, payload } of view.acceptedOffers(wallet)) {
          const { sender, amount } = payload
          if (!isOutside(sender) || seen.has(contractId)) continue
          seen.add(contractId)
          const at = clock.nowMicros() + MINUTE_MICROS
          plans.push({ at, act: () => complete(contractId, sender, amount.amount) })
        }
      }
    },
    nextAt: () => plans.reduce((first, { at }) => (at < first ? at : first), NEVER),
    async actAt(now) {
      const due = plans.filter(({ at }) => at <= now)
      for (const plan of due) {
        plans.splice(plans.indexOf(plan), 1)
        await plan.act()
      }
      return due.length > 0
    },
  }
}
