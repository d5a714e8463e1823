import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { forEachEngine } from '../../test/support/engines.ts'
import { openTestHistory, pageText, position } from '../../test/support/histories.ts'
import { importUpdate, plainLines, transaction } from '../../test/support/sample-items.ts'
import type { Db } from '../db/db.ts'
import { OutOfOrderError, SecondWriterError } from './append.ts'
import { prepareLine } from './encode.ts'
import { openHistory } from './history.ts'
import { loadView } from './view.ts'

const EVERYTHING = { depth: null, maxArrayLength: null, maxStringLength: null }
const CACHE = { cacheBytes: 1_000_000 }

/** A database in whose transactions the n-th statement fails. */
function failingAt(db: Db, failure: { at: number }): Db {
  return {
    ...db,
    transaction: (work) =>
      db.transaction((tx) => {
        const step = () => {
          failure.at -= 1
          if (failure.at === 0) throw new Error('the machine has failed')
        }
        return work({
          ...tx,
          execute: async (...args) => {
            step()
            return tx.execute(...args)
          },
          executeMany: async (...args) => {
            step()
            return tx.executeMany(...args)
          },
        })
      }),
  }
}

async function rowsOf(db: Db): Promise<unknown> {
  const tables = ['tail', 'frame', 'frame_directory', 'update_key', 'import_update']
  const counts = await Promise.all(
    tables.map((table) => db.query(`select count(*) as count from ${table}`)),
  )
  return [
    counts,
    await db.query('select * from history'),
    await db.query('select * from synchronizer_range'),
  ]
}

forEachEngine((engine) => {
  test(`an appended update must follow the last position on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine, plainLines(3))
    const before = await rowsOf(history.db)
    const [first, second, third, fourth] = plainLines(4).map(prepareLine)
    assert(first && second && third && fourth)
    const older = prepareLine(
      JSON.stringify(transaction({ migration_id: 0, record_time: '9999-01-01T00:00:00Z' })),
    )
    for (const batch of [[first], [second], [third], [third, fourth], [fourth, fourth], [older]]) {
      await assert.rejects(history.append(batch), OutOfOrderError)
    }
    assert.deepEqual(await rowsOf(history.db), before)
    await history.append([fourth])
    assert.equal(history.view.updates, 4)
    const next = prepareLine(
      JSON.stringify(transaction({ migration_id: 2, record_time: '0002-01-01T00:00:00Z' })),
    )
    await history.append([next])
    assert.deepEqual(history.view.last, {
      ...position(2, '0002-01-01T00:00:00.000000Z'),
      updateId: '1220aa',
    })
  })

  test(`import updates stand at the beginning of their migration, in order of their ids, on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine)
    const imported = (id: string, contract: string, migration: number) =>
      prepareLine(JSON.stringify(importUpdate(id, contract, { migration_id: migration })))
    await history.append([imported('a', '2', 1), imported('b', '1', 1)])
    await assert.rejects(history.append([imported('b', '3', 1)]), OutOfOrderError)
    await assert.rejects(history.append([imported('aa', '3', 1)]), OutOfOrderError)
    await history.append([imported('c', '3', 1), ...plainLines(1).map(prepareLine)])
    await assert.rejects(history.append([imported('d', '4', 1)]), OutOfOrderError)
    await history.append([imported('\uffff', '4', 2), imported('\u{10000}', '5', 2)])
    assert.deepEqual([history.view.updates, history.view.imports], [1, 5])
    assert.equal(history.view.lastOffset, 6n)
  })

  test(`a batch is stored whole or not at all on ${engine.name}`, async (t) => {
    const db = await engine.open(t, 'app')
    const failure = { at: 0 }
    const history = await openHistory({ db: failingAt(db, failure), ...CACHE })
    const lines = [
      JSON.stringify(importUpdate('i', '00ff')),
      ...plainLines(60).map((line, n) =>
        n % 2
          ? line
          : line.replace(
              '"events_by_id"',
              `"external_transaction_hash":"${'ab'.repeat(n + 1)}","events_by_id"`,
            ),
      ),
    ]
    await history.append(lines.slice(0, 11).map(prepareLine))
    const before = await rowsOf(db)
    let steps = 0
    for (let at = 1; ; at += 1) {
      failure.at = at
      try {
        await history.append(lines.slice(11).map(prepareLine))
        break
      } catch (error) {
        assert.match((error as Error).message, /the machine has failed/)
        steps += 1
      }
      assert.deepEqual(await rowsOf(db), before)
      assert.equal(history.view.updates, 10)
    }
    assert.ok(steps >= 6, `${steps} statements`)
    assert.equal(history.view.updates, 60)
    const again = await openHistory({ db, ...CACHE })
    assert.equal(await pageText(again), await pageText(history))
  })

  test(`of two writers the slower one is told, and nothing of its batch is stored, on ${engine.name}`, async (t) => {
    const one = await openTestHistory(t, engine, plainLines(30))
    const other = await openHistory({ db: one.db, ...CACHE })
    await one.append(plainLines(1, { from: 30 }).map(prepareLine))
    const before = await rowsOf(one.db)
    await assert.rejects(
      other.append(plainLines(2, { from: 40 }).map(prepareLine)),
      SecondWriterError,
    )
    assert.deepEqual(await rowsOf(one.db), before)
    await other.append(plainLines(2, { from: 50 }).map(prepareLine))
    assert.equal(other.view.updates, 33)
  })

  test(`batches of any sizes give the same store as one batch on ${engine.name}`, async (t) => {
    const lines = plainLines(137)
    const whole = await openTestHistory(t, engine, lines)
    const split = await openTestHistory(t, engine)
    const sizes = [1, 24, 1, 25, 26, 3, 50, 7]
    let at = 0
    for (const size of sizes) {
      await split.append(lines.slice(at, at + size).map(prepareLine))
      at += size
    }
    assert.equal(at, lines.length)
    for (const table of ['history', 'tail', 'frame', 'frame_directory', 'update_key']) {
      const order = { history: 'id', tail: 'ordinal', update_key: 'key' }[table] ?? 'number'
      const rows = async (db: Db) =>
        inspect(await db.query(`select * from ${table} order by ${order}`), EVERYTHING)
      assert.equal(await rows(split.db), await rows(whole.db), table)
    }
  })

  test(`appends that do not wait for each other are stored in the order of the calls on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine)
    const lines = plainLines(60)
    await Promise.all(lines.map((line) => history.append([prepareLine(line)])))
    assert.equal(history.view.updates, 60)
    const again = await openHistory({ db: history.db, ...CACHE })
    assert.equal(await pageText(again), await pageText(history))
  })

  test(`after a commit whose answer is lost the next append knows that it happened, on ${engine.name}`, async (t) => {
    const db = await engine.open(t, 'app')
    let isLost = true
    const history = await openHistory({
      ...CACHE,
      db: {
        ...db,
        async transaction(work) {
          const result = await db.transaction(work)
          if (isLost) throw new Error('the connection is lost')
          return result
        },
      },
    })
    const lines = plainLines(40)
    await assert.rejects(history.append(lines.slice(0, 30).map(prepareLine)), /lost/)
    isLost = false
    await assert.rejects(history.append(lines.slice(0, 30).map(prepareLine)), OutOfOrderError)
    await history.append(lines.slice(30).map(prepareLine))
    assert.equal(history.view.updates, 40)
    assert.equal((await pageText(history)).match(/"update_id"/g)?.length, 40)
  })

  test(`a view never takes later rows of the tail for its own on ${engine.name}`, async (t) => {
    const writer = await openTestHistory(t, engine, plainLines(30))
    const { db } = writer
    let isTailAsked = false
    const view = await loadView({
      ...db,
      // Between a reader's look at the state and at the tail, the writer seals that tail.
      async queryBinary<Row>(sql: string, params?: (number | bigint)[]) {
        if (/from tail/.test(sql) && !isTailAsked) {
          isTailAsked = true
          await writer.append(plainLines(30, { from: 30 }).map(prepareLine))
        }
        return db.queryBinary<Row>(sql, params)
      },
    })
    assert.equal(isTailAsked, true)
    assert.equal(view.updates, 60)
    const reader = await openHistory({ db, ...CACHE })
    assert.deepEqual(
      view.tail.rows.map((row) => Buffer.from(row.compact)),
      reader.view.tail.rows.map((row) => Buffer.from(row.compact)),
    )
  })
})
