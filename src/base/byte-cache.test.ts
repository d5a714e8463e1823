import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createByteCache } from './byte-cache.ts'

const OVERHEAD = 256

test('the least recently used entries go first', () => {
  const cache = createByteCache<number>(3 * (100 + OVERHEAD))
  for (const n of [1, 2, 3]) cache.put(`${n}`, n, 100)
  assert.equal(cache.get('1'), 1)
  cache.put('4', 4, 100)
  assert.deepEqual(
    [1, 2, 3, 4].map((n) => cache.has(`${n}`)),
    [true, false, true, true],
  )
})

test('looking whether an entry is there is not using it', () => {
  const cache = createByteCache<number>(2 * (100 + OVERHEAD))
  cache.put('1', 1, 100)
  cache.put('2', 2, 100)
  assert.equal(cache.has('1'), true)
  cache.put('3', 3, 100)
  assert.equal(cache.has('1'), false)
})

test('an entry larger than the cache is not kept, and a cache of nothing keeps nothing', () => {
  const cache = createByteCache<string>(1000)
  cache.put('large', 'x', 1000)
  assert.equal(cache.get('large'), undefined)
  assert.equal(cache.bytes, 0)
  const none = createByteCache<string>(0)
  none.put('a', 'x', 0)
  assert.equal(none.get('a'), undefined)
})

test('the cache never holds more than its bytes, and counts them exactly', () => {
  const put = fc.record({ key: fc.nat(20), bytes: fc.nat(2000) })
  fc.assert(
    fc.property(fc.array(put, { maxLength: 100 }), (puts) => {
      const cache = createByteCache<number>(5000)
      const sizes = new Map<string, number>()
      for (const [value, { key, bytes }] of puts.entries()) {
        cache.put(`${key}`, value, bytes)
        sizes.set(`${key}`, bytes + OVERHEAD)
        const held = [...sizes].filter(([name]) => cache.has(name))
        assert.equal(
          cache.bytes,
          held.reduce((sum, [, size]) => sum + size, 0),
        )
        assert.ok(cache.bytes <= 5000)
      }
    }),
  )
})
