import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodePageToken, encodePageToken } from './page-token.ts'
import { partyFault, userIdFault } from './user.ts'

test('a token has the form of the protocol', () => {
  assert.equal(encodePageToken('alice'), 'CgVhbGljZQ==')
})

test('every id comes back out of its token', () => {
  const id = fc.string({ unit: fc.constantFrom(...'ab:-_ 1'), minLength: 1, maxLength: 255 })
  fc.assert(fc.property(id, (text) => decodePageToken(encodePageToken(text), partyFault) === text))
})

test('no token means the first page', () => {
  assert.equal(decodePageToken('', userIdFault), undefined)
})

test('anything else is refused', () => {
  const bad = ['x', '====', 'CgVhbGljZQ==x', 'CgVhbGlj', 'CgA=', 'EgVhbGljZQ==', 'CgE/', '💥', ' ']
  for (const token of bad) {
    assert.throws(() => decodePageToken(token, userIdFault), { code: 'INVALID_ARGUMENT' }, token)
  }
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (token) => {
      try {
        const id = decodePageToken(token, userIdFault)
        return id === undefined || userIdFault(id) === undefined
      } catch (error) {
        return (error as { code: string }).code === 'INVALID_ARGUMENT'
      }
    }),
  )
})
