import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../../test/support/engines.ts'
import {
  exportText,
  importText,
  newPool,
  openTestHistory,
  position,
} from '../../test/support/histories.ts'
import {
  createdEvent,
  exercisedEvent,
  importUpdate,
  plainLines,
  transaction,
  transactionOf,
} from '../../test/support/sample-items.ts'

const ID = '1220dd'
const unlabelled = { record: { fields: [{ value: { int64: '1' } }] } }
const both = (value: unknown) =>
  transaction({
    update_id: ID,
    record_time: '2025-02-01T00:00:00.000000Z',
    root_event_ids: [`${ID}:0`],
    events_by_id: { [`${ID}:0`]: createdEvent(`${ID}:0`, { create_arguments: value }) },
  })
const LINES = [
  JSON.stringify(importUpdate('i1', '00ab')),
  JSON.stringify(importUpdate('i2', '00aa')),
  ...plainLines(30),
  `{"protobuf_json":${JSON.stringify(both(unlabelled))},"compact_json":${JSON.stringify(both(['1']))}}`,
  JSON.stringify(
    transactionOf([exercisedEvent(`${ID}ee:7`, [`${ID}ee:8`]), createdEvent(`${ID}ee:8`)], {
      update_id: `${ID}ee`,
      record_time: '2025-02-01T00:00:01.000000Z',
    }),
  ),
  JSON.stringify(importUpdate('j1', '00ab', { migration_id: 3 })),
  ...plainLines(3, { migrationId: 3 }),
]
const TEXT = `${LINES.join('\n')}\n`

forEachEngine((engine) => {
  test(`what was imported is exported byte for byte, and the other way round, on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine, LINES)
    assert.equal(await exportText(history), TEXT)
    const copy = await openTestHistory(t, engine)
    await importText(copy, newPool(t), TEXT)
    assert.equal(await exportText(copy), TEXT)
  })

  test(`a range starts with its first position and ends before its last on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine, LINES)
    const start = position(1, '0001-01-01T00:00:00.000000Z')
    const third = position(1, '2025-01-01T00:00:03.000000Z')
    const later = position(1, '2025-01-01T00:00:03.000001Z')
    const end = position(99, '0001-01-01T00:00:00.000000Z')
    const lines = (from: number, to: number) =>
      LINES.slice(from, to)
        .map((line) => `${line}\n`)
        .join('')
    const cases: [range: Parameters<typeof exportText>[1], from: number, to: number][] = [
      [{ from: start }, 0, LINES.length],
      [{ to: start }, 0, 0],
      [{ to: third }, 0, 5],
      [{ from: third }, 5, LINES.length],
      [{ from: third, to: third }, 5, 5],
      [{ from: third, to: later }, 5, 6],
      [{ from: later, to: third }, 0, 0],
      [{ from: position(2, '2025-01-01T00:00:00.000000Z') }, 34, LINES.length],
      [{ from: position(3, '0001-01-01T00:00:00.000001Z') }, 35, LINES.length],
      [{ to: position(3, '0001-01-01T00:00:00.000001Z') }, 0, 35],
      [{ from: end }, 0, 0],
      [{ to: end }, 0, LINES.length],
      [{ to: position(-1, '9999-01-01T00:00:00.000000Z') }, 0, 0],
    ]
    for (const [range, from, to] of cases) {
      assert.equal(await exportText(history, range), lines(from, to), JSON.stringify({ from, to }))
    }
  })

  test(`an empty history is an empty file on ${engine.name}`, async (t) => {
    assert.equal(await exportText(await openTestHistory(t, engine)), '')
  })
})
