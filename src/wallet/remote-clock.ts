import { setTimeout as wait } from 'node:timers/promises'
import { type Clock, systemClock } from '../base/clock.ts'
import type { Participant } from './participant.ts'

export type RemoteClock = Clock & { close(): Promise<void> }

/** A test that moves the time of a participant elsewhere is noticed so soon. */
const POLL_MS = 100

/**
 * The time of a participant elsewhere: the machine's, unless that participant's time is simulated; then
 * it is followed.
 */
export async function openRemoteClock(participant: Participant): Promise<RemoteClock> {
  const simulated = await participant.simulatedTime()
  if (simulated === undefined) return { ...systemClock, close: async () => {} }
  const stop = new AbortController()
  const listeners = new Set<() => void>()
  let now = simulated

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      await wait(POLL_MS, undefined, { signal: stop.signal }).catch(() => {})
      const latest = await participant.simulatedTime().catch(() => undefined)
      if (latest === undefined || latest <= now) continue
      now = latest
      for (const tell of [...listeners]) tell()
    }
  }

  const following = follow()
  return {
    nowMicros: () => now,
    onMove(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async close() {
      stop.abort()
      await following
    },
  }
}
