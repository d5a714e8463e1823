import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import type { Db } from './db.ts'
import { DatabaseUnavailable, SqlError } from './db-error.ts'
import { openSqlite } from './sqlite.ts'

const insert = 'insert into thing (id, b) values (?, ?)'

test('the writer is durable and keeps foreign keys, and the log is emptied at the end', async (t) => {
  const path = temporaryPath(t)
  const db = await openSqlite({ path })
  const onWriter = (pragma: string) => db.transaction((tx) => tx.query(`pragma ${pragma}`))
  assert.deepEqual(await onWriter('journal_mode'), [{ journal_mode: 'wal' }])
  assert.deepEqual(await onWriter('synchronous'), [{ synchronous: 2 }])
  assert.deepEqual(await onWriter('foreign_keys'), [{ foreign_keys: 1 }])
  await db.execute('create table thing (id integer primary key)')
  assert(existsSync(`${path}-wal`))
  await db.close()
  assert(!existsSync(`${path}-wal`))
})

test('a full disk fails the transaction whole, and the database stays usable', async (t) => {
  const db = await openWithTable(t)
  await db.execute(insert, [1, null])
  const [{ page_count: pages } = { page_count: 0 }] = await db.query<{ page_count: number }>(
    'pragma page_count',
  )
  await db.execute(`pragma max_page_count = ${pages + 20}`)
  const fill = db.transaction(async (tx) => {
    await tx.execute(insert, [2, null])
    for (let id = 3; ; id += 1) await tx.execute(insert, [id, new Uint8Array(20_000)])
  })
  await assert.rejects(fill, { name: 'SqlError', code: 'SQLITE_FULL', message: /full/ })
  await assert.rejects(
    db.executeMany(
      insert,
      Array.from({ length: 50 }, (_, index) => [index + 10, new Uint8Array(20_000)]),
    ),
    { code: 'SQLITE_FULL' },
  )
  assert.deepEqual(await db.query('select id from thing'), [{ id: 1 }])
  await db.execute('pragma max_page_count = 1000000')
  await db.execute(insert, [2, new Uint8Array(20_000)])
  assert.deepEqual(await db.query('select id from thing order by id'), [{ id: 1 }, { id: 2 }])
})

test('statements after a rollback by SQLite itself are not committed', async (t) => {
  const db = await openWithTable(t)
  const work = db.transaction(async (tx) => {
    await tx.execute(insert, [1, null])
    // Stands for the rollback that some input and output errors cause.
    await tx.execute('rollback')
    await tx.execute(insert, [2, null])
  })
  await assert.rejects(work, { code: 'SQLITE_ABORT' })
  assert.deepEqual(await db.query('select id from thing'), [])
  await db.execute(insert, [3, null])
})

test('all calls fail when the writer has died, and reads go on', async (t) => {
  const started = Promise.withResolvers<Worker>()
  process.once('worker', started.resolve)
  const db = await openWithTable(t)
  await db.execute(insert, [1, null])
  const worker = await started.promise
  const waiting = Promise.allSettled([
    db.transaction(async (tx) => {
      await tx.execute(insert, [2, null])
      await worker.terminate()
      await tx.execute(insert, [3, null])
    }),
    db.execute(insert, [4, null]),
    db.executeMany(insert, [[5, null]]),
  ])
  for (const result of await waiting) {
    assert(result.status === 'rejected' && result.reason instanceof DatabaseUnavailable)
    assert.match(result.reason.message, /writer of .* has ended\. Restart the node\./)
  }
  await assert.rejects(db.execute(insert, [6, null]), DatabaseUnavailable)
  assert.deepEqual(await db.query('select id from thing'), [{ id: 1 }])
  await db.close()
})

test('a file that cannot be opened is one clear sentence', async (t) => {
  const path = temporaryPath(t)
  await assert.rejects(openSqlite({ path: join(path, 'missing', 'a.db') }), {
    name: 'SqlError',
    code: 'SQLITE_CANTOPEN',
    message: /The database file .*a\.db cannot be opened \(.*\); check/,
  })
  writeFileSync(path, 'This is not a database, and it is longer than the header of one. '.repeat(9))
  await assert.rejects(openSqlite({ path }), { code: 'SQLITE_NOTADB' })
})

test('a query outside of a transaction cannot write by accident', async (t) => {
  const db = await openWithTable(t)
  const sneaky = 'with x as (select 1) insert into thing (id) values (1) returning id'
  await assert.rejects(db.query(sneaky), SqlError)
  assert.deepEqual(await db.query('select id from thing'), [])
})

test('a write transaction does not hold the event loop, and readers go on during it', async (t) => {
  const db = await openWithTable(t)
  await db.execute(insert, [0, null])
  const rows = Array.from({ length: 2_000 }, (_, index) => [index + 1, new Uint8Array(20_000)])
  let reads = 0
  let done = false
  const write = db.executeMany(insert, rows).finally(() => {
    done = true
  })
  while (!done) {
    const [count] = await db.query<{ c: number }>('select count(*) as c from thing')
    assert(count?.c === 1 || count?.c === 2_001, 'a reader sees all of a batch or nothing')
    reads += 1
    await new Promise(setImmediate)
  }
  await write
  assert(reads > 10, `${reads} reads during the write`)
})

function temporaryPath(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'annals-sqlite-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'test.db')
}

async function openWithTable(t: TestContext): Promise<Db> {
  const db = await openSqlite({ path: temporaryPath(t) })
  t.after(() => db.close())
  await db.execute('create table thing (id integer primary key, b blob)')
  return db
}
