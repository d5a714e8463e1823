import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createDirectory } from './directory.ts'

test('the directory finds the last frame that starts at or before a position', () => {
  const entry = fc.tuple(fc.bigInt({ min: -2n, max: 5n }), fc.bigInt({ min: -9n, max: 9n }))
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 40 }), entry, fc.nat(40), (positions, wanted, n) => {
      const compare = (a: [bigint, bigint], b: [bigint, bigint]) =>
        a[0] === b[0] ? Number(a[1] - b[1]) : Number(a[0] - b[0])
      const sorted = positions.toSorted(compare)
      const directory = createDirectory()
      for (const [number, [migrationId, micros]] of sorted.entries()) {
        directory.push({ number, migrationId, micros })
      }
      const visible = Math.min(n, sorted.length)
      const expected = sorted
        .slice(0, visible)
        .findLastIndex((position) => compare(position, wanted) <= 0)
      assert.equal(directory.findLast(visible, ...wanted), expected)
    }),
  )
})

test('a directory grows beyond its first capacity', () => {
  const directory = createDirectory()
  for (let n = 0; n < 5000; n += 1) {
    directory.push({ number: n, migrationId: 2n ** 63n - 1n, micros: BigInt(n) })
  }
  assert.equal(directory.frames, 5000)
  assert.equal(directory.findLast(5000, 2n ** 63n - 1n, 4321n), 4321)
  assert.equal(directory.findLast(100, 2n ** 63n - 1n, 4321n), 99)
  assert.equal(directory.findLast(5000, 0n, 4321n), -1)
})
