import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseCoding } from './content-coding.ts'

test('the coding is the one the client rates highest, zstd before gzip among equals', () => {
  const cases: [header: string | undefined, coding: string][] = [
    [undefined, 'identity'],
    ['', 'identity'],
    ['identity', 'identity'],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['zstd', 'zstd'],
    ['gzip, deflate', 'gzip'],
    ['gzip, deflate, br, zstd', 'zstd'],
    ['gzip;q=1.0, zstd;q=0.5', 'gzip'],
    ['gzip; q=0.1 , identity;q=0.5', 'identity'],
    ['zstd;q=0, gzip;q=0', 'identity'],
    ['br', 'identity'],
    ['*', 'zstd'],
    ['*;q=0', 'identity'],
    ['zstd;q=0, *', 'gzip'],
    ['gzip;q=nonsense', 'identity'],
    [';;;,,,q=', 'identity'],
  ]
  for (const [header, coding] of cases) assert.equal(chooseCoding(header), coding, header)
})
