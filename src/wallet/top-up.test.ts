import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstRules, trafficCost as ledgerTrafficCost } from '../ledger/rules.ts'
import { DECIMAL_ONE, decimal } from '../values/decimal.ts'
import { printSentence } from './decision.ts'
import { canPayTopUp, decideTopUp, type TopUpFacts, topUpAmount, trafficCost } from './top-up.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND

// bytes a second, least interval, poll, least amount of the network: amount and effective interval
const AMOUNTS: [number, number, number, bigint, bigint, number][] = [
  [20_000, MINUTE, 30 * SECOND, 200_000n, 1_200_000n, 60 * SECOND],
  [20_000, 45 * SECOND, 30 * SECOND, 200_000n, 1_200_000n, 60 * SECOND],
  [100, 120 * MINUTE, 30 * SECOND, 200_000n, 720_000n, 7200 * SECOND],
  [1_000, MINUTE, 30 * SECOND, 200_000n, 210_000n, 210 * SECOND],
  [10_000, 7 * MINUTE, 2 * MINUTE, 4_000_000n, 4_800_000n, 8 * MINUTE],
  [10_000, 7 * MINUTE, 2 * MINUTE, 5_000_000n, 6_000_000n, 10 * MINUTE],
  // Exactly the least amount is enough; a byte less is not.
  [20_000, 10 * SECOND, 10 * SECOND, 200_000n, 200_000n, 10 * SECOND],
  [20_000, 10 * SECOND, 10 * SECOND, 200_001n, 400_000n, 20 * SECOND],
  // Fractions of a byte are rounded up.
  [3, 500, 500, 1n, 2n, 500],
]

for (const [throughput, interval, poll, least, bytes, effective] of AMOUNTS) {
  test(`${throughput} B/s every ${interval} ms, polled every ${poll} ms, at least ${least}: ${bytes} bytes every ${effective} ms`, () => {
    const rule = {
      targetThroughput: throughput,
      minTopupIntervalMs: interval,
      pollingIntervalMs: poll,
    }
    assert.deepEqual(topUpAmount(rule, least), { bytes, intervalMs: effective })
  })
}

test('an amount is enough for the throughput over its interval, and not below what the network sells', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000_000 }),
      fc.integer({ min: 1, max: 86_400_000 }),
      fc.integer({ min: 1, max: 600_000 }),
      fc.bigInt(1n, 10_000_000n),
      (targetThroughput, minTopupIntervalMs, pollingIntervalMs, least) => {
        const rule = { targetThroughput, minTopupIntervalMs, pollingIntervalMs }
        const { bytes, intervalMs } = topUpAmount(rule, least)
        assert.ok(bytes >= least)
        assert.ok(bytes * 1000n >= BigInt(targetThroughput) * BigInt(intervalMs))
        assert.equal(intervalMs % pollingIntervalMs, 0)
        assert.ok(intervalMs >= minTopupIntervalMs)
      },
    ),
  )
})

const terms = (of: { usd?: string; coin?: string; isDevNet?: boolean } = {}) => ({
  extraTrafficPrice: decimal(of.usd ?? '16.67'),
  minTopupAmount: 200_000n,
  coinPrice: decimal(of.coin ?? '0.15'),
  isDevNet: of.isDevNet ?? false,
})

test('1.2 MB at 16.67 USD cost 20.004 USD; at 60 USD they cost 72 USD, 480 coins at 0.15', () => {
  assert.equal(trafficCost(terms(), 1_200_000n).usd, decimal('20.004'))
  assert.deepEqual(trafficCost(terms({ usd: '60' }), 1_200_000n), {
    usd: decimal('72'),
    coins: decimal('480'),
  })
})

test('the cost is what the rules contract reckons, to the last place', () => {
  const rules = firstRules({ dso: 'DSO::1220ab', synchronizerId: 'global::1220ab', tickMicros: 1n })
  fc.assert(
    fc.property(fc.bigInt(1n, 10n ** 12n), fc.bigInt(1n, 100n * DECIMAL_ONE), (bytes, price) => {
      assert.deepEqual(
        trafficCost({ ...terms(), coinPrice: price }, bytes),
        ledgerTrafficCost(rules, { bytes, amuletPrice: price }),
      )
    }),
  )
})

const RULE = {
  targetThroughput: 20_000,
  minTopupIntervalMs: MINUTE,
  pollingIntervalMs: 30 * SECOND,
}
const NOW = 1_767_225_600_000_000n
const COST = decimal('480')
const facts = (of: Partial<TopUpFacts> = {}): TopUpFacts => ({
  terms: terms({ usd: '60' }),
  balance: COST,
  extraTrafficRemainder: 0n,
  lastPurchasedAtMicros: 0n,
  nowMicros: NOW,
  ...of,
})

// The five steps, one fact changed at a time.
const DECISIONS: [string, Partial<TopUpFacts>, 'buys' | RegExp][] = [
  ['enough coins, long ago, nothing left', {}, 'buys'],
  ['a unit too little', { balance: COST - 1n }, /the wallet holds 479.9999999999; send coins/],
  [
    'an empty wallet on a development network',
    { balance: 0n, terms: terms({ isDevNet: true }) },
    'buys',
  ],
  ['bought a minute ago', { lastPurchasedAtMicros: NOW - 60_000_000n }, 'buys'],
  [
    'bought a microsecond later',
    { lastPurchasedAtMicros: NOW - 59_999_999n },
    /the next purchase may be made at 2026-01-01T00:00:00.000001Z, 60 s after the last/,
  ],
  [
    'bought by a clock that is a minute ahead',
    { lastPurchasedAtMicros: NOW + 60_000_000n },
    /the next purchase may be made at 2026-01-01T00:02:00Z/,
  ],
  [
    'bought by a clock that was a year ahead',
    { lastPurchasedAtMicros: NOW + 31_536_000_000_000n },
    /is noted at 2027-01-01T00:00:00Z, and it is 2026-01-01T00:00:00Z now; set the clock right/,
  ],
  ['a byte less than a purchase left', { extraTrafficRemainder: 1_199_999n }, 'buys'],
  [
    'as much as a purchase left',
    { extraTrafficRemainder: 1_200_000n },
    /1200000 bytes of bought traffic are left/,
  ],
  // Funds are looked at first, the interval second.
  [
    'too little, and too soon, and enough traffic',
    { balance: 0n, lastPurchasedAtMicros: NOW, extraTrafficRemainder: 9_999_999n },
    /send coins to it/,
  ],
  [
    'too soon, and enough traffic',
    { lastPurchasedAtMicros: NOW, extraTrafficRemainder: 9_999_999n },
    /the next purchase may be made/,
  ],
]

for (const [name, change, outcome] of DECISIONS) {
  test(`a top-up with ${name} ${outcome === 'buys' ? 'buys' : 'waits'}`, () => {
    const decision = decideTopUp(RULE, facts(change))
    if (outcome === 'buys') {
      assert.equal(decision.kind, 'act')
      assert.equal(decision.kind === 'act' && decision.plan.bytes, 1_200_000n)
    } else {
      assert.equal(decision.kind, 'wait')
      assert.match(decision.because, outcome)
    }
  })
}

test('a wait for time says until when; a wait for funds is a warning', () => {
  const soon = decideTopUp(RULE, facts({ lastPurchasedAtMicros: NOW }))
  assert.equal(soon.kind === 'wait' && soon.untilMicros, NOW + 60_000_000n)
  const poor = decideTopUp(RULE, facts({ balance: 0n }))
  assert.equal(poor.kind === 'wait' && poor.isWarning, true)
})

test('a throughput of 0 buys nothing', () => {
  const decision = decideTopUp({ ...RULE, targetThroughput: 0 }, facts())
  assert.equal(decision.kind, 'wait')
})

test('the sentence names bytes, coins and dollars', () => {
  assert.equal(
    printSentence(decideTopUp(RULE, facts())),
    'would buy 1200000 bytes of traffic for 480 coins (72.00 USD), because 0 bytes of bought traffic are left, less than the 1200000 that 20000 bytes a second need in 60 s',
  )
})

test('the next top-up can be paid from its cost on, and always on a development network', () => {
  assert.equal(canPayTopUp(RULE, terms({ usd: '60' }), COST), true)
  assert.equal(canPayTopUp(RULE, terms({ usd: '60' }), COST - 1n), false)
  assert.equal(canPayTopUp(RULE, terms({ isDevNet: true }), 0n), true)
})
