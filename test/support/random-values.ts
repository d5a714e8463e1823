import { createHash } from 'node:crypto'
import fc from 'fast-check'

// Ledger values of every kind in the lossless form with labels, as plain JSON, printed the way a ledger prints them:
// empty members left out, keys in their order.

export type Json = { [key: string]: unknown }

const INT64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n }
const DATE = { min: -719_162, max: 2_932_896 }
const TIMESTAMP = { min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n }
const NUMERIC_DIGITS_MAX = 38
const DEPTH_MAX = 3
const ENTRIES_MAX = 3

const AWKWARD_TEXTS = [
  '',
  ' ',
  '0',
  '10',
  '2',
  '__proto__',
  'constructor',
  'toString',
  'null',
  '"',
  '\\',
  '\\u0041',
  '\u0000',
  '\n\r\t\b\f',
  '\u007f\u0085\u2028\u2029',
  '\ufeff\ufffd\uffff',
  '😀',
  '👩‍👩‍👧‍👦',
  'e\u0301 é',
  '</script>',
]

export const oddText = fc.oneof(
  fc.constantFrom(...AWKWARD_TEXTS),
  fc.string({ maxLength: 8 }),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
)

/** Names of fields, constructors and choices. Some of them mean something to JavaScript. */
export const identifier = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'length',
    'tag',
    'value',
    '_1',
    "x'",
  ),
  fc.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_']{0,6}$/),
)

/** Derived from a number, which is far quicker than 64 digits drawn one by one. */
const hexId = fc.nat().map((number) => sha256(`${number}`))

const contractId = fc
  .tuple(hexId, fc.constantFrom('ca10', 'ca11', 'ca12'))
  .map(([hash, version]) => `00${hash}${version}1220${sha256(hash)}`)

export const partyId = fc.oneof(
  fc.constantFrom('alice::1220aa', 'bob::1220bb', 'Bob::1220bb', 'DSO::1220dd', 'alice 2::1220aa'),
  fc
    .tuple(fc.stringMatching(/^[a-zA-Z0-9_\- ]{1,8}$/), hexId)
    .map(([hint, fingerprint]) => `${hint}::1220${fingerprint}`),
)

const typeName = fc.record({
  packageId: fc.nat(3).map((number) => sha256(`package ${number}`)),
  moduleName: fc.constantFrom('Splice.Types', 'Main', 'A.B.C'),
  entityName: identifier,
})

/** At most 38 digits, any number of them after the point; zero has no sign. */
const numeric = fc
  .tuple(fc.bigInt(-(10n ** 38n) + 1n, 10n ** 38n - 1n), fc.nat(NUMERIC_DIGITS_MAX - 1), fc.nat(37))
  .map(([digits, scale, shrink]) => printDecimal(digits / 10n ** BigInt(shrink), scale))

type Values = { value: Json; leaf: Json; branch: Json; record: Json }

const values = fc.letrec<Values>((tie) => ({
  leaf: fc.oneof(
    fc.constant({ unit: {} }),
    fc.boolean().map((bool) => ({ bool })),
    fc
      .oneof(fc.bigInt(INT64), fc.constantFrom(0n, INT64.min, INT64.max, 2n ** 53n + 1n))
      .map((int64) => ({ int64: `${int64}` })),
    fc
      .oneof(numeric, fc.constantFrom('0.0000000000', '0.0000000001', '0.0000010000', '-5', '0'))
      .map((text) => ({ numeric: text })),
    oddText.map((text) => ({ text })),
    partyId.map((party) => ({ party })),
    contractId.map((id) => ({ contractId: id })),
    fc.oneof(fc.integer(DATE), fc.constantFrom(0, DATE.min, DATE.max)).map((date) => ({ date })),
    fc
      .oneof(
        fc.bigInt(TIMESTAMP),
        fc.bigInt({ min: -99_999n, max: 99_999n }).map((seconds) => seconds * 1000n),
      )
      .map((micros) => ({ timestamp: `${micros}` })),
    enumeration(),
    fc.constant({ optional: {} }),
    fc.constantFrom<Json>({ list: {} }, { textMap: {} }, { genMap: {} }, { record: {} }),
  ),
  branch: fc.oneof(
    tie('value').map((value) => ({ optional: { value } })),
    fc
      .array(tie('value'), { minLength: 1, maxLength: ENTRIES_MAX })
      .map((elements) => ({ list: { elements } })),
    fc
      .uniqueArray(fc.tuple(oddText, tie('value')), {
        selector: ([key]) => key,
        minLength: 1,
        maxLength: ENTRIES_MAX,
      })
      .map((entries) => ({
        textMap: {
          entries: entries.map(([key, value]) => (key === '' ? { value } : { key, value })),
        },
      })),
    fc
      .uniqueArray(fc.tuple(tie('value'), tie('value')), {
        selector: ([key]) => JSON.stringify(key),
        minLength: 1,
        maxLength: ENTRIES_MAX,
      })
      .map((entries) => ({ genMap: { entries: entries.map(([key, value]) => ({ key, value })) } })),
    fc
      .tuple(fc.option(typeName, { freq: 4, nil: undefined }), identifier, tie('value'))
      .map(([type, name, value]) => ({
        variant: named('variantId', type, { constructor: name, value }),
      })),
    tie('record'),
  ),
  record: fc
    .tuple(
      fc.option(typeName, { freq: 4, nil: undefined }),
      fc.uniqueArray(fc.tuple(identifier, tie('value')), {
        selector: ([label]) => label,
        maxLength: ENTRIES_MAX,
      }),
    )
    .map(([type, fields]) => ({
      record: named(
        'recordId',
        type,
        fields.length === 0 ? {} : { fields: fields.map(([label, value]) => ({ label, value })) },
      ),
    })),
  value: fc.oneof(
    { maxDepth: DEPTH_MAX, depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    tie('branch'),
  ),
}))

export const valueArbitrary: fc.Arbitrary<Json> = values.value
export const recordArbitrary: fc.Arbitrary<Json> = values.record

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function enumeration(): fc.Arbitrary<Json> {
  return fc
    .tuple(fc.option(typeName, { freq: 4, nil: undefined }), identifier)
    .map(([type, name]) => ({ enum: named('enumId', type, { constructor: name }) }))
}

function named(member: string, type: unknown, content: Json): Json {
  return type === undefined ? content : { [member]: type, ...content }
}

function printDecimal(digits: bigint, scale: number): string {
  const sign = digits < 0n ? '-' : ''
  const text = `${digits < 0n ? -digits : digits}`.padStart(scale + 1, '0')
  return scale === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}
