import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hasIntegerKey, parseMarked, printMarked, unmarkExcept } from './key-order.ts'

test('keys that look like integers keep their place', () => {
  const text =
    '{"b":1,"10":{"2":[{"1":"1:"}],"0":"\\"2\\":"},"":null,"9007199254740993":9007199254740993}'
  assert.ok(hasIntegerKey(text))
  assert.equal(printMarked(parseMarked(text)), text)
})

test('any JSON survives', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const text = JSON.stringify(JSON.parse(json))
      assert.equal(printMarked(parseMarked(text)), text)
    }),
  )
})

test('plain keys come back, but for what stands under the given names', () => {
  const marked = parseMarked('{"a":{"1":[{"keep":{"2":3}}]}}')
  const plain = unmarkExcept(marked, new Set(['keep']))
  assert.equal(JSON.stringify(plain), '{"a":{"1":[{"keep":{"k2":3}}]}}')
})

test('a line without such keys is told apart', () => {
  assert.equal(hasIntegerKey('{"a":"1","01":2,"1x":3}'), false)
})
