import {
  DECIMAL_ONE,
  type Decimal,
  decimal,
  divideDecimals,
  multiplyDecimals,
} from '../values/decimal.ts'
import { type Instant, instantFromMicros, printInThrees } from '../values/instant.ts'
import { type Decision, printAmount, printUsd } from './decision.ts'

/** The traffic top-up: so much traffic at a time that the wanted throughput never runs dry. */

export type TopUpRule = {
  /** Bytes a second; 0 buys nothing. */
  targetThroughput: number
  minTopupIntervalMs: number
  pollingIntervalMs: number
}

export type TopUpAmount = { bytes: bigint; intervalMs: number }

export type TrafficTerms = {
  /** USD for a million bytes. */
  extraTrafficPrice: Decimal
  minTopupAmount: bigint
  /** USD for a coin. */
  coinPrice: Decimal
  isDevNet: boolean
}

export type TopUpFacts = {
  terms: TrafficTerms
  /** Coins of the operator that are not locked. */
  balance: Decimal
  /** Bought traffic that is not used. */
  extraTrafficRemainder: bigint
  lastPurchasedAtMicros: bigint
  nowMicros: bigint
}

export type TopUpPlan = { bytes: bigint; cost: TrafficCost; intervalMs: number }
export type TrafficCost = { usd: Decimal; coins: Decimal }

const BYTES_PER_MEGABYTE = decimal('1000000')
/** Clocks of sound machines differ by less. A purchase further ahead was made by one that was wrong. */
const CLOCK_SKEW_MICROS = 60_000_000n

/**
 * At most one purchase is made in a poll, so the interval is rounded up to a multiple of it. What the
 * network sells at least may ask for a longer interval.
 */
export function topUpAmount(rule: TopUpRule, minTopupAmount: bigint): TopUpAmount {
  const throughput = BigInt(rule.targetThroughput)
  const poll = BigInt(rule.pollingIntervalMs)
  const bytesIn = (intervalMs: bigint) => divideUp(throughput * intervalMs, 1000n)
  let interval = divideUp(BigInt(rule.minTopupIntervalMs), poll) * poll
  if (bytesIn(interval) < minTopupAmount) {
    interval = divideUp(divideUp(minTopupAmount * 1000n, throughput), poll) * poll
  }
  return { bytes: bytesIn(interval), intervalMs: Number(interval) }
}

/** As the rules contract reckons it, to the last place. */
export function trafficCost(terms: TrafficTerms, bytes: bigint): TrafficCost {
  const megabytes = divideDecimals(bytes * DECIMAL_ONE, BYTES_PER_MEGABYTE)
  const usd = multiplyDecimals(megabytes, terms.extraTrafficPrice)
  return { usd, coins: divideDecimals(usd, terms.coinPrice) }
}

/** Whether the wallet could pay the next top-up. */
export function canPayTopUp(rule: TopUpRule, terms: TrafficTerms, balance: Decimal): boolean {
  if (rule.targetThroughput === 0 || terms.isDevNet) return true
  const { bytes } = topUpAmount(rule, terms.minTopupAmount)
  return balance >= trafficCost(terms, bytes).coins
}

export function decideTopUp(rule: TopUpRule, facts: TopUpFacts): Decision<TopUpPlan> {
  if (rule.targetThroughput === 0) {
    return { kind: 'wait', because: 'topup.targetThroughput is 0' }
  }
  const { terms, balance, extraTrafficRemainder: remainder } = facts
  const { bytes, intervalMs } = topUpAmount(rule, terms.minTopupAmount)
  const cost = trafficCost(terms, bytes)
  const price = `${bytes} bytes cost ${printUsd(cost.usd)} = ${printAmount(cost.coins)} coins`
  // No transaction that must fail: it would cost traffic, too.
  if (!terms.isDevNet && balance < cost.coins) {
    return {
      kind: 'wait',
      because: `${price}, and the wallet holds ${printAmount(balance)}; send coins to it`,
      isWarning: true,
    }
  }
  const nextAtMicros = facts.lastPurchasedAtMicros + BigInt(intervalMs) * 1000n
  if (facts.lastPurchasedAtMicros > facts.nowMicros + CLOCK_SKEW_MICROS) {
    return {
      kind: 'wait',
      because: `the last purchase is noted at ${printTime(facts.lastPurchasedAtMicros)}, and it is ${printTime(facts.nowMicros)} now; set the clock right, or buy traffic by hand until then`,
      isWarning: true,
      untilMicros: nextAtMicros,
    }
  }
  if (nextAtMicros > facts.nowMicros) {
    return {
      kind: 'wait',
      because: `the next purchase may be made at ${printTime(nextAtMicros)}, ${intervalMs / 1000} s after the last`,
      untilMicros: nextAtMicros,
    }
  }
  if (remainder >= bytes) {
    return {
      kind: 'wait',
      because: `${remainder} bytes of bought traffic are left, not less than the ${bytes} of a purchase`,
    }
  }
  return {
    kind: 'act',
    plan: { bytes, cost, intervalMs },
    what: `buy ${bytes} bytes of traffic for ${printAmount(cost.coins)} coins (${printUsd(cost.usd)})`,
    because: `${remainder} bytes of bought traffic are left, less than the ${bytes} that ${rule.targetThroughput} bytes a second need in ${intervalMs / 1000} s`,
  }
}

function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

function printTime(micros: bigint): string {
  return printInThrees(instantFromMicros(micros) as Instant)
}
