import { createRandom, type Random } from '../base/random.ts'

/**
 * The model of what goes on around a node: what comes in, what traffic its applications use, how the
 * coin's price moves. Everything follows from the seed.
 */
export type ActivityOptions = {
  seed: string
  days: number
  startMicros: bigint
  /** Who earns, and how much USD a day on average. */
  earners: readonly { party: string; usdPerDay: number }[]
  /** Who is offered coins by whom, and how much USD a day on average. */
  offers: readonly { sender: string; receiver: string; usdPerDay: number }[]
}

export type Activity =
  | { kind: 'payment'; at: bigint; receiver: string; usd: number }
  | { kind: 'offer'; at: bigint; sender: string; receiver: string; usd: number }
  /** The price is multiplied. */
  | { kind: 'price'; at: bigint; factor: number }

const SECOND = 1_000_000n
export const MINUTE_MICROS = 60n * SECOND
export const HOUR_MICROS = 60n * MINUTE_MICROS
export const DAY_MICROS = 24n * HOUR_MICROS

/** Payments of an earner on an average day. */
const PAYMENTS_PER_DAY = 12
/** A price may move so far in a day, either way. */
const PRICE_MOVE = 0.05
/** Numbers drawn have this many steps. */
const STEPS = 1_000_000

/** Everything that happens from outside, in the order of time. */
export function drawActivity(options: ActivityOptions): Activity[] {
  const { seed, days, startMicros } = options
  const all: Activity[] = []
  const endMicros = startMicros + BigInt(days) * DAY_MICROS
  for (const { party: receiver, usdPerDay } of options.earners) {
    const random = createRandom(`${seed}/payments/${receiver}`)
    for (const at of arrivals(random, PAYMENTS_PER_DAY, startMicros, endMicros)) {
      const usd = (exponential(random) * usdPerDay) / PAYMENTS_PER_DAY
      all.push({ kind: 'payment', at, receiver, usd })
    }
  }
  for (const { sender, receiver, usdPerDay } of options.offers) {
    const random = createRandom(`${seed}/offers/${sender}/${receiver}`)
    for (const at of arrivals(random, 1, startMicros, endMicros)) {
      all.push({ kind: 'offer', at, sender, receiver, usd: exponential(random) * usdPerDay })
    }
  }
  const random = createRandom(`${seed}/price`)
  for (let day = 1; day < days; day += 1) {
    const factor = 1 + PRICE_MOVE * (2 * unit(random) - 1)
    all.push({ kind: 'price', at: startMicros + BigInt(day) * DAY_MICROS, factor })
  }
  return all.toSorted((a, b) => (a.at < b.at ? -1 : 1))
}

/** Traffic of applications in a minute that begins at an instant. */
export type TrafficModel = (atMicros: bigint) => bigint

/** Of each day, so long the applications use all that the target allows. */
const BURST_MINUTES = 2

/**
 * Two thirds of the average at night, four thirds at noon, each minute anything from nothing to twice
 * that; and once a day two minutes at the target.
 */
export function createTrafficModel(of: {
  seed: string
  /** Bytes a second. */
  average: number
  target: number
}): TrafficModel {
  const { seed, average, target } = of
  const random = createRandom(`${seed}/traffic`)
  const bursts = new Map<bigint, number>()

  function burstOf(day: bigint): number {
    const minute = bursts.get(day) ?? createRandom(`${seed}/burst/${day}`)(1440 - BURST_MINUTES)
    bursts.set(day, minute)
    return minute
  }

  return (at) => {
    const day = at / DAY_MICROS
    const minute = Number((at % DAY_MICROS) / MINUTE_MICROS)
    const since = minute - burstOf(day)
    if (since >= 0 && since < BURST_MINUTES && average > 0) return BigInt(target) * 60n
    const dayCurve = 1 - Math.cos((minute / 1440) * 2 * Math.PI) / 3
    return BigInt(Math.round(average * dayCurve * 2 * unit(random) * 60))
  }
}

/** A Poisson process of so many a day. */
function* arrivals(random: Random, perDay: number, start: bigint, end: bigint): Generator<bigint> {
  let at = start
  for (;;) {
    at += BigInt(Math.round((exponential(random) / perDay) * Number(DAY_MICROS)))
    if (at >= end) return
    yield at
  }
}

/** 1 on average, often less, sometimes much more. */
function exponential(random: Random): number {
  return -Math.log(1 - unit(random))
}

/** From 0 up to 1. */
export function unit(random: Random): number {
  return random(STEPS) / STEPS
}
