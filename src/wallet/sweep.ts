import { DECIMAL_ONE, type Decimal } from '../values/decimal.ts'
import {
  type ActParts,
  type Automation,
  type AutomationContext,
  createAutomation,
} from './automation.ts'
import { chooseCoins, readCoin, sumOf } from './coin-inputs.ts'
import { mergeCommand, offerCommand, sendCommand } from './commands.ts'
import { type Decision, printAmount, printUsd } from './decision.ts'
import { outstandingTo, readOffer } from './offer.ts'

/**
 * The sweep: when a party holds strictly more than the maximum, everything above the minimum goes to
 * the receiver. What is on its way there already, as open and accepted offers, counts as gone. Fees
 * are zero on the networks, so what is sent is what the receiver gets.
 */

export type SweepRule = {
  sender: string
  receiver: string
  maxBalanceUsd: Decimal
  minBalanceUsd: Decimal
  /** Sends at once to a receiver who agreed beforehand, instead of offering. */
  usePreapproval: boolean
}

export type SweepFacts = {
  /** The sender's coins that are not locked. */
  balance: Decimal
  /** USD for a coin, of the newest open round. */
  price: Decimal
  /** Open and accepted offers of the sender to the receiver. */
  outstanding: Decimal
}

export type SweepPlan = { receiver: string; amount: Decimal }

/** An offer that nobody accepted in this time is made anew, at the price of its day. */
export const SWEEP_OFFER_LIFETIME_MICROS = 600_000_000n

export function decideSweep(rule: SweepRule, facts: SweepFacts): Decision<SweepPlan> {
  const { sender, receiver } = rule
  const { balance, price } = facts
  if (sender === receiver) {
    return wait('the receiver is the sender itself; name another receiver', true)
  }
  if (price <= 0n) return wait('the network has no price for the coin', true)
  // A preapproved transfer is over when it is made; only offers stand between.
  const outstanding = rule.usePreapproval ? 0n : facts.outstanding
  const worth = rounded(balance * price)
  const isClose = printUsd(worth) === printUsd(rule.maxBalanceUsd)
  // Where cents would not tell them apart.
  const print = isClose ? (usd: Decimal) => `${printAmount(usd)} USD` : printUsd
  const held = `${printAmount(balance)} coins at ${printAmount(price)} USD are ${print(worth)}`
  const maximum = `the maximum of ${print(rule.maxBalanceUsd)}`
  // Products of two decimals have twenty places, and are compared as they are.
  const limit = rule.maxBalanceUsd * DECIMAL_ONE
  if (balance * price <= limit) return wait(`${held}, which is not above ${maximum}`)
  if ((balance - outstanding) * price <= limit) {
    return {
      kind: 'wait',
      because: `${held}, and with the ${printAmount(outstanding)} coins that are on their way to the receiver that is not above ${maximum}`,
      isNews: true,
    }
  }
  const dollars = rounded((balance - outstanding) * price - rule.minBalanceUsd * DECIMAL_ONE)
  const amount = smallerOf(divideHalfUp(dollars * DECIMAL_ONE, price), balance - outstanding)
  if (amount <= 0n) {
    return wait(
      `${held}, but the minimum of ${printUsd(rule.minBalanceUsd)} leaves nothing to send; it must be below ${maximum}`,
      true,
    )
  }
  const onTheWay = outstanding === 0n ? '' : `, ${printAmount(outstanding)} are on their way`
  return {
    kind: 'act',
    plan: { receiver, amount },
    what: `${rule.usePreapproval ? 'send' : 'offer'} ${printAmount(amount)} to ${receiver}`,
    because: `${held}, above ${maximum}${onTheWay}, and ${printUsd(rule.minBalanceUsd)} stay`,
  }
}

function wait(because: string, isWarning = false): Decision<SweepPlan> {
  return { kind: 'wait', because, ...(isWarning ? { isWarning } : {}) }
}

/** From twenty places to ten, half up. */
function rounded(product: bigint): Decimal {
  return divideHalfUp(product, DECIMAL_ONE)
}

/** The divisor is above zero. */
function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  const magnitude = ((dividend < 0n ? -dividend : dividend) * 2n + divisor) / (divisor * 2n)
  return dividend < 0n ? -magnitude : magnitude
}

function smallerOf(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

type DueSweep = SweepPlan & { preapproval: string | undefined }

export function sweepAutomation(
  context: AutomationContext,
  rule: SweepRule,
  intervalMs: number,
): Automation {
  const { view, network } = context
  const { sender, receiver } = rule
  const coins = () => view.coins(sender).map(readCoin)

  async function decide(): Promise<Decision<DueSweep>> {
    const preapproval = rule.usePreapproval ? await network.preapprovalOf(receiver) : undefined
    if (rule.usePreapproval && preapproval === undefined) {
      return {
        kind: 'wait',
        because: `${receiver} has no transfer preapproval; it must create one, or useTransferPreapproval be false`,
        isWarning: true,
      }
    }
    const { traffic } = await network.terms()
    const offers = [...view.offers(sender), ...view.acceptedOffers(sender)].map(readOffer)
    const decision = decideSweep(rule, {
      balance: sumOf(coins()),
      price: traffic.coinPrice,
      outstanding: outstandingTo(offers, rule),
    })
    if (decision.kind === 'wait') return decision
    return { ...decision, plan: { ...decision.plan, preapproval } }
  }

  async function toAct({ amount, preapproval }: DueSweep): Promise<ActParts> {
    const { dso, payment } = await network.terms()
    const priority = 'low'
    if (preapproval === undefined) {
      const expiresAt = context.nowMicros() + SWEEP_OFFER_LIFETIME_MICROS
      const commands = (trackingId: string) => [
        offerCommand({
          sender,
          receiver,
          dso,
          amount: { amount, unit: 'AmuletUnit' },
          description: `Sweep to ${receiver}`,
          expiresAt,
          trackingId,
        }),
      ]
      return { subject: receiver, priority, commands }
    }
    const chosen = chooseCoins(coins(), amount)
    if (chosen.kind === 'missing') throw new Error('A sweep sends what there is.')
    if (chosen.kind === 'merge') {
      const { inputs, total } = chosen
      const merge = mergeCommand(payment, { owner: sender, coins: inputs, total })
      const what = `make one of ${inputs.length} coins, to send more at once`
      return { subject: 'merge', what, priority, commands: () => [merge] }
    }
    const send = sendCommand(payment, {
      preapproval,
      sender,
      coins: chosen.inputs,
      amount,
      description: 'sweep',
    })
    return { subject: receiver, priority, commands: () => [send] }
  }

  const parts = { name: 'sweep' as const, party: sender, intervalMs, isEventDriven: false }
  return createAutomation(context, { ...parts, decide, toAct })
}
