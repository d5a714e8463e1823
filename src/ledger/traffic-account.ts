/**
 * What a member may still send. The base rate refills over its window and is used first; extra traffic
 * was bought, and what of it is used up never comes back. Pure: the store and the clock are elsewhere.
 */
export type TrafficAccount = {
  /** Bytes of extra traffic bought so far. */
  purchased: bigint
  /** Bytes of extra traffic used so far. */
  consumed: bigint
  /** Millionths of a byte of the base rate that were left at `baseAt`; finer than bytes, so that many small refills are worth one large. */
  base: bigint
  /** Microseconds since 1970. */
  baseAt: bigint
}

/** The parameters of the rules contract that decide about traffic. */
export type TrafficLimits = {
  /** Bytes of the base rate when it is full. */
  burstAmount: bigint
  /** In this time an empty base rate fills up. */
  burstWindowMicros: bigint
  /** What each reader adds to the cost, in ten-thousandths of the bytes. */
  readVsWriteScalingFactor: bigint
}

export type TrafficSpent = { base: bigint; extra: bigint }

const FRACTIONS = 1_000_000n
/** Larger bursts would leave the 64 bits of the store; nobody sends as much in a window. */
const BURST_BYTES_MAX = 9_000_000_000_000n
/** Everything on the embedded ledger is read by one participant. */
const READERS = 1n
/** Nodes that share a database may disagree this much about the time; a clock that goes back further was set. */
const CLOCK_SKEW_MICROS_MAX = 60_000_000n

/** What an update of so many bytes costs: writing it, and a small part of that for everyone who reads it. */
export function costOf(bytes: bigint, { readVsWriteScalingFactor }: TrafficLimits): bigint {
  return bytes + (bytes * READERS * atLeastZero(readVsWriteScalingFactor)) / 10_000n
}

/** A member that has sent nothing yet. */
export function firstAccount(
  limits: TrafficLimits,
  of: { purchased: bigint; nowMicros: bigint },
): TrafficAccount {
  return { purchased: of.purchased, consumed: 0n, base: fullBase(limits), baseAt: of.nowMicros }
}

/** The account at an instant: the base rate has grown since, at most to its burst. */
export function refill(
  account: TrafficAccount,
  limits: TrafficLimits,
  nowMicros: bigint,
): TrafficAccount {
  const full = fullBase(limits)
  const elapsed = nowMicros - account.baseAt
  if (elapsed <= 0n) {
    // Within the skew the later clock has already given what this one would give again.
    const baseAt = elapsed < -CLOCK_SKEW_MICROS_MAX ? nowMicros : account.baseAt
    return { ...account, base: least(account.base, full), baseAt }
  }
  const grown = account.base + (elapsed * full) / atLeastOne(limits.burstWindowMicros)
  return { ...account, base: least(grown, full), baseAt: nowMicros }
}

/** Whole bytes of the base rate and of extra traffic that may be used. */
export function availableOf(account: TrafficAccount): { base: bigint; extra: bigint } {
  const extra = account.purchased - account.consumed
  return { base: account.base / FRACTIONS, extra: extra > 0n ? extra : 0n }
}

/** The account after so many bytes; undefined when it cannot pay them. */
export function charge(account: TrafficAccount, cost: bigint): TrafficAccount | undefined {
  const { base, extra } = availableOf(account)
  if (cost > base + extra) return undefined
  const fromBase = least(cost, base)
  return {
    ...account,
    base: account.base - fromBase * FRACTIONS,
    consumed: account.consumed + cost - fromBase,
  }
}

function fullBase({ burstAmount }: TrafficLimits): bigint {
  return least(atLeastZero(burstAmount), BURST_BYTES_MAX) * FRACTIONS
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function atLeastZero(value: bigint): bigint {
  return value > 0n ? value : 0n
}

function atLeastOne(value: bigint): bigint {
  return value > 1n ? value : 1n
}
