import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  availableOf,
  charge,
  costOf,
  firstAccount,
  refill,
  type TrafficAccount,
  type TrafficLimits,
} from './traffic-account.ts'

/** The parameters that the deployed networks begin with. */
const LIMITS: TrafficLimits = {
  burstAmount: 400_000n,
  burstWindowMicros: 1_200_000_000n,
  readVsWriteScalingFactor: 4n,
}
const SECOND = 1_000_000n
const MINUTE = 60n * SECOND

const empty: TrafficAccount = { purchased: 0n, consumed: 0n, base: 0n, baseAt: 0n }

test('an empty base rate refills linearly over its window', () => {
  for (const [elapsed, bytes] of [
    [0n, 0n],
    [1n * SECOND, 333n],
    [3n * SECOND, 1000n],
    [1n * MINUTE, 20_000n],
    [10n * MINUTE, 200_000n],
    [20n * MINUTE - 1n, 399_999n],
    [20n * MINUTE, 400_000n],
    [21n * MINUTE, 400_000n],
    [1_000_000n * MINUTE, 400_000n],
  ] as const) {
    assert.equal(availableOf(refill(empty, LIMITS, elapsed)).base, bytes, `${elapsed}`)
  }
})

test('the base rate is used first, then extra traffic, and what cannot be paid changes nothing', () => {
  const account = { ...empty, base: 1000n * 1_000_000n, purchased: 500n }
  for (const [cost, base, extra] of [
    [0n, 1000n, 500n],
    [999n, 1n, 500n],
    [1000n, 0n, 500n],
    [1001n, 0n, 499n],
    [1500n, 0n, 0n],
  ] as const) {
    const paid = charge(account, cost)
    assert.deepEqual(paid && availableOf(paid), { base, extra }, `${cost}`)
  }
  assert.equal(charge(account, 1501n), undefined)
})

test('a cost is the bytes and the readers’ part of them', () => {
  assert.equal(costOf(10_000n, LIMITS), 10_004n)
  assert.equal(costOf(2_499n, LIMITS), 2_499n)
  assert.equal(costOf(10_000n, { ...LIMITS, readVsWriteScalingFactor: 0n }), 10_000n)
})

test('extra traffic that was taken away is not owed', () => {
  assert.deepEqual(availableOf({ ...empty, purchased: 10n, consumed: 20n }), {
    base: 0n,
    extra: 0n,
  })
})

test('a clock that goes back a little gives nothing twice, one that was set back begins anew', () => {
  const at = { ...empty, baseAt: 1000n * MINUTE }
  const skewed = refill(at, LIMITS, 1000n * MINUTE - 30n * SECOND)
  assert.deepEqual(skewed, at)
  assert.equal(availableOf(refill(skewed, LIMITS, 1000n * MINUTE)).base, 0n)
  const back = refill(at, LIMITS, 10n * MINUTE)
  assert.deepEqual(back, { ...at, baseAt: 10n * MINUTE })
  assert.equal(availableOf(refill(back, LIMITS, 30n * MINUTE)).base, 400_000n)
})

test('a smaller burst cuts what is left', () => {
  const full = firstAccount(LIMITS, { purchased: 0n, nowMicros: 0n })
  assert.equal(availableOf(refill(full, { ...LIMITS, burstAmount: 10n }, 0n)).base, 10n)
})

test('odd parameters of a rules contract neither fail nor overflow', () => {
  for (const burstAmount of [-5n, 0n, 2n ** 63n - 1n]) {
    for (const burstWindowMicros of [-5n, 0n, 2n ** 63n - 1n]) {
      const limits = { ...LIMITS, burstAmount, burstWindowMicros }
      const { base } = refill(empty, limits, 100n * MINUTE)
      assert.ok(base >= 0n && base < 2n ** 63n)
    }
  }
})

test('however the time is cut, the refill is the same to a byte, and never more than the burst', () => {
  fc.assert(
    fc.property(
      fc.array(fc.bigInt({ min: 0n, max: 100n * SECOND }), { maxLength: 200 }),
      fc.bigInt({ min: 0n, max: 400_000n }),
      (steps, left) => {
        const start = { ...empty, base: left * 1_000_000n }
        let now = 0n
        let account = start
        for (const step of steps) {
          now += step
          account = refill(account, LIMITS, now)
        }
        const whole = availableOf(refill(start, LIMITS, now)).base
        const { base } = availableOf(account)
        assert.ok(base <= whole && whole - base <= 1n, `${base} ${whole}`)
      },
    ),
  )
})

test('whatever is sent and bought, nobody uses more than the burst, its refill and the purchases', () => {
  const act = fc.record({
    wait: fc.bigInt({ min: -5n * MINUTE, max: 10n * MINUTE }),
    cost: fc.bigInt({ min: 0n, max: 300_000n }),
    buys: fc.option(fc.bigInt({ min: 1n, max: 400_000n }), { nil: 0n }),
  })
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      let account = firstAccount(LIMITS, { purchased: 0n, nowMicros: 0n })
      let now = 0n
      let forward = 0n
      let used = 0n
      for (const { wait, cost, buys } of acts) {
        now += wait
        if (wait > 0n) forward += wait
        account = refill(account, LIMITS, now)
        const before = availableOf(account)
        const paid = charge(account, cost)
        assert.equal(paid === undefined, cost > before.base + before.extra)
        if (paid !== undefined) {
          used += cost
          account = paid
        }
        account = { ...account, purchased: account.purchased + buys }
        const { base, extra } = availableOf(account)
        assert.ok(base >= 0n && extra >= 0n && base <= LIMITS.burstAmount)
        const granted = 400_000n + (forward * 400_000n) / LIMITS.burstWindowMicros + 1n
        assert.ok(used <= granted + account.purchased)
      }
    }),
  )
})
