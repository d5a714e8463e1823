import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  countBuckets,
  createHistogram,
  durationBuckets,
  observe,
  sizeBuckets,
} from './histogram.ts'
import { zeroThresholdDefault } from './native-buckets.ts'

const native = { schema: 4, bucketsMax: 160, zeroThreshold: zeroThresholdDefault }

test('regular buckets hold what a naive count says, and NaN falls into the last', () => {
  const bounds = fc
    .uniqueArray(fc.double({ noNaN: true, noDefaultInfinity: true }), {
      maxLength: 20,
      size: 'max',
    })
    .map((list) => list.sort((a, b) => a - b))
    .filter((list) => !list.some((bound, i) => bound === list[i - 1]))
  fc.assert(
    fc.property(
      bounds,
      fc.array(fc.double(), { maxLength: 100, size: 'max' }),
      (buckets, randomValues) => {
        const histogram = createHistogram({ buckets, native: undefined })
        const values = [...randomValues, ...buckets]
        for (const value of values) observe(histogram, value)
        const naive = [...buckets, Infinity].map(
          (bound, i, all) =>
            values.filter((value) =>
              Number.isNaN(value)
                ? i === buckets.length
                : value <= bound && (i === 0 || value > (all[i - 1] as number)),
            ).length,
        )
        assert.deepEqual([...histogram.counts], naive)
        assert.equal(histogram.totals[0], values.length)
        assert.equal(
          histogram.totals[1],
          values.reduce((sum, value) => sum + value, 0),
        )
      },
    ),
  )
})

test('NaN counts, spoils the sum, and lies in no native bucket', () => {
  const histogram = createHistogram({ buckets: [1], native })
  for (const value of [0.5, Number.NaN]) observe(histogram, value)
  assert.deepEqual([...histogram.totals], [2, Number.NaN])
  assert.deepEqual([...histogram.counts], [1, 1])
  assert.equal(histogram.native?.positive.used, 1)
  assert.equal(histogram.native?.zeroCount, 0)
})

test('the buckets offered to the parts are valid', () => {
  for (const buckets of [durationBuckets, sizeBuckets, countBuckets]) {
    assert.equal(createHistogram({ buckets, native }).counts.length, buckets.length + 1)
  }
})

test('wrong buckets and native options are refused with a sentence', () => {
  const refused: [Parameters<typeof createHistogram>[0], RegExp][] = [
    [{ buckets: [2, 1], native }, /each above the one before/],
    [{ buckets: [1, 1], native }, /each above the one before/],
    [{ buckets: [1, Infinity], native }, /finite/],
    [{ buckets: Array.from({ length: 65 }, (_, i) => i), native }, /at most 64/],
    [{ buckets: [1], native: { ...native, schema: 9 } }, /from -4 to 8/],
    [{ buckets: [1], native: { ...native, schema: -5 } }, /from -4 to 8/],
    [{ buckets: [1], native: { ...native, bucketsMax: 1 } }, /two buckets/],
    [{ buckets: [1], native: { ...native, zeroThreshold: -1 } }, /zero threshold/],
  ]
  for (const [options, message] of refused) {
    assert.throws(() => createHistogram(options), { message })
  }
})

test('observing allocates nothing and takes well under a microsecond', () => {
  const histogram = createHistogram({ buckets: durationBuckets, native })
  const values = Float64Array.from({ length: 1024 }, (_, i) => 1.01 ** i / 1000)
  const rounds = 1_000_000
  const run = () => {
    for (let i = 0; i < rounds; i++) observe(histogram, values[i & 1023] as number)
  }
  run()
  const runs = Array.from({ length: 5 }, () => {
    const heapBefore = process.memoryUsage().heapUsed
    const start = performance.now()
    run()
    const nanoseconds = ((performance.now() - start) * 1e6) / rounds
    return { nanoseconds, bytes: (process.memoryUsage().heapUsed - heapBefore) / rounds }
  })
  // The best of five: what else the machine does makes a run slower or larger, never better.
  assert(Math.min(...runs.map(({ nanoseconds }) => nanoseconds)) < 500)
  assert(Math.min(...runs.map(({ bytes }) => Math.abs(bytes))) < 1)
})
