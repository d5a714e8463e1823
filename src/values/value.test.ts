import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseJsonExactly, quote } from './json.ts'
import { encodeValue, RoundedNumberError, ValueError } from './value.ts'

type Vector = { name: string; protobuf_json: unknown; compact_json: unknown }
const vectors: Vector[] = JSON.parse(
  readFileSync(new URL('../../test/data/value-vectors.json', import.meta.url), 'utf8'),
)

test('the vector file holds vectors', () => assert.ok(vectors.length > 30))

for (const vector of vectors) {
  test(`vector: ${vector.name}`, () => {
    const encoded = encodeValue(vector.protobuf_json)
    assert.deepEqual(JSON.parse(encoded.lossless), vector.protobuf_json)
    if (vector.name.startsWith('fallback:')) return assert.equal(encoded.compact, undefined)
    assert.equal(encoded.compact, JSON.stringify(vector.compact_json))
  })
}

const compactTable: [string, unknown, string][] = [
  ['a false bool', { bool: false }, 'false'],
  ['the smallest int64', { int64: '-9223372036854775808' }, '"-9223372036854775808"'],
  ['an int64 given as a number', { int64: 7 }, '"7"'],
  ['a numeric without fraction', { numeric: '0' }, '"0"'],
  ['zero with six places', { numeric: '0.000000' }, '"0.000000"'],
  ['zero with seven places', { numeric: '0.0000000' }, '"0E-7"'],
  ['coefficient zeros are kept', { numeric: '0.0000001000' }, '"1.000E-7"'],
  ['the sixth place stays plain', { numeric: '-0.0000010000' }, '"-0.0000010000"'],
  [
    'a huge numeric',
    { numeric: '9999999999999999999999999999.9999999999' },
    '"9999999999999999999999999999.9999999999"',
  ],
  ['whole millisecond', { timestamp: '1726839088405000' }, '"2024-09-20T13:31:28.405Z"'],
  ['before 1970', { timestamp: '-1' }, '"1969-12-31T23:59:59.999999Z"'],
  ['the last date', { date: 2932896 }, '"9999-12-31"'],
  ['some none', { optional: { value: { optional: {} } } }, '[]'],
  ['some some text', { optional: { value: { optional: { value: { text: 'x' } } } } }, '["x"]'],
  ['null means none', { optional: { value: null } }, 'null'],
  ['an empty gen map', { genMap: {} }, '[]'],
  ['an empty record', { record: {} }, '{}'],
  ['an empty text map key', { textMap: { entries: [{ value: { int64: '1' } }] } }, '{"":"1"}'],
  [
    'text map keys are escaped',
    { textMap: { entries: [{ key: 'a"\\\n', value: { unit: {} } }] } },
    '{"a\\"\\\\\\n":{}}',
  ],
  [
    '__proto__ is a label like any other',
    { record: { fields: [{ label: '__proto__', value: { int64: '1' } }] } },
    '{"__proto__":"1"}',
  ],
  [
    'number-like labels keep their order',
    {
      record: {
        fields: [
          { label: '2', value: { unit: {} } },
          { label: '1', value: { unit: {} } },
        ],
      },
    },
    '{"2":{},"1":{}}',
  ],
  [
    'a variant with its type',
    { variant: { variantId: { moduleName: 'M' }, constructor: 'A', value: { unit: {} } } },
    '{"tag":"A","value":{}}',
  ],
  ['a lone surrogate is escaped', { text: '\ud800' }, '"\\ud800"'],
]

for (const [name, value, compact] of compactTable) {
  test(`compact: ${name}`, () => assert.equal(encodeValue(value).compact, compact))
}

const refusals: [string, unknown][] = [
  ['no kind', {}],
  ['two kinds', { text: 'a', party: 'b' }],
  ['an unknown kind', { double: 1 }],
  ['a bare string', 'a'],
  ['null', null],
  ['an int64 out of range', { int64: '9223372036854775808' }],
  ['an int64 with a fraction', { int64: '1.0' }],
  ['an int64 with a leading zero', { int64: '01' }],
  ['a numeric in scientific notation', { numeric: '1E-10' }],
  ['a numeric as a JSON number', { numeric: 1.5 }],
  ['a date beyond year 9999', { date: 2932897 }],
  ['a date as a string', { date: '2024-01-01' }],
  ['a timestamp beyond year 9999', { timestamp: '253402300800000000' }],
  ['a bool as a string', { bool: 'true' }],
  ['an enum without constructor', { enum: {} }],
  ['a variant without value', { variant: { constructor: 'A' } }],
  ['a list of bare values', { list: { elements: ['1'] } }],
  ['elements that are no array', { list: { elements: {} } }],
  [
    'a repeated label',
    {
      record: {
        fields: [
          { label: 'a', value: { unit: {} } },
          { label: 'a', value: { unit: {} } },
        ],
      },
    },
  ],
  [
    'a repeated text map key',
    {
      textMap: {
        entries: [
          { key: 'a', value: { unit: {} } },
          { key: 'a', value: { unit: {} } },
        ],
      },
    },
  ],
  ['an unknown member', { optional: { valeu: { unit: {} } } }],
  ['a unit with content', { unit: { a: 1 } }],
]

for (const [name, value] of refusals) {
  test(`refused: ${name}`, () => assert.throws(() => encodeValue(value), ValueError))
}

test('a refusal names the path inside the value', () => {
  const value = {
    record: { fields: [{ label: 'amount', value: { list: { elements: [{ int64: 'x' }] } } }] },
  }
  assert.throws(() => encodeValue(value), /^ValueError: record\.amount\.list\.0\.int64 must be/)
})

test('a value nested beyond any ledger is refused, not a stack overflow', () => {
  let value: unknown = { unit: {} }
  for (let depth = 0; depth < 20_000; depth += 1) value = { optional: { value } }
  assert.throws(() => encodeValue(value), /nested deeper/)
})

test('an integer that JSON.parse rounded asks for exact reading', () => {
  assert.throws(() => encodeValue(JSON.parse('{"int64":9007199254740993}')), RoundedNumberError)
  assert.equal(
    encodeValue(parseJsonExactly('{"int64":9007199254740993}')).compact,
    '"9007199254740993"',
  )
})

test('canonical form does not depend on key order, spacing or empty members', () => {
  const loose =
    '{"record": {"fields": [{"value": {"list": {"elements": []}}, "label": "l"}], "recordId": null}}'
  assert.equal(
    encodeValue(JSON.parse(loose)).lossless,
    '{"record":{"fields":[{"label":"l","value":{"list":{}}}]}}',
  )
})

test('exact reading keeps what a double would round', () => {
  const text = '[9223372036854775807,-9007199254740993,10.0,1e2,0.5,0.12345678901234567891,12]'
  const [max, low, ten, hundred, half, long, twelve] = parseJsonExactly(text) as unknown[]
  assert.deepEqual(
    [max, low, ten, hundred, half, twelve],
    [9223372036854775807n, -9007199254740993n, 10, 100, 0.5, 12],
  )
  assert.equal(JSON.stringify(long), '0.12345678901234567891')
})

test('quote equals JSON.stringify', () => {
  for (const text of ['', 'abc', 'a"b', '\u0000', '漢字 😀', '\ud800x', '\u2028', '\u007f']) {
    assert.equal(quote(text), JSON.stringify(text))
  }
})
