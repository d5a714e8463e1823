import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { spansOf } from './native-buckets.ts'
import { encodeFamilies } from './protobuf.ts'
import { createRegistry } from './registry.ts'

type Field = number | bigint | Buffer
type Message = Map<number, Field[]>

/** A reader of the wire format that knows nothing of the writer: fields by number. */
function decode(bytes: Buffer): Message {
  const message: Message = new Map()
  let at = 0
  while (at < bytes.length) {
    const [tag, afterTag] = readVarint(bytes, at)
    const [value, next] = readValue(bytes, afterTag, Number(tag & 7n))
    const field = Number(tag >> 3n)
    message.set(field, [...(message.get(field) ?? []), value])
    at = next
  }
  assert.equal(at, bytes.length)
  return message
}

function readValue(bytes: Buffer, at: number, wire: number): [Field, number] {
  if (wire === 0) return readVarint(bytes, at)
  if (wire === 1) return [bytes.readDoubleLE(at), at + 8]
  assert.equal(wire, 2)
  const [length, start] = readVarint(bytes, at)
  const end = start + Number(length)
  assert(end <= bytes.length)
  return [bytes.subarray(start, end), end]
}

function readVarint(bytes: Buffer, at: number): [bigint, number] {
  let value = 0n
  for (let i = 0; ; i++) {
    const byte = BigInt(bytes.readUInt8(at + i))
    value |= (byte & 127n) << BigInt(7 * i)
    if (byte < 128n) return [value, at + i + 1]
  }
}

function readPackedSigned(bytes: Buffer | undefined): number[] {
  const values: number[] = []
  for (let at = 0; at < (bytes?.length ?? 0); ) {
    const [value, next] = readVarint(bytes as Buffer, at)
    values.push(unzigzag(value))
    at = next
  }
  return values
}

function unzigzag(value: bigint): number {
  return Number((value >> 1n) ^ -(value & 1n))
}

const messages = (message: Message, field: number) =>
  (message.get(field) ?? []).map((bytes) => decode(bytes as Buffer))
const text = (message: Message, field: number) => String(message.get(field)?.[0])
const number = (message: Message, field: number) => Number(message.get(field)?.[0])

function decodeFamilies(bytes: Buffer): Map<string, Message> {
  const families = new Map<string, Message>()
  let at = 0
  while (at < bytes.length) {
    const [family, next] = readValue(bytes, at, 2)
    const message = decode(family as Buffer)
    families.set(text(message, 1), message)
    at = next
  }
  return families
}

function labelsOf(metric: Message): [string, string][] {
  return messages(metric, 1).map((pair) => [text(pair, 1), text(pair, 2)])
}

function metricsOf(families: Map<string, Message>, name: string): Message[] {
  return messages(families.get(name) as Message, 4)
}

test('counters and gauges come back with labels, help, type and time of creation', () => {
  const strings = fc.string({ unit: 'grapheme', maxLength: 200, size: 'max' })
  const entries = fc.uniqueArray(fc.tuple(strings, fc.double({ min: 0 })), {
    selector: ([label]) => label,
  })
  fc.assert(
    fc.property(entries, strings, (list, help) => {
      const registry = createRegistry({ nativeHistograms: true, now: () => 1_700_000_000_123 })
      const counter = registry.counter({ name: 'c_total', help, labels: ['a'] })
      const gauge = registry.with({ app: 'scan' }).gauge({ name: 'g', help, labels: ['a'] })
      const cut = list.filter(([a]) => a.length <= 300)
      for (const [a, value] of cut) {
        counter.labels({ a }).inc(Number.isNaN(value) ? 0 : value)
        gauge.labels({ a }).set(-value)
      }
      const families = decodeFamilies(encodeFamilies(registry.scrape()))
      if (cut.length === 0) {
        assert(!families.has('c_total') && !families.has('g'))
        return
      }
      assert.equal(text(families.get('c_total') as Message, 2), help)
      assert.equal(number(families.get('c_total') as Message, 3), 0)
      assert.equal(number(families.get('g') as Message, 3), 1)
      for (const [i, metric] of metricsOf(families, 'c_total').entries()) {
        const [a, value] = cut[i] as [string, number]
        assert.deepEqual(labelsOf(metric), [['a', a]])
        const [body] = messages(metric, 3)
        assert.equal(number(body as Message, 1), Number.isNaN(value) ? 0 : value)
        const [created] = messages(body as Message, 3)
        assert.equal(number(created as Message, 1), 1_700_000_000)
        assert.equal(number(created as Message, 2), 123_000_000)
      }
      for (const [i, metric] of metricsOf(families, 'g').entries()) {
        const [a, value] = cut[i] as [string, number]
        assert.deepEqual(labelsOf(metric), [
          ['app', 'scan'],
          ['a', a],
        ])
        assert.equal(number(messages(metric, 2)[0] as Message, 1), -value)
      }
    }),
  )
})

test('histograms come back with native and regular buckets', () => {
  const values = fc.oneof(
    fc.double(),
    fc.double({ noNaN: true, min: -20, max: 5 }).map((power) => 10 ** power),
  )
  fc.assert(
    fc.property(fc.array(values, { maxLength: 400, size: 'max' }), (list) => {
      const registry = createRegistry({ nativeHistograms: true, now: () => 5_001 })
      const buckets = [0.001, 1, 1000]
      const histogram = registry.histogram({ name: 'h_seconds', help: 'H.', buckets })
      list.forEach(histogram.observe)
      const families = registry.scrape()
      const family = families.find(({ name }) => name === 'h_seconds')
      assert(family?.kind === 'histogram')
      const native = family.series.get('')?.state.native
      assert(native !== undefined)

      const decoded = decodeFamilies(encodeFamilies(families))
      assert.equal(number(decoded.get('h_seconds') as Message, 3), 4)
      const [read] = messages(metricsOf(decoded, 'h_seconds')[0] as Message, 7) as [Message]
      assert.equal(number(read, 1), list.length)
      assert.equal(
        number(read, 2),
        list.reduce((sum, value) => sum + value, 0),
      )
      assert.deepEqual(
        messages(read, 3).map((bucket) => [number(bucket, 2), number(bucket, 1)]),
        [
          ...buckets.map((bound) => [bound, list.filter((value) => value <= bound).length]),
          [Infinity, list.length],
        ],
      )
      assert.equal(unzigzag(read.get(5)?.[0] as bigint), native.schema)
      assert.equal(number(read, 6), 2 ** -128)
      assert.equal(number(read, 7), list.filter((value) => Math.abs(value) <= 2 ** -128).length)
      for (const [table, spanField, deltaField] of [
        [native.negative, 9, 10],
        [native.positive, 12, 13],
      ] as const) {
        const { spans, deltas } = spansOf(table)
        assert.deepEqual(
          messages(read, spanField).map((span) => ({
            offset: unzigzag(span.get(1)?.[0] as bigint),
            length: number(span, 2),
          })),
          spans,
        )
        assert.deepEqual(readPackedSigned(read.get(deltaField)?.[0] as Buffer | undefined), deltas)
      }
      assert.equal(number(messages(read, 15)[0] as Message, 1), 5)
      assert.equal(number(messages(read, 15)[0] as Message, 2), 1_000_000)
    }),
  )
})

test('without native histograms only regular buckets are written', () => {
  const registry = createRegistry({ nativeHistograms: false })
  registry.histogram({ name: 'h_seconds', help: 'H.' }).observe(1)
  const decoded = decodeFamilies(encodeFamilies(registry.scrape()))
  const [read] = messages(metricsOf(decoded, 'h_seconds')[0] as Message, 7) as [Message]
  assert.deepEqual([...read.keys()], [1, 2, 3, 15])
})

test('an empty native histogram can be told from a regular one even with a zero threshold of 0', () => {
  const registry = createRegistry({ nativeHistograms: true })
  registry.histogram({ name: 'h_seconds', help: 'H.', native: { zeroThreshold: 0 } })
  const decoded = decodeFamilies(encodeFamilies(registry.scrape()))
  const [read] = messages(metricsOf(decoded, 'h_seconds')[0] as Message, 7) as [Message]
  assert.equal(messages(read, 12).length, 1)
})

test('counts beyond 32 bits and families beyond the first buffer come back whole', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const counter = registry.counter({ name: 'c_total', help: 'C.', labels: ['id'] })
  for (let id = 0; id < 1000; id++) counter.labels({ id: `${id}${'x'.repeat(200)}` }).inc(id)
  const histogram = registry.histogram({ name: 'h_seconds', help: 'H.', buckets: [1] })
  histogram.observe(0.5)
  const families = registry.scrape()
  const family = families.find(({ name }) => name === 'h_seconds')
  assert(family?.kind === 'histogram')
  const count = 2 ** 40 + 3
  const state = family.series.get('')?.state
  assert(state !== undefined)
  state.counts[0] = state.totals[0] = count
  const decoded = decodeFamilies(encodeFamilies(families))
  const [read] = messages(metricsOf(decoded, 'h_seconds')[0] as Message, 7) as [Message]
  assert.equal(number(read, 1), count)
  assert.equal(number(messages(read, 3)[0] as Message, 1), count)
  assert.deepEqual(
    metricsOf(decoded, 'c_total').map((metric) => number(messages(metric, 3)[0] as Message, 1)),
    Array.from({ length: 1000 }, (_, id) => id),
  )
})
