import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addToNativeBuckets,
  bucketKey,
  createNativeBuckets,
  type NativeBuckets,
  schemaMax,
  schemaMin,
  spansOf,
  zeroThresholdDefault,
} from './native-buckets.ts'

const scratch = new DataView(new ArrayBuffer(8))
const schemas = fc.integer({ min: schemaMin, max: schemaMax })

/** The mantissas of the bounds of schema 8 in [1, 2), without 1 itself: no fraction is exactly one of them. */
const roundedBounds = Array.from({ length: 255 }, (_, i) => 2 ** ((i + 1) / 256))

const magnitudes = fc
  .oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }),
    fc.double({ noNaN: true, min: -30, max: 30 }).map((power) => 10 ** power),
    fc.integer({ min: -1074, max: 1023 }).map((power) => 2 ** power),
  )
  .filter((value) => !roundedBounds.includes(mantissaOf(value)))
const observations = fc.oneof(
  { weight: 8, arbitrary: magnitudes },
  { weight: 3, arbitrary: magnitudes.map((value) => -value) },
  { weight: 1, arbitrary: fc.constantFrom(0, -0, Infinity, -Infinity, Number.NaN) },
)

/** A magnitude as an integer times a power of two, exactly. */
function exactly(value: number): [integer: bigint, exponent: number] {
  let integer = value
  let exponent = 0
  while (!Number.isInteger(integer)) {
    integer *= 2
    exponent -= 1
  }
  while (integer > 2 ** 53) {
    integer /= 2
    exponent += 1
  }
  return [BigInt(integer), exponent]
}

function mantissaOf(value: number): number {
  if (value === 0 || !Number.isFinite(value)) return 0
  const [integer] = exactly(value)
  return Number(integer) / 2 ** (integer.toString(2).length - 1)
}

/** The smallest k with value <= 2^(k / 2^schema), by the definition, in exact integers. */
function naiveKey(value: number, schema: number): number {
  if (value === Infinity) return naiveKey(Number.MAX_VALUE, schema) + 1
  const [integer, exponent] = exactly(value)
  const parts = 2 ** Math.max(schema, 0)
  const power = integer ** BigInt(parts) - 1n
  const logarithm = (power === 0n ? 0 : power.toString(2).length) + exponent * parts
  return schema >= 0 ? logarithm : Math.ceil(logarithm / 2 ** -schema) + 0
}

function naiveBuckets(values: readonly number[], schema: number, zeroThreshold: number) {
  const positive = new Map<number, number>()
  const negative = new Map<number, number>()
  let zeroCount = 0
  for (const value of values) {
    if (Number.isNaN(value)) continue
    if (Math.abs(value) <= zeroThreshold) {
      zeroCount += 1
      continue
    }
    const side = value > 0 ? positive : negative
    const key = naiveKey(Math.abs(value), schema)
    side.set(key, (side.get(key) ?? 0) + 1)
  }
  return { positive: sorted(positive), negative: sorted(negative), zeroCount }
}

function sorted(buckets: Map<number, number>): [number, number][] {
  return [...buckets].sort(([a], [b]) => a - b)
}

/** Spans and deltas back to keys and counts, as a server reads them. */
function readSide(table: NativeBuckets['positive']): [number, number][] {
  const { spans, deltas } = spansOf(table)
  const buckets: [number, number][] = []
  let key = 0
  let count = 0
  let next = 0
  for (const { offset, length } of spans) {
    key += offset
    for (let i = 0; i < length; i++) {
      count += deltas[next++] as number
      assert(count >= 0)
      if (count > 0) buckets.push([key, count])
      key += 1
    }
  }
  assert.equal(next, deltas.length)
  return buckets
}

function readBuckets(buckets: NativeBuckets) {
  return {
    positive: readSide(buckets.positive),
    negative: readSide(buckets.negative),
    zeroCount: buckets.zeroCount,
  }
}

test('the bounds of the finest schema are the doubles nearest to the powers of 2^(1/256)', () => {
  for (const [i, bound] of roundedBounds.entries()) {
    const doubled = BigInt(bound * 2 ** 52) * 2n
    const power = 1n << BigInt(i + 1 + 53 * 256)
    assert((doubled - 1n) ** 256n < power && power < (doubled + 1n) ** 256n)
  }
})

test('a key is that of the definition at every schema', () => {
  fc.assert(
    fc.property(magnitudes, schemas, (value, schema) => {
      fc.pre(value > 0)
      assert.equal(bucketKey(value, schema, scratch), naiveKey(value, schema))
    }),
    { numRuns: 3000 },
  )
})

test('a value on a bound belongs to the bucket below it, the next value to the one above', () => {
  for (let schema = schemaMin; schema <= schemaMax; schema++) {
    const parts = 2 ** schema
    for (let key = -20 * Math.max(parts, 1); key <= 20 * Math.max(parts, 1); key++) {
      const exponent = Math.floor(key / parts)
      if (Math.abs(exponent) > 1000) continue
      const bound = 2 ** (key / parts - exponent) * 2 ** exponent
      const above = bound * (1 + Number.EPSILON)
      assert.equal(bucketKey(bound, schema, scratch), key)
      assert.equal(bucketKey(above, schema, scratch), key + 1)
    }
  }
})

test('without a limit the counts are those of a naive model at every schema', () => {
  fc.assert(
    fc.property(
      fc.array(observations, { maxLength: 300, size: 'max' }),
      schemas,
      (values, schema) => {
        const zeroThreshold = zeroThresholdDefault
        const buckets = createNativeBuckets({ schema, bucketsMax: 100_000, zeroThreshold })
        for (const value of values) addToNativeBuckets(buckets, value)
        assert.equal(buckets.schema, schema)
        assert.deepEqual(readBuckets(buckets), naiveBuckets(values, schema, zeroThreshold))
      },
    ),
  )
})

test('under a limit the counts are those of a naive model at the schema that is left, and none is lost', () => {
  const limits = fc.integer({ min: 2, max: 40 })
  const thresholds = fc.constantFrom(0, zeroThresholdDefault, 2 ** -10, 0.001)
  fc.assert(
    fc.property(
      fc.array(observations, { maxLength: 300, size: 'max' }),
      ...([schemas, limits, thresholds] as const),
      (values, schema, bucketsMax, zeroThreshold) => {
        const buckets = createNativeBuckets({ schema, bucketsMax, zeroThreshold })
        for (const value of values) addToNativeBuckets(buckets, value)
        const read = readBuckets(buckets)
        const used = [...read.positive, ...read.negative]
        assert(used.length <= bucketsMax)
        assert.deepEqual(read, naiveBuckets(values, buckets.schema, buckets.zeroThreshold))
        const total = used.reduce((sum, [, count]) => sum + count, read.zeroCount)
        assert.equal(total, values.filter((value) => !Number.isNaN(value)).length)
        if (buckets.schema < schema && buckets.zeroThreshold === zeroThreshold) {
          const finer = naiveBuckets(values, buckets.schema + 1, zeroThreshold)
          assert(finer.positive.length + finer.negative.length > bucketsMax)
        }
        if (buckets.zeroThreshold !== zeroThreshold) assert.equal(buckets.schema, schemaMin)
      },
    ),
    { numRuns: 500 },
  )
})

test('a quantile read off the buckets is off by less than the width of a bucket', () => {
  const latencies = fc.double({ noNaN: true, min: -7, max: 3 }).map((power) => 10 ** power)
  fc.assert(
    fc.property(
      fc.array(latencies, { minLength: 1, maxLength: 300, size: 'max' }),
      fc.double({ noNaN: true, min: 0.001, max: 1 }),
      (values, quantile) => {
        const buckets = createNativeBuckets({
          ...{ schema: 4, bucketsMax: 160, zeroThreshold: zeroThresholdDefault },
        })
        for (const value of values) addToNativeBuckets(buckets, value)
        const rank = Math.ceil(quantile * values.length)
        const exact = values.toSorted((a, b) => a - b)[rank - 1] as number
        let passed = 0
        const [key] = readSide(buckets.positive).find(([, count]) => {
          passed += count
          return passed >= rank
        }) as [number, number]
        const growth = 2 ** (2 ** -buckets.schema)
        const error = growth ** key / exact
        assert(error >= 1 - 1e-9 && error <= growth * (1 + 1e-9))
      },
    ),
  )
})

test('buckets of mirrored values are mirrored', () => {
  fc.assert(
    fc.property(fc.array(observations), schemas, (values, schema) => {
      const options = { schema, bucketsMax: 20, zeroThreshold: zeroThresholdDefault }
      const [buckets, mirrored] = [createNativeBuckets(options), createNativeBuckets(options)]
      for (const value of values) {
        addToNativeBuckets(buckets, value)
        addToNativeBuckets(mirrored, -value)
      }
      assert.deepEqual(readSide(buckets.positive), readSide(mirrored.negative))
      assert.deepEqual(readSide(buckets.negative), readSide(mirrored.positive))
    }),
  )
})

test('gaps of up to two empty buckets stay inside a span, larger ones open another', () => {
  const buckets = createNativeBuckets({ schema: 0, bucketsMax: 160, zeroThreshold: 0 })
  for (const power of [1, 1, 4, 5, 9]) addToNativeBuckets(buckets, 2 ** power)
  assert.deepEqual(spansOf(buckets.positive), {
    spans: [
      { offset: 1, length: 5 },
      { offset: 3, length: 1 },
    ],
    deltas: [2, -2, 0, 1, 0, 0],
  })
})
