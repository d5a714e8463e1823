import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { prepareLine } from '../../src/history/encode.ts'
import { historyArbitrary } from './random-history.ts'
import { reformat } from './reformat.ts'

const history = historyArbitrary({ maxUpdates: 12 })
const NO_OFFSET = /"offset":"0{18}",/

test('a random history is in order, with exact migration ids', () => {
  fc.assert(
    fc.property(history, (updates) => {
      for (const [index, { migrationId, recordTime, line, item }] of updates.entries()) {
        const before = updates[index - 1]
        assert(
          before === undefined ||
            before.migrationId < migrationId ||
            (before.migrationId === migrationId && before.recordTime < recordTime),
        )
        assert.match(line, new RegExp(`"migration_id":${migrationId}[,}]`))
        assert.equal(JSON.stringify(item), line)
      }
    }),
    { numRuns: 50 },
  )
})

test('a random line is a valid update in canonical form', () => {
  fc.assert(
    fc.property(history, (updates) => {
      for (const { line, migrationId, recordTime } of updates) {
        const prepared = prepareLine(line)
        assert.equal(Buffer.from(prepared.protobuf).toString().replace(NO_OFFSET, ''), line)
        assert.deepEqual([prepared.migrationId, prepared.recordTime], [migrationId, recordTime])
      }
    }),
    { numRuns: 50 },
  )
})

test('a reformatted line looks different and means the same', () => {
  fc.assert(
    fc.property(history, fc.nat(), (updates, seed) => {
      for (const { line } of updates) {
        const other = reformat(line, seed)
        assert.notEqual(other, line)
        assert.doesNotMatch(other, /[\r\n]/)
        const [expected, found] = [prepareLine(line), prepareLine(other)]
        assert.equal(
          Buffer.from(found.protobuf).toString(),
          Buffer.from(expected.protobuf).toString(),
        )
        assert.equal(
          Buffer.from(found.compact).toString(),
          Buffer.from(expected.compact).toString(),
        )
      }
    }),
    { numRuns: 50 },
  )
})

test('the same seed reformats alike', () => {
  const [update] = fc.sample(history, { numRuns: 20, seed: 5 }).flat()
  assert(update !== undefined)
  assert.equal(reformat(update.line, 3), reformat(update.line, 3))
  assert.notEqual(reformat(update.line, 3), reformat(update.line, 4))
})
