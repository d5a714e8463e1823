import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cron } from 'croner'
import fc from 'fast-check'
import { parseCron } from './cron.ts'

const GOOD = [
  '0 /10 * * * ?',
  '0 0/10 * * * ?',
  '0 */10 * * * ?',
  '0 0 20 * * ?',
  '0 0 8 ? * SAT',
  '0 0 22 1 * ?',
  '0 5/15 12,18-20 ? * MON,THU',
  '0 0 22-2 * * ?',
  '0 0 0 31 12 ? 2025',
  '0 0 0 30 2 ?',
  '0 0 0 ? jan mon',
  '0 0 0 * * ? * extra words',
  '0 0 0 L * ?',
  '0 0 0 L-3 * ?',
  '0 0 0 LW * ?',
  '0 0 0 15W * ?',
  '0 0 0 ? * L',
  '0 0 0 ? * 6L',
  '0 0 0 ? * MON#1',
  '0 0 0 ? * FRI-MON',
  '*/5 * * * * ?',
  '0\t0  0 * * ?',
  '0 0 0 1 JAN-MAR ?',
]

const BAD = [
  '*/10 * * * *',
  '* * * * *',
  '0 30 * * * *',
  '0 0 0 * * *',
  '0 0 8 * * SAT',
  '0 0 8 ? * ?',
  '? 0 8 * * ?',
  '60 0 8 * * ?',
  '0 60 8 * * ?',
  '0 0 24 * * ?',
  '0 0 0 32 * ?',
  '0 0 0 0 * ?',
  '0 0 0 1 0 ?',
  '0 0 0 1 13 ?',
  '0 0 0 ? * 0',
  '0 0 0 ? * 8',
  '0 /60 * * * ?',
  '0 0 /24 * * ?',
  '@hourly',
  'every 10 minutes',
  '',
  '   ',
  '0 / * * * ?',
  '0 0 0 L,15 * ?',
  '0 0 0 ? * MON#1,TUE#2',
  '0 0 0 ? * 6#6',
  '0 0 0 ? FOO MON',
  '0 -5 * * * ?',
  '0 5- * * * ?',
  '0 1,,2 * * * ?',
  '0 */0 * * * ?',
  `0 0 0 * * ? ${'x'.repeat(300)}`,
  '0 0 0 1 * ? 1969',
]

for (const text of GOOD) {
  test(`the schedule '${text}' is taken`, () => assert.ok('value' in parseCron(text)))
}

for (const text of BAD) {
  test(`the schedule '${text.slice(0, 40)}' is refused with a reason`, () => {
    const reading = parseCron(text)
    assert.ok('reason' in reading && reading.reason.length > 5)
  })
}

function next(text: string, after: string): string | undefined {
  const reading = parseCron(text)
  assert.ok('value' in reading)
  return reading.value.next(new Date(after))?.toISOString()
}

test('a schedule is stored in upper case', () => {
  const reading = parseCron('0 0  0 ? jan mon')
  assert.ok('value' in reading)
  assert.equal(reading.value.text, '0 0 0 ? JAN MON')
})

test('the next time is the first strictly later one, in GMT', () => {
  assert.equal(next('0 /10 * * * ?', '2026-03-01T12:00:00.000Z'), '2026-03-01T12:10:00.000Z')
  assert.equal(next('0 /10 * * * ?', '2026-03-01T11:59:59.999Z'), '2026-03-01T12:00:00.000Z')
  assert.equal(next('0 0 22-2 * * ?', '2026-03-01T02:30:00Z'), '2026-03-01T22:00:00.000Z')
  assert.equal(next('0 0 0 L * ?', '2028-02-10T00:00:00Z'), '2028-02-29T00:00:00.000Z')
  assert.equal(next('0 0 0 L-3 * ?', '2026-01-01T00:00:00Z'), '2026-01-28T00:00:00.000Z')
  assert.equal(next('0 0 0 LW * ?', '2026-01-01T00:00:00Z'), '2026-01-30T00:00:00.000Z')
  assert.equal(next('0 0 0 1W * ?', '2026-08-01T00:00:00Z'), '2026-08-03T00:00:00.000Z')
  assert.equal(next('0 0 0 ? * 6L', '2026-01-01T00:00:00Z'), '2026-01-30T00:00:00.000Z')
  assert.equal(next('0 0 0 ? * MON#5', '2026-01-01T00:00:00Z'), '2026-03-30T00:00:00.000Z')
  assert.equal(next('0 0 0 29 2 ?', '2096-03-01T00:00:00Z'), '2104-02-29T00:00:00.000Z')
})

test('a schedule that never fires has no next time', () => {
  assert.equal(next('0 0 0 30 2 ?', '2026-01-01T00:00:00Z'), undefined)
  assert.equal(next('0 0 0 31 12 ? 2025', '2026-01-01T00:00:00Z'), undefined)
})

test('plain schedules fire when croner says they do', () => {
  const field = (min: number, max: number) =>
    fc.oneof(
      fc.constant('*'),
      fc.integer({ min, max }).map(String),
      fc
        .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
        .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
      fc.integer({ min: 2, max: max - min }).map((step) => `*/${step}`),
    )
  fc.assert(
    fc.property(
      fc.tuple(field(0, 59), field(0, 59), field(0, 23), field(1, 28), field(1, 12)),
      fc.date({ min: new Date('2020-01-01'), max: new Date('2030-01-01'), noInvalidDate: true }),
      (fields, after) => {
        const text = `${fields.join(' ')} ?`
        const expected = new Cron(text.replace('?', '*'), { timezone: 'UTC' }).nextRun(after)
        assert.equal(next(text, after.toISOString()), expected?.toISOString())
      },
    ),
    { numRuns: 100 },
  )
})

test('no text makes the parser throw', () => {
  const word = fc.stringMatching(/^[0-9*?/,LW#A-Z-]{1,8}$/)
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), (words) => void parseCron(words.join(' '))),
  )
})
