import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  INSTANT_MAX,
  INSTANT_MIN,
  instantFromMicros,
  microsOf,
  parseInstant,
  printDate,
  printInThrees,
  printShortest,
} from './instant.ts'

const micros = fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n })

test('times with Z or an offset are read, floored to the microsecond', () => {
  const cases: Record<string, string> = {
    '2024-09-20T13:31:28Z': '2024-09-20T13:31:28.000000Z',
    '2024-09-20T13:31:28.Z': '2024-09-20T13:31:28.000000Z',
    '2024-09-20T13:31:28.4Z': '2024-09-20T13:31:28.400000Z',
    '2024-09-20t13:31:28.405180z': '2024-09-20T13:31:28.405180Z',
    '2024-09-20T13:31:28.123456999Z': '2024-09-20T13:31:28.123456Z',
    '2024-09-20T13:31:28+02:00': '2024-09-20T11:31:28.000000Z',
    '2024-09-20T13:31:28.5-00:00': '2024-09-20T13:31:28.500000Z',
    '2024-09-20T13:31:28+02:00:30': '2024-09-20T11:30:58.000000Z',
    '2024-09-20T00:00:00+18:00': '2024-09-19T06:00:00.000000Z',
    '2024-09-20T24:00:00Z': '2024-09-21T00:00:00.000000Z',
    '2024-12-31T23:59:60Z': '2024-12-31T23:59:59.000000Z',
    '2024-02-29T00:00:00Z': '2024-02-29T00:00:00.000000Z',
    '2000-02-29T00:00:00Z': '2000-02-29T00:00:00.000000Z',
    '0000-12-31T23:30:00-01:00': '0001-01-01T00:30:00.000000Z',
    '0001-01-01T00:00:00Z': INSTANT_MIN,
    '9999-12-31T23:59:59.999999999Z': INSTANT_MAX,
    '1969-12-31T23:59:59.999999Z': '1969-12-31T23:59:59.999999Z',
  }
  for (const [text, expected] of Object.entries(cases)) {
    assert.equal(parseInstant(text), expected, text)
  }
})

test('anything else is no time', () => {
  const wrong = [
    ...['', 'Invalid', '2024-09-20', '2024-09-20T13:31:28', '2024-09-20T13:31Z', '1726839088'],
    ...['2024-09-20 13:31:28Z', ' 2024-09-20T13:31:28Z', '2024-09-20T13:31:28Z\n'],
    ...['2024-09-20T13:31:28+02', '2024-09-20T13:31:28+0200', '2024-09-20T13:31:28+18:01'],
    ...['2024-09-20T13:31:28+01:60', '2024-09-20T13:31:28,5Z', '2024-09-20T13:31:28.1234567890Z'],
    ...['2024-13-01T00:00:00Z', '2024-00-01T00:00:00Z', '2024-01-32T00:00:00Z'],
    ...['2023-02-29T00:00:00Z', '1900-02-29T00:00:00Z', '2024-04-31T00:00:00Z'],
    ...['2024-01-01T24:00:01Z', '2024-01-01T24:00:00.000001Z', '2024-01-01T12:59:60Z'],
    ...['2024-01-01T12:60:00Z', '2024-01-01T25:00:00Z', '0000-01-01T00:00:00Z'],
    ...['9999-12-31T24:00:00Z', '9999-12-31T23:59:59-00:01', '0001-01-01T00:00:00+00:01'],
    ...[
      '-001-01-01T00:00:00Z',
      '+2024-01-01T00:00:00Z',
      '12024-01-01T00:00:00Z',
      '２024-01-01T00:00:00Z',
    ],
  ]
  for (const text of wrong) assert.equal(parseInstant(text), undefined, text)
})

test('microseconds and instants are two names of the same, in the same order', () => {
  fc.assert(
    fc.property(micros, micros, (one, other) => {
      const [a, b] = [instantFromMicros(one), instantFromMicros(other)]
      assert(a !== undefined && b !== undefined)
      assert.equal(a.length, 27)
      assert.equal(microsOf(a), one)
      assert.equal(parseInstant(a), a)
      assert.equal(a < b, one < other)
    }),
  )
  assert.equal(instantFromMicros(-62_135_596_800_000_001n), undefined)
  assert.equal(instantFromMicros(253_402_300_800_000_000n), undefined)
})

test('an offset moves the instant by exactly itself', () => {
  const minutes = fc.integer({ min: -18 * 60, max: 18 * 60 })
  fc.assert(
    fc.property(micros, minutes, (instant, offset) => {
      const local = instantFromMicros(instant + BigInt(offset) * 60_000_000n)
      if (local === undefined) return
      const size = Math.abs(offset)
      const zone = `${offset < 0 ? '-' : '+'}${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`
      assert.equal(parseInstant(local.replace('Z', zone)), instantFromMicros(instant))
    }),
  )
})

test('fractions are printed in threes, or as short as can be', () => {
  const cases: [fraction: string, inThrees: string, shortest: string][] = [
    ['000000', '', ''],
    ['400000', '.400', '.4'],
    ['405000', '.405', '.405'],
    ['405180', '.405180', '.40518'],
    ['000001', '.000001', '.000001'],
    ['100100', '.100100', '.1001'],
  ]
  for (const [fraction, inThrees, shortest] of cases) {
    const instant = parseInstant(`2024-09-20T13:30:00.${fraction}Z`)
    assert(instant !== undefined)
    assert.equal(printInThrees(instant), `2024-09-20T13:30:00${inThrees}Z`)
    assert.equal(printShortest(instant), `2024-09-20T13:30:00${shortest}Z`)
  }
})

test('days since 1970 are ISO dates of the years 0001 to 9999', () => {
  assert.equal(printDate(0), '1970-01-01')
  assert.equal(printDate(19_986), '2024-09-20')
  assert.equal(printDate(-719_162), '0001-01-01')
  assert.equal(printDate(2_932_896), '9999-12-31')
  assert.equal(printDate(-719_163), undefined)
  assert.equal(printDate(2_932_897), undefined)
})
