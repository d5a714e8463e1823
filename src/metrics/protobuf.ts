import { type NativeBuckets, spansOf } from './native-buckets.ts'
import type { CounterSeries, Family, GaugeSeries, HistogramSeries } from './series.ts'

/*
 * The protobuf exposition: messages of the type io.prometheus.client.MetricFamily, each after its
 * length. It is the one format that carries native histograms. The numbers of the fields are those
 * of the published metrics.proto.
 */

const metricTypes = { counter: 0, gauge: 1, histogram: 4 }

/** Bytes of a new buffer: a node's metrics at rest fit; it doubles when they do not. */
const bufferSizeInitial = 64 * 1024

/** No string, number or tag with its length needs more than this besides the string's own bytes. */
const fieldOverheadMax = 32

const varintSizeMax = 10

const wireVarint = 0
const wireFixed64 = 1
const wireBytes = 2

type Writer = { buffer: Buffer; end: number }

export function encodeFamilies(families: readonly Family[]): Buffer {
  const writer: Writer = { buffer: Buffer.allocUnsafe(bufferSizeInitial), end: 0 }
  for (const family of families) {
    if (family.series.size === 0) continue
    const start = beginLength(writer)
    writeFamily(writer, family)
    endLength(writer, start)
  }
  return writer.buffer.subarray(0, writer.end)
}

function writeFamily(writer: Writer, family: Family): void {
  writeString(writer, 1, family.name)
  writeString(writer, 2, family.help)
  writeVarintField(writer, 3, metricTypes[family.kind])
  for (const series of family.series.values()) {
    const metric = beginMessage(writer, 4)
    writePairs(writer, series)
    if (family.kind === 'histogram') {
      const histogram = beginMessage(writer, 7)
      writeHistogram(writer, series as HistogramSeries)
      endLength(writer, histogram)
    } else {
      const value = beginMessage(writer, family.kind === 'gauge' ? 2 : 3)
      writeDouble(writer, 1, (series.state as Float64Array)[0] as number)
      if (family.kind === 'counter') writeTimestamp(writer, 3, series.createdMs)
      endLength(writer, value)
    }
    endLength(writer, metric)
  }
}

/** Labels never change, so they are encoded once, at the first scrape that wants them. */
function writePairs(writer: Writer, series: CounterSeries | GaugeSeries | HistogramSeries): void {
  if (series.pairsEncoded !== undefined) {
    writeBytes(writer, series.pairsEncoded)
    return
  }
  const start = writer.end
  for (const [name, value] of series.pairs) {
    const pair = beginMessage(writer, 1)
    writeString(writer, 1, name)
    writeString(writer, 2, value)
    endLength(writer, pair)
  }
  series.pairsEncoded = new Uint8Array(writer.buffer.subarray(start, writer.end))
}

/**
 * Regular buckets are written beside native ones: a server that has native histograms switched on
 * takes those alone, any other still finds a distribution.
 */
function writeHistogram(writer: Writer, series: HistogramSeries): void {
  const { bounds, counts, totals, native } = series.state
  writeVarintField(writer, 1, totals[0] as number)
  writeDouble(writer, 2, totals[1] as number)
  let cumulative = 0
  for (let i = 0; i < counts.length; i++) {
    cumulative += counts[i] as number
    const bucket = beginMessage(writer, 3)
    writeVarintField(writer, 1, cumulative)
    writeDouble(writer, 2, bounds[i] ?? Infinity)
    endLength(writer, bucket)
  }
  if (native !== undefined) writeNativeBuckets(writer, native)
  writeTimestamp(writer, 15, series.createdMs)
}

function writeNativeBuckets(writer: Writer, native: NativeBuckets): void {
  writeVarintField(writer, 5, zigzag(native.schema))
  writeDouble(writer, 6, native.zeroThreshold)
  writeVarintField(writer, 7, native.zeroCount)
  writeSide(writer, { spanField: 9, deltaField: 10, table: native.negative })
  writeSide(writer, { spanField: 12, deltaField: 13, table: native.positive })
  const empty = native.positive.used + native.negative.used === 0
  if (empty && native.zeroThreshold === 0 && native.zeroCount === 0) {
    // Without this span of nothing it could not be told from a regular histogram.
    endLength(writer, beginMessage(writer, 12))
  }
}

function writeSide(
  writer: Writer,
  side: { spanField: number; deltaField: number; table: NativeBuckets['positive'] },
): void {
  if (side.table.used === 0) return
  const { spans, deltas } = spansOf(side.table)
  for (const { offset, length } of spans) {
    const span = beginMessage(writer, side.spanField)
    writeVarintField(writer, 1, zigzag(offset))
    writeVarintField(writer, 2, length)
    endLength(writer, span)
  }
  const packed = beginMessage(writer, side.deltaField)
  reserve(writer, deltas.length * varintSizeMax)
  for (const delta of deltas) writeVarint(writer, zigzag(delta))
  endLength(writer, packed)
}

function writeTimestamp(writer: Writer, field: number, timeMs: number): void {
  const timestamp = beginMessage(writer, field)
  writeVarintField(writer, 1, Math.floor(timeMs / 1000))
  writeVarintField(writer, 2, Math.floor(timeMs % 1000) * 1_000_000)
  endLength(writer, timestamp)
}

function writeBytes(writer: Writer, bytes: Uint8Array): void {
  reserve(writer, bytes.length)
  writer.buffer.set(bytes, writer.end)
  writer.end += bytes.length
}

function writeString(writer: Writer, field: number, text: string): void {
  const length = Buffer.byteLength(text)
  reserve(writer, length + fieldOverheadMax)
  writeVarint(writer, field * 8 + wireBytes)
  writeVarint(writer, length)
  writer.end += writer.buffer.write(text, writer.end)
}

function writeDouble(writer: Writer, field: number, value: number): void {
  reserve(writer, fieldOverheadMax)
  writeVarint(writer, field * 8 + wireFixed64)
  writer.end = writer.buffer.writeDoubleLE(value, writer.end)
}

function writeVarintField(writer: Writer, field: number, value: number): void {
  reserve(writer, fieldOverheadMax)
  writeVarint(writer, field * 8 + wireVarint)
  writeVarint(writer, value)
}

function beginMessage(writer: Writer, field: number): number {
  reserve(writer, fieldOverheadMax)
  writeVarint(writer, field * 8 + wireBytes)
  return beginLength(writer)
}

/** Leaves one byte for the length, which most messages need; `endLength` moves what is longer. */
function beginLength(writer: Writer): number {
  reserve(writer, fieldOverheadMax)
  writer.end += 1
  return writer.end
}

function endLength(writer: Writer, start: number): void {
  const length = writer.end - start
  let more = 0
  for (let rest = length; rest >= 128; rest = Math.floor(rest / 128)) more += 1
  reserve(writer, fieldOverheadMax)
  if (more > 0) writer.buffer.copyWithin(start + more, start, writer.end)
  writer.end = start - 1
  writeVarint(writer, length)
  writer.end = start + more + length
}

/** Arithmetic instead of bit operations: counts go up to 2^53, not to 2^32. */
function writeVarint(writer: Writer, value: number): void {
  let rest = value
  while (rest >= 128) {
    writer.buffer[writer.end++] = (rest % 128) + 128
    rest = Math.floor(rest / 128)
  }
  writer.buffer[writer.end++] = rest
}

function zigzag(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1
}

function reserve(writer: Writer, bytes: number): void {
  if (writer.end + bytes <= writer.buffer.length) return
  const larger = Buffer.allocUnsafe(Math.max(writer.buffer.length * 2, writer.end + bytes))
  writer.buffer.copy(larger, 0, 0, writer.end)
  writer.buffer = larger
}
