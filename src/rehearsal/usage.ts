import type { WalletConfig } from '../config/node-config.ts'
import {
  availableOf,
  charge,
  costOf,
  firstAccount,
  refill,
  type TrafficAccount,
  type TrafficLimits,
} from '../ledger/traffic-account.ts'
import { createTrafficModel, MINUTE_MICROS } from './activity.ts'
import type { Assumptions } from './assumptions.ts'

/** The node's traffic: the ledger's own arithmetic, on what the model says that applications use. */
export type Usage = {
  state(): { purchased: bigint; consumed: bigint }
  bought(bytes: bigint): void
  /** An update of the automations themselves. */
  spent(bytes: bigint): void
  /** Uses traffic minute by minute up to an instant, or to the minute after which something is due. */
  useUntil(untilMicros: bigint, isDue: (atMicros: bigint) => boolean): bigint
  /** Bytes that could not be sent for want of traffic. */
  refused(): bigint
}

export function createUsage(of: {
  config: WalletConfig
  assumptions: Assumptions
  seed: string
  startMicros: bigint
}): Usage {
  const { assumptions, startMicros } = of
  const { baseRateTrafficLimits, readVsWriteScalingFactor } = assumptions.traffic
  const limits: TrafficLimits = {
    burstAmount: baseRateTrafficLimits.burstAmount,
    burstWindowMicros: baseRateTrafficLimits.burstWindow.microseconds,
    readVsWriteScalingFactor,
  }
  const model = createTrafficModel({
    seed: of.seed,
    average: assumptions.trafficPerSecond,
    target: of.config.topUp?.targetThroughput ?? assumptions.trafficPerSecond,
  })
  let account: TrafficAccount = firstAccount(limits, { purchased: 0n, nowMicros: startMicros })
  let usedUntil = startMicros
  let refused = 0n

  function use(bytes: bigint): void {
    const cost = costOf(bytes, limits)
    const { base, extra } = availableOf(account)
    const paid = cost < base + extra ? cost : base + extra
    refused += cost - paid
    account = charge(account, paid) ?? account
  }

  return {
    state: () => ({ purchased: account.purchased, consumed: account.consumed }),
    bought(bytes) {
      account = { ...account, purchased: account.purchased + bytes }
    },
    spent: use,
    useUntil(until, isDue) {
      while (usedUntil + MINUTE_MICROS <= until) {
        const bytes = model(usedUntil)
        usedUntil += MINUTE_MICROS
        account = refill(account, limits, usedUntil)
        use(bytes)
        if (isDue(usedUntil)) return usedUntil
      }
      return until
    },
    refused: () => refused,
  }
}
