import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeValue } from './value.ts'
import {
  bool,
  contractId,
  enumeration,
  int64,
  list,
  numeric,
  optional,
  party,
  record,
  TypeMismatch,
  text,
  textMap,
  timestamp,
  unit,
  type ValueOf,
  variant,
} from './value-type.ts'

const everything = record({
  flag: bool,
  count: int64,
  amount: numeric,
  name: text,
  owner: party,
  coin: contractId,
  at: timestamp,
  note: optional(text),
  shares: list(numeric),
  tags: textMap(int64),
  either: variant({ Left: int64, Right: record({ deep: text }) }),
  colour: enumeration('Red', 'Green'),
  nothing: unit,
})

const sample: ValueOf<typeof everything> = {
  flag: true,
  count: -5n,
  amount: 15_000_000_000n,
  name: 'é "quoted"',
  owner: 'alice::1220ab',
  coin: '00ab',
  at: 1_726_839_088_405_180n,
  note: null,
  shares: [10_000_000_000n, 25_000_000_000n],
  tags: { b: 1n, a: 2n },
  either: { tag: 'Right', value: { deep: 'x' } },
  colour: 'Green',
  nothing: {},
}

test('a value goes through both of its forms unchanged', () => {
  assert.deepEqual(everything.fromLossless(everything.toLossless(sample)), sample)
  const shown = everything.toJson(sample)
  assert.deepEqual(everything.read(JSON.parse(JSON.stringify(shown)), 'value'), sample)
})

test('the lossless form is one that the history accepts, with its compact form', () => {
  const { compact } = encodeValue(everything.toLossless(sample))
  assert.deepEqual(JSON.parse(compact ?? ''), everything.toJson(sample))
})

test('lists and optionals of any length survive', () => {
  const type = record({ held: list(optional(text)) })
  fc.assert(
    fc.property(fc.array(fc.option(fc.string({ unit: 'grapheme' }))), (held) => {
      assert.deepEqual(type.fromLossless(type.toLossless({ held })), { held })
    }),
  )
})

const faults: [change: Record<string, unknown>, path: string][] = [
  [{ flag: 'yes' }, 'value.flag'],
  [{ count: '1.5' }, 'value.count'],
  [{ count: '9223372036854775808' }, 'value.count'],
  [{ amount: 1.5 }, 'value.amount'],
  [{ amount: '0.00000000001' }, 'value.amount'],
  [{ owner: '' }, 'value.owner'],
  [{ coin: 'xyz' }, 'value.coin'],
  [{ at: 'today' }, 'value.at'],
  [{ shares: ['1', 'two'] }, 'value.shares[1]'],
  [{ tags: { a: true } }, 'value.tags.a'],
  [{ either: { tag: 'Up', value: 1 } }, 'value.either.tag'],
  [{ either: { tag: 'Right', value: { deep: 7 } } }, 'value.either.value.deep'],
  [{ colour: 'Blue' }, 'value.colour'],
  [{ nothing: { a: 1 } }, 'value.nothing'],
  [{ name: undefined }, 'value.name'],
  [{ unknown: 1 }, 'value.unknown'],
]

test('a wrong value is refused with the path inside it', () => {
  for (const [change, path] of faults) {
    const json = { ...(everything.toJson(sample) as object), ...change }
    assert.throws(
      () => everything.read(json, 'value'),
      (error) => error instanceof TypeMismatch && error.path === path,
      path,
    )
  }
})
