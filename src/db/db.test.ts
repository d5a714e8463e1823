import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Cleanup, forEachEngine, type TestEngine } from '../../test/support/engines.ts'
import type { Db, SqlValue } from './db.ts'
import { DatabaseUnavailable, SqlError } from './db-error.ts'
import { openDb } from './open.ts'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

type Row = { id: number; n: number | bigint | null; s: string | null; b: Uint8Array | null }

const insertRow = 'insert into thing (id, n, s, b) values (?, ?, ?, ?)'
const selectRow = 'select id, n, s, b from thing where id = ?'
const selectIds = 'select id from thing order by id'

forEachEngine((engine) => {
  const on = `on ${engine.name}`

  test(`integers, text and bytes come back as they were stored ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const allBytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    const values: [SqlValue, SqlValue, SqlValue][] = [
      [0, '', new Uint8Array()],
      [INT64_MIN, 'ünïcödé 漢字 🜨 \u{10ffff}', allBytes],
      [INT64_MAX, 'it\'s "quoted" ? $1 \\ \n\r\t', new Uint8Array([0])],
      [Number.MAX_SAFE_INTEGER, 'a', new Uint8Array([255, 254])],
      [Number.MIN_SAFE_INTEGER, 'b', null],
      [2n ** 53n, null, null],
      [-1, '5', null],
      [null, null, null],
    ]
    for (const [id, value] of values.entries()) {
      const expected = [{ id, n: value[0], s: value[1], b: value[2] }]
      assert.equal(await db.execute(insertRow, [id, ...value]), 1)
      assert.deepEqual(await db.query(selectRow, [id]), expected)
      assert.deepEqual(await db.queryBinary(selectRow, [id]), expected)
      await db.transaction(async (tx) => {
        assert.deepEqual(await tx.query(selectRow, [id]), expected)
        assert.deepEqual(await tx.queryBinary(selectRow, [id]), expected)
      })
    }
  })

  test(`statements together are all done or none ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const insert = (id: number) => ({ sql: insertRow, params: [id, 1, 'x', null] })
    const increase = { sql: 'update thing set n = n + ? where id = ?', params: [1, 1] }
    await db.executeAll([insert(1), insert(2), increase])
    await db.executeAll([])
    await assert.rejects(db.executeAll([insert(3), insert(2), insert(4)]), SqlError)
    await assert.rejects(db.executeAll([insert(3), { sql: 'nonsense', params: [] }]), SqlError)
    await db.transaction((tx) => tx.executeAll([insert(5), increase]))
    await assert.rejects(
      db.transaction((tx) => tx.executeAll([insert(6), insert(5)])),
      SqlError,
    )
    assert.deepEqual(await db.query(selectIds), [{ id: 1 }, { id: 2 }, { id: 5 }])
    assert.deepEqual(await db.query('select n from thing where id = ?', [1]), [{ n: 3 }])
  })

  test(`random values come back as they were stored ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const text = fc.string({ unit: 'binary' }).filter((value) => !value.includes('\0'))
    const row = fc.tuple(
      fc.option(fc.bigInt({ min: INT64_MIN, max: INT64_MAX })),
      fc.option(text),
      fc.option(fc.uint8Array({ maxLength: 2000 })),
    )
    let id = 0
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 20 }), async (rows) => {
        const first = id
        const numbered = rows.map((values) => [id++, ...values])
        await db.executeMany(insertRow, numbered)
        const expected = numbered.map(([key, n, s, b]) => ({ id: key, n: plain(n), s, b }))
        const select = 'select id, n, s, b from thing where id >= ? order by id'
        assert.deepEqual(await db.query(select, [first]), expected)
        assert.deepEqual(await db.queryBinary(select, [first]), expected)
      }),
      { numRuns: 30 },
    )
  })

  test(`a megabyte of bytes comes back whole ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const bytes = Uint8Array.from({ length: 1024 * 1024 }, (_, index) => (index * 7919) >> 3)
    await db.execute(insertRow, [1, 1, null, bytes])
    await db.executeMany(insertRow, [[2, 2, null, bytes.subarray(10, 1000)]])
    assert.equal(bytes.length, 1024 * 1024, 'the buffer of the caller stays with the caller')
    const expected = [bytes, bytes.slice(10, 1000)]
    const select = 'select b from thing order by id'
    const blobs = (rows: { b: Uint8Array }[]) => rows.map((row) => row.b)
    assert.deepEqual(blobs(await db.query(select)), expected)
    assert.deepEqual(blobs(await db.queryBinary(select)), expected)
    assert.deepEqual(blobs(await db.transaction((tx) => tx.query(select))), expected)
    assert.deepEqual(blobs(await db.transaction((tx) => tx.queryBinary(select))), expected)
  })

  test(`counts, sums and comparisons are numbers ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.executeMany(insertRow, [row(1, { n: 3 }), row(2, { n: 4 })])
    const select = 'select count(*) as c, sum(n) as s, max(n) > 3 as m, 7 / 2 as q from thing'
    assert.deepEqual(await db.query(select), [{ c: 2, s: 7, m: 1, q: 3 }])
  })

  test(`an integer stored as text has no fraction ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.execute(insertRow, row(1, { s: 5 }))
    assert.equal((await db.query<Row>(selectRow, [1]))[0]?.s, '5')
  })

  test(`a binary query finds by the extreme integers ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.executeMany(insertRow, [row(1, { n: INT64_MIN }), row(2, { n: INT64_MAX })])
    const select = 'select id from thing where n = ?'
    assert.deepEqual(await db.queryBinary(select, [INT64_MIN]), [{ id: 1 }])
    assert.deepEqual(await db.queryBinary(select, [INT64_MAX]), [{ id: 2 }])
    assert.deepEqual(await db.queryBinary(select, [-5]), [])
  })

  test(`execute says how many rows changed ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.executeMany(insertRow, [row(1), row(2), row(3)])
    assert.equal(await db.execute('update thing set s = ? where id > ?', ['x', 1]), 2)
    assert.equal(await db.execute('delete from thing where id = ?', [9]), 0)
    const conflict = `${insertRow} on conflict (id) do nothing`
    assert.equal(await db.execute(conflict, row(1)), 0)
  })

  test(`a query may change rows and return them ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const insert = `${insertRow} returning id, n`
    assert.deepEqual(await db.query(insert, row(1, { n: INT64_MAX })), [{ id: 1, n: INT64_MAX }])
    await db.transaction(async (tx) => {
      assert.deepEqual(await tx.query(insert, row(2, { n: 2 })), [{ id: 2, n: 2 }])
    })
    assert.deepEqual(await ids(db), [1, 2])
  })

  test(`ten thousand rows are stored by one call, all or none ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const rows = Array.from({ length: 10_000 }, (_, index) =>
      row(index, { n: index, s: `row ${index}`, b: new Uint8Array([index & 255]) }),
    )
    await assert.rejects(db.executeMany(insertRow, [...rows, row(5)]), SqlError)
    assert.deepEqual(await ids(db), [])
    await db.executeMany(insertRow, rows)
    const [sums] = await db.query('select count(*) as c, sum(n) as s from thing')
    assert.deepEqual(sums, { c: 10_000, s: 49_995_000 })
    await db.executeMany('update thing set n = ? where id = ?', [
      [-1, 1],
      [-2, 2],
    ])
    assert.deepEqual(await db.query('select n from thing where n < 0 order by n'), [
      { n: -2 },
      { n: -1 },
    ])
    await db.executeMany(insertRow, [])
  })

  test(`rows of one call may meet each other ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const upsert = `${insertRow} on conflict (id) do update set n = thing.n + excluded.n`
    await db.executeMany(upsert, [row(1, { n: 1 }), row(1, { n: 2 }), row(1, { n: 4 })])
    const once = `${insertRow} on conflict (id) do nothing`
    await db.executeMany(once, [row(1, { n: 0 }), row(2, { n: 8 }), row(2, { n: 9 })])
    assert.deepEqual(await db.query('select id, n from thing order by id'), [
      { id: 1, n: 7 },
      { id: 2, n: 8 },
    ])
  })

  test(`a transaction sees its own writes and nobody else does before its end ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.transaction(async (tx) => {
      await tx.execute(insertRow, row(1))
      await tx.executeMany(insertRow, [row(2), row(3)])
      assert.deepEqual(await ids(tx), [1, 2, 3])
      assert.deepEqual(await tx.queryBinary(selectIds), [{ id: 1 }, { id: 2 }, { id: 3 }])
      assert.deepEqual(await ids(db), [])
      assert.deepEqual(await db.queryBinary(selectIds), [])
    })
    assert.deepEqual(await ids(db), [1, 2, 3])
  })

  test(`work that throws leaves nothing behind ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const fault = new Error('changed my mind')
    const work = async (tx: Db) => {
      await tx.execute(insertRow, row(1))
      throw fault
    }
    await assert.rejects(db.transaction(work), (error) => error === fault)
    assert.deepEqual(await ids(db), [])
    assert.equal(await db.transaction(async () => 'result'), 'result')
  })

  test(`a failed statement loses the transaction even when its error is caught ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.execute(insertRow, row(1))
    const work = async (tx: Db) => {
      await tx.execute(insertRow, row(2))
      await assert.rejects(tx.execute(insertRow, row(1)), SqlError)
      await assert.rejects(tx.query(selectIds), /earlier statement/)
    }
    await assert.rejects(db.transaction(work), SqlError)
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.execute(insertRow, row(3))
        await tx.execute('insert into missing values (1)').catch(() => {})
        throw new Error('after a failed statement')
      }),
      /after a failed statement/,
    )
    assert.deepEqual(await ids(db), [1])
    await db.execute(insertRow, row(2))
  })

  test(`statements sent at once run in the order of their calls ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.transaction(async (tx) => {
      await Promise.all([
        tx.execute(insertRow, row(1, { n: 1 })),
        tx.execute('update thing set n = n + 1'),
        tx.execute('update thing set n = n * 10'),
      ])
    })
    assert.deepEqual(await db.query('select n from thing'), [{ n: 20 }])
  })

  test(`a statement that the work did not wait for belongs to the transaction ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.transaction(async (tx) => {
      void tx.execute(insertRow, row(1))
    })
    assert.deepEqual(await ids(db), [1])
  })

  test(`a transaction inside another and a late statement are programmer errors ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    const nested = db.transaction((tx) => tx.transaction(async () => {}))
    await assert.rejects(nested, { code: 'ERR_ASSERTION' })
    const escaped = await db.transaction(async (tx) => tx)
    await assert.rejects(escaped.query(selectIds), { code: 'ERR_ASSERTION' })
  })

  test(`writes of many callers never mix with an open transaction ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.execute(insertRow, row(0, { n: 0 }))
    const transfers = Array.from({ length: 50 }, (_, index) =>
      db.transaction(async (tx) => {
        // Locks the row, so that the transactions follow each other on PostgreSQL as well.
        await tx.execute('update thing set n = n + 1 where id = 0')
        await tx.execute(insertRow, row(100 + index))
        if (index % 5 === 0) throw new Error('undone')
      }),
    )
    const singles = Array.from({ length: 50 }, (_, index) => db.execute(insertRow, row(1 + index)))
    const results = await Promise.allSettled(transfers)
    await Promise.all(singles)
    assert.equal(results.filter((result) => result.status === 'rejected').length, 10)
    assert.deepEqual(await db.query('select n from thing where id = 0'), [{ n: 40 }])
    assert.equal((await ids(db)).length, 1 + 50 + 40)
  })

  test(`errors carry a code and the statement, and no parameters ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.execute(insertRow, row(1, { s: 'secret' }))
    await assert.rejects(db.execute(insertRow, row(1, { s: 'secret' })), (error: SqlError) => {
      assert.equal(error.code, engine.name === 'sqlite' ? 'SQLITE_CONSTRAINT' : '23505')
      assert.match(error.sql ?? '', /insert into thing/)
      assert.doesNotMatch(JSON.stringify(error) + error.message, /secret/)
      return true
    })
    await assert.rejects(db.query('select * from missing'), SqlError)
    await assert.rejects(db.queryBinary('select * from missing'), SqlError)
    await assert.rejects(db.query('select 1; select 2'), { code: 'ERR_ASSERTION' })
    assert.deepEqual(await ids(db), [1])
  })

  test(`foreign keys are enforced ${on}`, async (t) => {
    const db = await openWithTable(t, engine)
    await db.execute('create table part (thing_id bigint not null references thing (id))')
    await assert.rejects(db.execute('insert into part values (?)', [1]), SqlError)
  })

  test(`closing finishes what was begun, and a second close is fine ${on}`, async (t) => {
    const target = await engine.newTarget(t)
    const db = await openDb(target)
    await createTable(db)
    const writes = Array.from({ length: 20 }, (_, index) => db.execute(insertRow, row(index)))
    const reader = db.query(selectIds)
    await Promise.all([db.close(), db.close()])
    await db.close()
    await Promise.all([reader, ...writes])
    await assert.rejects(db.query(selectIds), DatabaseUnavailable)
    await assert.rejects(db.execute(insertRow, row(99)), DatabaseUnavailable)
    await assert.rejects(
      db.transaction(async () => {}),
      DatabaseUnavailable,
    )
    const reopened = await openDb(target)
    const stored = await ids(reopened)
    await reopened.close()
    assert.deepEqual(stored, [...writes.keys()])
  })
})

async function openWithTable(t: Cleanup, engine: TestEngine): Promise<Db> {
  const db = await engine.openEmpty(t)
  await createTable(db)
  return db
}

async function createTable(db: Db): Promise<void> {
  const blob = db.engine === 'sqlite' ? 'blob' : 'bytea'
  await db.execute(`create table thing (id bigint primary key, n bigint, s text, b ${blob})`)
}

function row(
  id: number,
  { n = null, s = null, b = null }: { n?: SqlValue; s?: SqlValue; b?: SqlValue } = {},
): SqlValue[] {
  return [id, n, s, b]
}

async function ids(db: Db): Promise<number[]> {
  return (await db.query<{ id: number }>(selectIds)).map(({ id }) => id)
}

function plain(value: SqlValue | undefined): SqlValue | undefined {
  const isSafe = typeof value === 'bigint' && Number.isSafeInteger(Number(value))
  return isSafe ? Number(value) : value
}
