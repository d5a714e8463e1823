import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRetryAfter } from './retry-after.ts'

const MINUTE_MS = 60_000

const CASES: [header: string | null | undefined, ms: number | undefined][] = [
  ['0', 0],
  ['7', 7_000],
  [' 7 ', 7_000],
  ['61', MINUTE_MS],
  ['999999999', MINUTE_MS],
  ['9999999999', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['soon', undefined],
  ['', undefined],
  [null, undefined],
  [undefined, undefined],
  ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ['Fri, 31 Dec 9999 23:59:59 GMT', MINUTE_MS],
]

for (const [header, ms] of CASES) {
  test(`Retry-After ${JSON.stringify(header)} is ${ms ?? 'nothing'}`, () => {
    assert.equal(readRetryAfter(header, MINUTE_MS), ms)
  })
}

test('a date is the time from now until then', () => {
  const ms = readRetryAfter(new Date(Date.now() + 30_000).toUTCString(), MINUTE_MS)
  assert.ok(ms !== undefined && ms > 25_000 && ms <= 30_000, String(ms))
})
