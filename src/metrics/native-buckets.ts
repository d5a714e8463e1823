/**
 * Sparse exponential buckets as Prometheus defines them. At schema s the bucket with key k holds
 * the values in (base^(k-1), base^k], base = 2^(2^-s); the values next to zero share a zero bucket,
 * and negative values have buckets of their own, mirrored. Only buckets that hold something take
 * space. When they become too many, pairs of neighbours are merged (the next lower schema), which
 * moves counts but never drops one.
 */

/** The schemas that Prometheus stores: base 2^(1/256) = 1.0027 up to base 2^16. */
export const schemaMax = 8
export const schemaMin = -4

/** 2^-128, the default of Prometheus clients. A power of 2^16, so it is a bucket bound at every schema. */
export const zeroThresholdDefault = 2 ** -128

/** Slots of a new table. Latencies of a quiet route fit; the table doubles when it is half full. */
const slotsInitial = 16

/**
 * Gaps of one or two empty buckets are written as zero counts, since opening another span costs
 * more, on the wire and in the server's chunks.
 */
const gapInsideSpanMax = 2

/** The upper bounds of the buckets of schema 8 in [0.5, 1), and 1 as the end. */
const fractionBounds = Float64Array.from({ length: 257 }, (_, i) => 2 ** (i / 256) / 2)

/**
 * By the first nine bits of a mantissa, how many bounds lie below every number that begins so. Such
 * numbers are closer together than two bounds, hence one comparison tells the bucket.
 */
const boundsBelow = Uint16Array.from({ length: 512 }, (_, bits) =>
  fractionBounds.findIndex((bound) => bound >= (1 + bits / 512) / 2),
)

/**
 * An open-addressing table from key to count; a slot with count 0 is free. Keys in use are mostly
 * neighbours, so the low bits of the key are a good hash.
 */
type Table = { keys: Int32Array; counts: Float64Array; used: number }

export type NativeBuckets = {
  schema: number
  zeroThreshold: number
  zeroCount: number
  readonly positive: Table
  readonly negative: Table
  readonly bucketsMax: number
  readonly scratch: DataView
}

export type NativeOptions = {
  /** The finest schema to use, from -4 to 8; it falls when there are too many buckets. */
  schema: number
  /** How many buckets may be in use, both signs together, the zero bucket apart; at least 2, for the infinities. */
  bucketsMax: number
  /** Values whose magnitude is not above this are counted as zero. */
  zeroThreshold: number
}

export function createNativeBuckets(options: NativeOptions): NativeBuckets {
  return {
    ...options,
    zeroCount: 0,
    positive: createTable(slotsInitial),
    negative: createTable(slotsInitial),
    scratch: new DataView(new ArrayBuffer(8)),
  }
}

/** Counts a value. NaN belongs to no bucket; an infinity to the one above the largest number. */
export function addToNativeBuckets(buckets: NativeBuckets, value: number): void {
  if (value > buckets.zeroThreshold) add(buckets, buckets.positive, value)
  else if (value < -buckets.zeroThreshold) add(buckets, buckets.negative, -value)
  else if (!Number.isNaN(value)) buckets.zeroCount += 1
}

/**
 * The key of the bucket that holds a positive number at a schema: the bucket of the finest schema,
 * merged with its neighbours as often as the schema is below that.
 */
export function bucketKey(value: number, schema: number, scratch: DataView): number {
  const merges = schemaMax - schema
  return (finestKey(value, scratch) + (1 << merges) - 1) >> merges
}

function finestKey(value: number, scratch: DataView): number {
  if (value === Infinity) return finestKey(Number.MAX_VALUE, scratch) + 1
  scratch.setFloat64(0, value)
  let high = scratch.getInt32(0)
  let exponent = (high >> 20) - 1022
  if (exponent === -1022) {
    // A subnormal number has no leading one; scaled up by 2^54 it is a normal one.
    scratch.setFloat64(0, value * 2 ** 54)
    high = scratch.getInt32(0)
    exponent = (high >> 20) - 1022 - 54
  }
  // Now value = fraction * 2^exponent with the fraction in [0.5, 1).
  scratch.setInt32(0, (high & 0xfffff) | 0x3fe00000)
  const fraction = scratch.getFloat64(0)
  const below = boundsBelow[(high >> 11) & 0x1ff] as number
  const index = (fractionBounds[below] as number) < fraction ? below + 1 : below
  return index + ((exponent - 1) << schemaMax)
}

export type Span = { offset: number; length: number }

/** The buckets of one sign in the form of the exposition: runs of keys, and each count less the one before. */
export function spansOf(table: Table): { spans: Span[]; deltas: number[] } {
  const spans: Span[] = []
  const deltas: number[] = []
  let span: Span | undefined
  let nextKey = 0
  let countBefore = 0
  for (const key of sortedKeys(table)) {
    const count = table.counts[slotOf(table, key)] as number
    const gap = key - nextKey
    if (span === undefined || gap > gapInsideSpanMax) {
      span = { offset: gap, length: 0 }
      spans.push(span)
    } else {
      for (let empty = 0; empty < gap; empty++) {
        deltas.push(0 - countBefore)
        countBefore = 0
        span.length += 1
      }
    }
    deltas.push(count - countBefore)
    span.length += 1
    countBefore = count
    nextKey = key + 1
  }
  return { spans, deltas }
}

function sortedKeys(table: Table): Int32Array {
  const { keys, counts } = table
  const sorted = new Int32Array(table.used)
  let length = 0
  for (let slot = 0; slot < counts.length; slot++) {
    if ((counts[slot] as number) > 0) sorted[length++] = keys[slot] as number
  }
  return sorted.sort()
}

function add(buckets: NativeBuckets, table: Table, magnitude: number): void {
  const usedBefore = table.used
  addToTable(table, bucketKey(magnitude, buckets.schema, buckets.scratch), 1)
  if (table.used > usedBefore) {
    while (buckets.positive.used + buckets.negative.used > buckets.bucketsMax) makeRoom(buckets)
  }
}

/**
 * Merges neighbours, or at the coarsest schema, where that is no longer possible, lets the zero
 * bucket swallow the buckets nearest to it. Either way fewer buckets hold the same counts.
 */
function makeRoom(buckets: NativeBuckets): void {
  if (buckets.schema > schemaMin) {
    buckets.schema -= 1
    for (const table of [buckets.positive, buckets.negative]) {
      rebuild(table, (key) => (key + 1) >> 1)
    }
    return
  }
  const nearest = Math.min(nearestKey(buckets.positive), nearestKey(buckets.negative))
  // The last bucket of numbers ends at 2^1024, which is no number: the largest one stands for it.
  buckets.zeroThreshold = Math.min(2 ** (nearest * 2 ** -schemaMin), Number.MAX_VALUE)
  for (const table of [buckets.positive, buckets.negative]) {
    rebuild(table, (key, count) => {
      if (key > nearest) return key
      buckets.zeroCount += count
      return undefined
    })
  }
}

function nearestKey(table: Table): number {
  return sortedKeys(table)[0] ?? Infinity
}

function createTable(slots: number): Table {
  return { keys: new Int32Array(slots), counts: new Float64Array(slots), used: 0 }
}

function addToTable(table: Table, key: number, count: number): void {
  const slot = slotOf(table, key)
  const before = table.counts[slot] as number
  table.counts[slot] = before + count
  if (before > 0) return
  table.keys[slot] = key
  table.used += 1
  if (table.used * 2 > table.keys.length) rebuild(table, (same) => same, table.keys.length * 2)
}

/** The slot of a key, or the free one where it would go; at least half of the slots are free. */
function slotOf({ keys, counts }: Table, key: number): number {
  const mask = keys.length - 1
  let slot = key & mask
  while ((counts[slot] as number) > 0 && keys[slot] !== key) slot = (slot + 1) & mask
  return slot
}

function rebuild(
  table: Table,
  keyOf: (key: number, count: number) => number | undefined,
  slots = table.keys.length,
): void {
  const { keys, counts } = table
  table.keys = new Int32Array(slots)
  table.counts = new Float64Array(slots)
  table.used = 0
  for (let slot = 0; slot < counts.length; slot++) {
    const count = counts[slot] as number
    if (count === 0) continue
    const key = keyOf(keys[slot] as number, count)
    if (key !== undefined) addToTable(table, key, count)
  }
}
