import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  DECIMAL_MAX,
  decimal,
  divideDecimals,
  multiplyDecimals,
  parseDecimal,
  printDecimal,
} from './decimal.ts'

const any = fc.bigInt(-DECIMAL_MAX, DECIMAL_MAX)

test('a decimal prints with ten places and reads back', () => {
  assert.equal(printDecimal(decimal('1.5')), '1.5000000000')
  assert.equal(printDecimal(decimal('-0.0000000001')), '-0.0000000001')
  assert.equal(printDecimal(0n), '0.0000000000')
  fc.assert(
    fc.property(any, (value) => assert.equal(parseDecimal(printDecimal(value)), value)),
    { numRuns: 1000 },
  )
})

test('only plain numbers with at most ten places and 28 digits before them are decimals', () => {
  for (const text of ['', '.5', '1.', '1e3', '0x1', ' 1', '1,5', '1.00000000001', '1'.repeat(29)]) {
    assert.equal(parseDecimal(text), undefined, text)
  }
  assert.throws(() => decimal('much'), TypeError)
})

test('products and quotients are rounded half to even', () => {
  const cases: [a: string, b: string, product: string][] = [
    ['0.5', '0.0000000001', '0.0000000000'],
    ['1.5', '0.0000000001', '0.0000000002'],
    ['2.5', '0.0000000001', '0.0000000002'],
    ['-1.5', '0.0000000001', '-0.0000000002'],
    ['1.2', '16.67', '20.0040000000'],
  ]
  for (const [a, b, product] of cases) {
    assert.equal(printDecimal(multiplyDecimals(decimal(a), decimal(b))), product)
  }
  assert.equal(printDecimal(divideDecimals(decimal('1400'), decimal('0.15'))), '9333.3333333333')
  assert.equal(printDecimal(divideDecimals(decimal('2'), decimal('3'))), '0.6666666667')
  assert.equal(printDecimal(divideDecimals(decimal('-2'), decimal('3'))), '-0.6666666667')
})

test('a quotient is never off by more than half of the last place', () => {
  const divisor = fc.bigInt(-(10n ** 15n), 10n ** 15n).filter((value) => value !== 0n)
  fc.assert(
    fc.property(any, divisor, (a, b) => {
      const rest = a * 10n ** 10n - divideDecimals(a, b) * b
      const twice = 2n * (rest < 0n ? -rest : rest)
      assert.ok(twice <= (b < 0n ? -b : b))
    }),
  )
})
