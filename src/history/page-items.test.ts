import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { historyArbitrary } from '../../test/support/random-history.ts'
import { referenceItem } from '../../test/support/reference.ts'
import { reformat } from '../../test/support/reformat.ts'
import { transaction } from '../../test/support/sample-items.ts'
import { prepareLine } from './encode.ts'
import { itemKey, pageKeys } from './item-key.ts'
import { guessItems, itemBytes, readItems } from './page-items.ts'
import { preparePage } from './prepare-page.ts'

const HISTORY = historyArbitrary({ maxUpdates: 12 })

test('the items of a page are found as they stand in it', () => {
  fc.assert(
    fc.property(HISTORY, (history) => {
      const texts = history.map(({ line }) => line)
      const body = pageOf(texts)
      const items = readItems(body)
      assert.ok(items !== undefined)
      assert.deepEqual(
        items.starts.map((_, i) => itemBytes(items, i).toString()),
        texts,
      )
    }),
  )
})

test('text in a value that looks like the border of an item does not mislead', () => {
  const tricky = { text: '},{"update_id":"' }
  const entries = [{ update_id: '1', a: {} }, { update_id: '2' }]
  const argument = {
    record: { fields: [{ label: 'note', value: tricky }] },
    unknown: entries,
  }
  const item = JSON.stringify(
    transaction({ workflow_id: '},{"update_id":', extra: entries, argument }),
  )
  const body = pageOf([item, item])
  assert.notEqual(guessItems(body)?.starts.length, 2)
  assert.equal(readItems(body)?.starts.length, 2)
  const [keys] = pageKeys([body])
  assert.equal(keys?.keys.length, 2)
  const { updates, refusal } = preparePage({ protobuf: body, compact: body, count: 2 })
  assert.equal(updates.length, 0)
  assert.match(String(refusal?.reason), /compact_json|protobuf_json/)
})

test('what is no page has no items, and says so', () => {
  for (const text of ['', '{', 'null', '[]', '{}', '{"transactions":{}}', '<html>']) {
    assert.equal(readItems(Buffer.from(text)), undefined, text)
    assert.equal(pageKeys([Buffer.from(text)])[0]?.fault?.index, 0, text)
    const refused = preparePage({ protobuf: Buffer.from(text), compact: pageOf([]), count: 9 })
    assert.ok(refused.refusal !== undefined, text)
  }
  assert.equal(readItems(Buffer.from([0x7b, 0xff, 0x7d])), undefined)
})

test('an update has the same key however it is written, and another when it says something else', () => {
  fc.assert(
    fc.property(HISTORY, fc.nat(), (history, seed) => {
      for (const { line } of history) {
        assert.equal(itemKey(reformat(line, seed)), itemKey(line))
        const other = line
          .replace('"workflow_id":"', '"workflow_id":"x')
          .replace('"submitter":"', '"submitter":"x')
        assert.notEqual(itemKey(other), itemKey(line))
      }
    }),
    { numRuns: 30 },
  )
})

test('a page in both encodings, of v1 or v2, is prepared as an import prepares its lines', () => {
  fc.assert(
    fc.property(HISTORY, fc.constantFrom(1 as const, 2 as const), (history, version) => {
      const forms = (encoding: 'protobuf_json' | 'compact_json') =>
        pageOf(
          history.map(({ line }, n) => referenceItem(line, { version, encoding, offset: n + 1 })),
        )
      const bodies = { protobuf: forms('protobuf_json'), compact: forms('compact_json') }
      const page = preparePage({ ...bodies, count: history.length, isProof: true })
      assert.equal(page.refusal, undefined)
      const expected = history.map(({ line }) => prepareLine(line))
      assert.deepEqual(
        page.updates.map(({ compact, protobuf }) => [
          Buffer.from(compact).toString(),
          Buffer.from(protobuf).toString(),
        ]),
        expected.map(({ compact, protobuf }) => [
          Buffer.from(compact).toString(),
          Buffer.from(protobuf).toString(),
        ]),
      )
    }),
    { numRuns: 50 },
  )
})

function pageOf(items: string[]): Buffer {
  return Buffer.from(`{"transactions":[${items.join(',')}]}`)
}
