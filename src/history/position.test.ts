import assert from 'node:assert/strict'
import { test } from 'node:test'
import { position } from '../../test/support/histories.ts'
import { comparePositions, follows, justBefore, printPosition } from './position.ts'

const noon = position(1, '2024-09-20T12:00:00.000000Z')

test('positions are ordered by migration id, then by record time', () => {
  const later = position(1, '2024-09-20T12:00:00.000001Z')
  const next = position(2, '0001-01-01T00:00:00.000000Z')
  assert.equal(comparePositions(noon, noon), 0)
  assert.equal(comparePositions(noon, later), -1)
  assert.equal(comparePositions(next, later), 1)
  assert.equal(printPosition(noon), '1,2024-09-20T12:00:00.000000Z')
})

test('just before a position is a microsecond earlier, or the end of the migration before', () => {
  assert.equal(justBefore(noon).recordTime, '2024-09-20T11:59:59.999999Z')
  assert.deepEqual(
    justBefore(position(-(2n ** 63n), '0001-01-01T00:00:00.000000Z')),
    position(-(2n ** 63n) - 1n, '9999-12-31T23:59:59.999999Z'),
  )
})

test('only import updates share a position, in the order of the bytes of their ids', () => {
  const at = (updateId: string, importedContractId?: string) => ({
    ...noon,
    updateId,
    importedContractId,
  })
  assert.equal(follows(at('b'), at('a')), false)
  assert.equal(follows(at('b', 'c1'), at('a', 'c0')), true)
  assert.equal(follows(at('a', 'c1'), at('a', 'c0')), false)
  // In UTF-16, JavaScript's order, the second would come first.
  assert.equal(follows(at('\u{10000}', 'c1'), at('\uffff', 'c0')), true)
})
