import type { Clock } from './clock.ts'

/**
 * Waiting by a clock that may be the machine's or driven by a test: timers follow the clock, so that
 * whoever moves a simulated one wakes what was due in between.
 */

/** Timers are looked at again this often, since a machine may sleep or its clock be set. */
const RECHECK_MS = 10_000

/** Resolves when the clock has come to the instant, or when the signal aborts; look which it was. */
export async function sleepUntil(
  clock: Clock,
  micros: bigint,
  signal?: AbortSignal,
): Promise<void> {
  while (signal?.aborted !== true) {
    const left = micros - clock.nowMicros()
    if (left <= 0n) return
    await waitForMove(clock, left, signal)
  }
}

/** A schedule that knows the first instant strictly after a given one, such as a cron schedule. */
export type Recurrence = { next(after: Date): Date | undefined }

/** The first instant of the schedule after the given one; undefined when there is none. */
export function nextOf(recurrence: Recurrence, afterMicros: bigint): bigint | undefined {
  const next = recurrence.next(new Date(Number(afterMicros / 1000n)))
  return next === undefined ? undefined : BigInt(next.getTime()) * 1000n
}

/**
 * The window that is open at an instant: it opened at the last time of the schedule and lasts for the
 * duration. Undefined outside.
 */
export function openWindow(
  recurrence: Recurrence,
  durationMicros: bigint,
  nowMicros: bigint,
): { opensAt: bigint; closesAt: bigint } | undefined {
  // The schedule only looks forward: the first time after now − duration is the first that is still open.
  const opensAt = nextOf(recurrence, nowMicros - durationMicros)
  if (opensAt === undefined || opensAt > nowMicros) return undefined
  const closesAt = opensAt + durationMicros
  return closesAt > nowMicros ? { opensAt, closesAt } : undefined
}

export type EveryOptions = {
  clock: Clock
  intervalMs: number
  /** The part of the interval by which it varies, half of it either way: 0.2 is ±10 %. */
  jitter?: number
  /** From 0 up to 1; for tests. */
  random?: () => number
  /** Returns whether it did something; then it runs again at once. */
  run(signal: AbortSignal): Promise<boolean>
  /** Hears of a run that failed; the next one comes after the interval. */
  onError(error: unknown): void
}

export type Recurring = {
  /** When the next run is due; undefined while one is under way. */
  readonly nextMicros: bigint | undefined
  /** Runs now instead of at the next time. */
  wake(): void
  /** Waits for the run that is under way; there is no other. */
  close(): Promise<void>
}

/** Runs once at once, then after every interval, one run at a time. */
export function every(options: EveryOptions): Recurring {
  const { clock, intervalMs, jitter = 0, random = Math.random } = options
  const stop = new AbortController()
  let pause = new AbortController()
  let nextMicros: bigint | undefined

  async function runOnce(): Promise<boolean> {
    try {
      return await options.run(stop.signal)
    } catch (error) {
      if (!stop.signal.aborted) options.onError(error)
      return false
    }
  }

  async function runForEver(): Promise<void> {
    while (!stop.signal.aborted) {
      pause = new AbortController()
      if (await runOnce()) continue
      if (pause.signal.aborted) continue
      nextMicros = clock.nowMicros() + varied(intervalMs, jitter, random())
      await sleepUntil(clock, nextMicros, AbortSignal.any([stop.signal, pause.signal]))
      nextMicros = undefined
    }
  }

  const running = runForEver()
  return {
    get nextMicros() {
      return nextMicros
    },
    wake: () => pause.abort(),
    async close() {
      stop.abort()
      await running
    },
  }
}

function varied(intervalMs: number, jitter: number, random: number): bigint {
  return BigInt(Math.round(intervalMs * 1000 * (1 + jitter * (random - 0.5))))
}

/** Until the clock is moved by whoever drives it; on a clock that runs by itself, until its time may have come. */
function waitForMove(clock: Clock, leftMicros: bigint, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const millis = Math.min(RECHECK_MS, Math.ceil(Number(leftMicros) / 1000))
    const timer = clock.onMove === undefined ? setTimeout(done, millis) : undefined
    const unwatch = clock.onMove?.(done)
    signal?.addEventListener('abort', done)
    function done(): void {
      clearTimeout(timer)
      unwatch?.()
      signal?.removeEventListener('abort', done)
      resolve()
    }
  })
}
