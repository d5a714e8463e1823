import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DECIMAL_ONE, decimal } from '../values/decimal.ts'
import { printSentence } from './decision.ts'
import { decideSweep, type SweepRule } from './sweep.ts'

const rule = (of: Partial<Record<'max' | 'min', string>> & Partial<SweepRule> = {}): SweepRule => ({
  sender: 'alice::1220ab',
  receiver: 'bob::1220ab',
  maxBalanceUsd: decimal(of.max ?? '1000'),
  minBalanceUsd: decimal(of.min ?? '100'),
  usePreapproval: of.usePreapproval ?? false,
  ...(of.receiver === undefined ? {} : { receiver: of.receiver }),
})

// price, balance, maximum, minimum, outstanding, by preapproval: what is sent, or undefined
const TABLE: [string, string, string, string, string, boolean, string | undefined][] = [
  ['0.15', '10000', '1000', '100', '0', false, '9333.3333333333'],
  ['1', '20', '10', '2', '0', false, '18'],
  ['1', '20', '10', '2', '0', true, '18'],
  // Strictly above: exactly the maximum stays, the smallest unit more goes.
  ['1', '10', '10', '2', '0', false, undefined],
  ['1', '10.0000000001', '10', '2', '0', false, '8.0000000001'],
  // The product decides, not its rounding: 10.00000000005 USD are above 10 USD.
  ['0.5', '20.0000000001', '10', '2', '0', false, '16.0000000002'],
  ['1', '9', '10', '2', '0', false, undefined],
  // What is on its way counts as gone, except in preapproval mode.
  ['1', '20', '10', '2', '18', false, undefined],
  ['1', '20', '10', '2', '10', false, undefined],
  ['1', '20', '10', '2', '9', false, '9'],
  ['1', '20', '10', '2', '18', true, '18'],
  ['0.15', '10000', '1000', '100', '1000', false, '8333.3333333333'],
  // Half up: 2/3 of a unit is rounded up, 1/3 down.
  ['3', '10', '10', '1', '0', false, '9.6666666667'],
  ['3', '10', '10', '2', '0', false, '9.3333333333'],
  // Everything: never more than there is, though dollars were rounded up in between.
  ['0.15', '10000.0000000001', '1000', '0', '0', false, '10000'],
  ['0.15', '10000.0000000005', '1000', '0', '0', false, '10000.0000000005'],
  ['0.07', '100000.0000000008', '1000', '0', '0', true, '100000.0000000008'],
  // A minimum equal to the maximum sweeps every small income on its own.
  ['1', '11', '10', '10', '0', false, '1'],
  // A minimum above the maximum cannot be left behind.
  ['1', '11', '10', '12', '0', false, undefined],
  ['1', '12', '10', '12', '0', false, undefined],
]

test('next to the maximum a dry run says more than cents', () => {
  const facts = { balance: decimal('10.0000000001'), price: decimal('1'), outstanding: 0n }
  assert.equal(
    printSentence(decideSweep(rule({ max: '10', min: '2' }), facts)),
    'would offer 8.0000000001 to bob::1220ab, because 10.0000000001 coins at 1 USD are 10.0000000001 USD, above the maximum of 10 USD, and 2.00 USD stay',
  )
})

for (const [price, balance, max, min, outstanding, usePreapproval, sent] of TABLE) {
  const what = sent === undefined ? 'sends nothing' : `sends ${sent}`
  const mode = usePreapproval ? 'preapproval' : 'offer'
  test(`${balance} at ${price}, from ${max} down to ${min}, ${outstanding} outstanding, by ${mode}: ${what}`, () => {
    const decision = decideSweep(rule({ max, min, usePreapproval }), {
      balance: decimal(balance),
      price: decimal(price),
      outstanding: decimal(outstanding),
    })
    const amount = decision.kind === 'act' ? decision.plan.amount : undefined
    assert.equal(amount, sent === undefined ? undefined : decimal(sent))
  })
}

const facts = (of: Record<string, string> = {}) => ({
  balance: decimal(of.balance ?? '10000'),
  price: decimal(of.price ?? '0.15'),
  outstanding: decimal(of.outstanding ?? '0'),
})

test('a decision says in a sentence what it would do and why', () => {
  assert.equal(
    printSentence(decideSweep(rule(), facts())),
    'would offer 9333.3333333333 to bob::1220ab, because 10000 coins at 0.15 USD are 1500.00 USD, above the maximum of 1000.00 USD, and 100.00 USD stay',
  )
  assert.equal(
    printSentence(decideSweep(rule({ usePreapproval: true }), facts())).split(',')[0],
    'would send 9333.3333333333 to bob::1220ab',
  )
  assert.equal(
    printSentence(decideSweep(rule(), facts({ outstanding: '9333.3333333333' }))),
    'would do nothing, because 10000 coins at 0.15 USD are 1500.00 USD, and with the 9333.3333333333 coins that are on their way to the receiver that is not above the maximum of 1000.00 USD',
  )
})

test('a sweep to oneself, without a price or with a minimum above the maximum is a warning', () => {
  const decisions = [
    decideSweep(rule({ receiver: 'alice::1220ab' }), facts()),
    decideSweep(rule(), facts({ price: '0' })),
    decideSweep(rule({ min: '2000' }), facts()),
  ]
  for (const decision of decisions) {
    assert.equal(decision.kind, 'wait')
    assert.equal(decision.kind === 'wait' && decision.isWarning, true)
  }
})

test('a sweep never sends more than there is, and leaves the minimum but for rounding', () => {
  const units = (max: bigint) => fc.bigInt(1n, max * DECIMAL_ONE)
  fc.assert(
    fc.property(
      units(1_000_000n),
      units(100n),
      units(10_000n),
      units(10_000n),
      units(1_000n),
      (balance, price, a, b, outstanding) => {
        const [minBalanceUsd, maxBalanceUsd] = a < b ? [a, b] : [b, a]
        const decision = decideSweep(
          { ...rule(), minBalanceUsd, maxBalanceUsd },
          { balance, price, outstanding },
        )
        if (decision.kind === 'wait') {
          assert.ok((balance - outstanding) * price <= maxBalanceUsd * DECIMAL_ONE)
          return
        }
        const left = balance - outstanding - decision.plan.amount
        assert.ok(decision.plan.amount > 0n && left >= 0n)
        const off = left * price - minBalanceUsd * DECIMAL_ONE
        assert.ok((off < 0n ? -off : off) <= DECIMAL_ONE + price)
      },
    ),
  )
})
