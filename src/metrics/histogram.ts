import assert from 'node:assert/strict'
import {
  addToNativeBuckets,
  createNativeBuckets,
  type NativeBuckets,
  type NativeOptions,
  schemaMax,
  schemaMin,
} from './native-buckets.ts'

/** Seconds, from a query of the cache to a slow batch: what people read off a request's duration. */
export const durationBuckets: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]

/** Bytes, from a small answer to a page of thousands of updates, each bound four times the last. */
export const sizeBuckets: readonly number[] = [
  256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
]

/** Things in one batch or page. */
export const countBuckets: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000,
]

/** More bounds than this make every series of the metric expensive to store, and nobody reads them. */
const boundsMax = 64

export type HistogramState = {
  /** Finite upper bounds, rising; the bucket above the last one is +Inf. */
  readonly bounds: Float64Array
  /** Counts of the buckets, each by itself; one more than there are bounds. */
  readonly counts: Float64Array
  /** Cell 0 is the count, cell 1 the sum: a typed array, so that adding to a sum allocates nothing. */
  readonly totals: Float64Array
  readonly native: NativeBuckets | undefined
}

/**
 * A histogram always keeps its regular buckets: the text formats cannot carry native ones, and a
 * scraper that reads text must not lose the distribution. With `native` it keeps both.
 */
export function createHistogram(options: {
  buckets: readonly number[]
  native: NativeOptions | undefined
}): HistogramState {
  const { buckets, native } = options
  assert(
    buckets.length <= boundsMax,
    `A histogram has at most ${boundsMax} buckets, not ${buckets.length}.`,
  )
  assert(
    buckets.every((bound, i) => Number.isFinite(bound) && bound > (buckets[i - 1] ?? -Infinity)),
    'The buckets of a histogram are finite numbers, each above the one before.',
  )
  if (native !== undefined) {
    const { schema, bucketsMax, zeroThreshold } = native
    assert(
      Number.isInteger(schema) && schema >= schemaMin && schema <= schemaMax,
      `The schema of a native histogram is from ${schemaMin} to ${schemaMax}.`,
    )
    assert(
      Number.isInteger(bucketsMax) && bucketsMax >= 2,
      'A native histogram has room for two buckets at least.',
    )
    assert(
      zeroThreshold >= 0 && Number.isFinite(zeroThreshold),
      'The zero threshold of a native histogram is a number from 0 up.',
    )
  }
  return {
    bounds: Float64Array.from(buckets),
    counts: new Float64Array(buckets.length + 1),
    totals: new Float64Array(2),
    native: native && createNativeBuckets(native),
  }
}

/**
 * As Prometheus clients do it: NaN counts, makes the sum NaN, and falls into the regular +Inf
 * bucket and no native one; an infinity falls into the last bucket of either kind.
 */
export function observe(histogram: HistogramState, value: number): void {
  const { bounds, counts, totals } = histogram
  totals[0] = (totals[0] as number) + 1
  totals[1] = (totals[1] as number) + value
  // For so few bounds one after another is quicker than a binary search, whose every step surprises the CPU.
  let bucket = 0
  while (bucket < bounds.length && !((bounds[bucket] as number) >= value)) bucket += 1
  counts[bucket] = (counts[bucket] as number) + 1
  if (histogram.native !== undefined) addToNativeBuckets(histogram.native, value)
}
