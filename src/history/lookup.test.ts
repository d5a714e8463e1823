import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../../test/support/engines.ts'
import { openTestHistory } from '../../test/support/histories.ts'
import {
  importUpdate,
  plainLines,
  transaction,
  unassignment,
} from '../../test/support/sample-items.ts'
import { prepareLine } from './encode.ts'
import { openHistory } from './history.ts'
import { findTransaction } from './lookup.ts'

const FORM = { version: 2, encoding: 'compact_json' } as const

forEachEngine((engine) => {
  test(`transactions are found by id and by hash, in frames and in the tail, on ${engine.name}`, async (t) => {
    const lines = [
      JSON.stringify(importUpdate('i1', '00aa')),
      ...plainLines(60).map((line, n) =>
        line.replace(
          '"events_by_id"',
          `"external_transaction_hash":"${'AB'.repeat(n + 1)}","events_by_id"`,
        ),
      ),
      JSON.stringify(unassignment({ record_time: '2025-06-01T00:00:00Z' })),
    ]
    const history = await openTestHistory(t, engine, lines)
    for (const n of [0, 24, 25, 49, 50, 59]) {
      const updateId = `1220${n.toString(16).padStart(8, '0')}`
      const byId = await findTransaction(history, { kind: 'id', text: updateId }, FORM)
      assert.equal(JSON.parse(String(byId)).update_id, updateId)
      const byHash = await findTransaction(
        history,
        { kind: 'hash', text: 'ab'.repeat(n + 1) },
        FORM,
      )
      assert.deepEqual(byHash, byId)
    }
    for (const key of [
      { kind: 'id', text: 'unknown' },
      { kind: 'id', text: '1220ee' },
      { kind: 'id', text: 'ab' },
      { kind: 'hash', text: '122000000000' },
      { kind: 'hash', text: '' },
    ] as const) {
      assert.equal(await findTransaction(history, key, FORM), undefined)
    }
  })

  test(`of two transactions with one id the older is found on ${engine.name}`, async (t) => {
    const history = await openTestHistory(
      t,
      engine,
      [1, 2].map((migration_id) => JSON.stringify(transaction({ migration_id }))),
    )
    const found = await findTransaction(history, { kind: 'id', text: '1220aa' }, FORM)
    assert.equal(JSON.parse(String(found)).migration_id, 1)
  })

  test(`a follower finds what the writer has appended on ${engine.name}`, async (t) => {
    const writer = await openTestHistory(t, engine, plainLines(10))
    const follower = await openHistory({ db: writer.db, cacheBytes: 100_000, isFollower: true })
    const [line] = plainLines(1, { from: 10 })
    await writer.append([prepareLine(line as string)])
    const deadline = performance.now() + 1000
    let found: Buffer | undefined
    while (found === undefined) {
      assert.ok(performance.now() < deadline, 'within a second')
      found = await findTransaction(follower, { kind: 'id', text: '12200000000a' }, FORM)
      await new Promise(setImmediate)
    }
  })
})
