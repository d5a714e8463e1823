/** Where the time comes from: the machine, or a test that drives it. */
export type Clock = {
  /** Microseconds since 1970. */
  nowMicros(): bigint
  /** Only on a clock that stands still until it is moved: tells of each move; returns how to stop. */
  onMove?(listener: () => void): () => void
}

export type SimulatedClock = Clock & {
  /** Moves on; never back. */
  advance(micros: bigint): void
}

/**
 * The time of the machine, also after it slept or its clock was set; below the millisecond it is told
 * apart by the monotonic clock.
 */
export const systemClock: Clock = {
  nowMicros: () => BigInt(Date.now()) * 1000n + ((process.hrtime.bigint() / 1000n) % 1000n),
}

/** Stands still until it is advanced. */
export function createSimulatedClock(startMicros: bigint): SimulatedClock {
  let now = startMicros
  const listeners = new Set<() => void>()
  return {
    nowMicros: () => now,
    advance(micros) {
      if (micros < 0n) throw new RangeError('Time does not go back.')
      now += micros
      for (const tell of [...listeners]) tell()
    },
    onMove(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
