import type { WalletConfig } from '../config/node-config.ts'
import { NETWORK_TRAFFIC, type TrafficParameters } from '../ledger/rules.ts'
import { type Decimal, decimal, parseDecimal } from '../values/decimal.ts'

/** What a rehearsal takes for granted; the operator may know better. */
export type Assumptions = {
  /** USD for a coin on the first day. */
  price: Decimal
  /** What a wallet receives a day on average, in USD. */
  incomeUsd(party: string): number
  /** What a wallet starts with. */
  balanceUsd(party: string): Decimal
  /** Bytes a second that applications send on average. */
  trafficPerSecond: number
  /** Of the network: base rate, price, least purchase. */
  traffic: TrafficParameters
}

export type Wishes = {
  price?: Decimal
  incomeUsd?: number
  balanceUsd?: Decimal
  trafficPerSecond?: number
  /** USD for a million bytes. */
  trafficPrice?: Decimal
}

const PRICE = decimal('0.15')
/** Of what lies between minimum and maximum, a sweeping wallet earns a third a day. */
const SWEEPS_PER_DAY = 1 / 3
const INCOME_USD = 100
const BALANCE_USD = decimal('100')
/** Of the throughput that the operator wants to be able to use, applications use this part on average. */
const TRAFFIC_SHARE = 0.015

export function assume(config: WalletConfig, wishes: Wishes): Assumptions {
  const sweepOf = (party: string) => config.sweeps.find(({ sender }) => sender === party)
  return {
    price: wishes.price ?? PRICE,
    incomeUsd(party) {
      if (wishes.incomeUsd !== undefined) return wishes.incomeUsd
      const sweep = sweepOf(party)
      if (sweep === undefined) return INCOME_USD
      const span = Number(sweep.maxBalanceUsd) - Number(sweep.minBalanceUsd)
      return Math.max(1, span * SWEEPS_PER_DAY)
    },
    balanceUsd(party) {
      if (wishes.balanceUsd !== undefined) return wishes.balanceUsd
      const sweep = sweepOf(party)
      return sweep === undefined
        ? BALANCE_USD
        : (parseDecimal(sweep.minBalanceUsd.slice(0, 20)) ?? BALANCE_USD)
    },
    trafficPerSecond:
      wishes.trafficPerSecond ?? (config.topUp?.targetThroughput ?? 0) * TRAFFIC_SHARE,
    traffic: {
      ...NETWORK_TRAFFIC,
      ...(wishes.trafficPrice === undefined ? {} : { extraTrafficPrice: wishes.trafficPrice }),
    },
  }
}
