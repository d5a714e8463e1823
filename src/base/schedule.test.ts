import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Clock, createSimulatedClock, systemClock } from './clock.ts'
import { every, nextOf, openWindow, sleepUntil } from './schedule.ts'

const SECOND = 1_000_000n

test('who sleeps by a simulated clock wakes when it is moved far enough, and only then', async () => {
  const clock = createSimulatedClock(0n)
  let isAwake = false
  const sleeping = sleepUntil(clock, 10n * SECOND).then(() => {
    isAwake = true
  })
  clock.advance(9n * SECOND)
  await tick()
  assert.equal(isAwake, false)
  clock.advance(1n * SECOND)
  await sleeping
})

test('a sleep ends at once when its signal aborts, before or during it', async () => {
  const clock = createSimulatedClock(0n)
  await sleepUntil(clock, SECOND, AbortSignal.abort())
  const stop = new AbortController()
  const sleeping = sleepUntil(clock, SECOND, stop.signal)
  stop.abort()
  await sleeping
})

test('a sleep by the clock of the machine lasts as long as it should', async () => {
  const wakeAt = systemClock.nowMicros() + 20_000n
  await sleepUntil(systemClock, wakeAt)
  assert.ok(systemClock.nowMicros() >= wakeAt)
})

test('a sleep by a clock that is set back goes on until the instant has come again', async () => {
  const times = [5n * SECOND, 4_990_000n, 4_999_000n, 5n * SECOND]
  const clock: Clock = { nowMicros: () => times.shift() ?? 5n * SECOND }
  times.shift()
  await sleepUntil(clock, 5n * SECOND)
  assert.equal(times.length, 0)
})

test('a recurring run comes at once, after each interval, again after work, and when it is woken', async () => {
  const clock = createSimulatedClock(0n)
  let runs = 0
  let work = 2
  const recurring = every({
    clock,
    intervalMs: 30_000,
    run: async () => {
      runs += 1
      work -= 1
      return work > 0
    },
    onError: assert.fail,
  })
  await tick()
  assert.equal(runs, 2, 'again after work')
  assert.equal(recurring.nextMicros, 30n * SECOND)
  clock.advance(29n * SECOND)
  await tick()
  assert.equal(runs, 2)
  clock.advance(3600n * SECOND)
  await tick()
  assert.equal(runs, 3, 'once for however long a jump')
  recurring.wake()
  await tick()
  assert.equal(runs, 4)
  await recurring.close()
  clock.advance(3600n * SECOND)
  await tick()
  assert.equal(runs, 4)
})

test('a run that fails is told, and the next one comes after the interval', async () => {
  const clock = createSimulatedClock(0n)
  const told: unknown[] = []
  let runs = 0
  const recurring = every({
    clock,
    intervalMs: 1000,
    run: async () => {
      runs += 1
      throw new Error(`run ${runs}`)
    },
    onError: (error) => told.push((error as Error).message),
  })
  await tick()
  clock.advance(SECOND)
  await tick()
  await recurring.close()
  assert.deepEqual(told, ['run 1', 'run 2'])
})

test('a jitter of 0.2 varies the interval by at most ten percent either way', async () => {
  for (const [random, expected] of [
    [0, 27n],
    [0.5, 30n],
    [1, 33n],
  ] as const) {
    const recurring = every({
      clock: createSimulatedClock(0n),
      intervalMs: 30_000,
      jitter: 0.2,
      random: () => random,
      run: async () => false,
      onError: assert.fail,
    })
    await tick()
    assert.equal(recurring.nextMicros, expected * SECOND)
    await recurring.close()
  }
})

/** Every day at the given second of the day. */
const daily = (second: number) => ({
  next(after: Date) {
    const day = 86_400_000
    const start = Math.floor(after.getTime() / day) * day + second * 1000
    return new Date(start > after.getTime() ? start : start + day)
  },
})

test('a window is open from its time for its duration', () => {
  const minute = 60n * SECOND
  for (const [now, expected] of [
    [599n, undefined],
    [600n, 600n],
    [659n, 600n],
    [660n, undefined],
    [86_400n + 601n, 86_400n + 600n],
  ] as const) {
    assert.equal(
      openWindow(daily(600), minute, now * SECOND)?.opensAt,
      expected === undefined ? undefined : expected * SECOND,
      String(now),
    )
  }
})

test('a window is open exactly when a time of the schedule lies less than the duration back', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 86_399 }),
      fc.integer({ min: 1, max: 200_000 }),
      fc.bigInt({ min: 10n ** 12n, max: 2n * 10n ** 12n }),
      (second, duration, now) => {
        const last = lastBefore(second, now)
        const isOpen = now - last < BigInt(duration) * SECOND
        const found = openWindow(daily(second), BigInt(duration) * SECOND, now)
        assert.equal(found !== undefined, isOpen)
        if (found !== undefined) assert.ok(found.opensAt <= now && now < found.closesAt)
      },
    ),
  )
})

test('the next time of a schedule is told in microseconds', () => {
  assert.equal(nextOf(daily(600), 0n), 600n * SECOND)
  assert.equal(nextOf({ next: () => undefined }, 0n), undefined)
})

function lastBefore(second: number, now: bigint): bigint {
  const day = 86_400n * SECOND
  const today = (now / day) * day + BigInt(second) * SECOND
  return today <= now ? today : today - day
}

/** Lets everything run that only waits for promises. */
function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
