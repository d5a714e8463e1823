import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { startPrivatePostgres } from '../../test/support/postgres-supervised.ts'
import type { Db } from './db.ts'
import { DatabaseUnavailable, type SqlError } from './db-error.ts'
import { openPostgres } from './postgres.ts'
import type { PostgresOptions } from './postgres-client.ts'

// The probe waits two seconds for a silent server.
const NOTICED_WITHIN_MS = 10_000
const REFUSED_WITHIN_MS = 1_500
const insert = 'insert into thing (id) values (?)'

const server = await startPrivatePostgres({ after })

test('a killed server fails calls at once, and they succeed again when it is back', async (t) => {
  const db = await openWithTable(t, 'killed')
  await db.execute(insert, [1])
  const interrupted = db.transaction(async (tx) => {
    await tx.execute(insert, [2])
    await server.kill()
    await tx.execute(insert, [3])
  })
  await assert.rejects(interrupted, DatabaseUnavailable)
  await refusesWithin(REFUSED_WITHIN_MS, db)
  await server.start()
  assert.deepEqual(await db.query('select id from thing'), [{ id: 1 }])
  await db.transaction((tx) => tx.execute(insert, [2]))
})

test('a silent server fails calls soon, then at once, until it answers again', async (t) => {
  const db = await openWithTable(t, 'silent', { silenceMs: 100 })
  await db.execute(insert, [1])
  const interrupted = db.transaction(async (tx) => {
    await tx.execute(insert, [2])
    await server.pause()
    const began = performance.now()
    await assert.rejects(tx.execute(insert, [3]), DatabaseUnavailable)
    assert(performance.now() - began < NOTICED_WITHIN_MS)
  })
  try {
    await assert.rejects(interrupted, DatabaseUnavailable)
    await refusesWithin(REFUSED_WITHIN_MS, db)
  } finally {
    await server.resume()
  }
  await untilAnswered(db)
  assert.deepEqual(await db.query('select id from thing'), [{ id: 1 }])
})

test('a silent server does not hold up the closing of the database', async (t) => {
  const db = await openWithTable(t, 'closing', { silenceMs: 100 })
  await server.pause()
  try {
    await assert.rejects(db.execute(insert, [1]), DatabaseUnavailable)
    await db.close()
  } finally {
    await server.resume()
  }
})

test('a long statement is not taken for a lost server', async (t) => {
  const db = await openWithTable(t, 'long', { silenceMs: 20 })
  assert.deepEqual(await db.query('select 1 as one from pg_sleep(0.3)'), [{ one: 1 }])
})

test('a statement beyond its time is cancelled, and the connection stays in use', async (t) => {
  const db = await openWithTable(t, 'cancelled', { statementTimeoutMs: 50, poolMax: 1 })
  await assert.rejects(db.query('select pg_sleep(10)'), { name: 'SqlError', code: '57014' })
  await db.execute(insert, [1])
})

test('a connection that broke between two statements is replaced', async (t) => {
  const db = await openWithTable(t, 'broken', { poolMax: 2 })
  const interrupted = db.transaction(async (tx) => {
    await tx.execute(insert, [1])
    const [backend] = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
    await db.query('select pg_terminate_backend(?)', [backend?.pid ?? 0])
  })
  await assert.rejects(interrupted, {
    name: 'DatabaseUnavailable',
    message: /lost during a commit; whether it was stored is not known/,
  })
  assert.deepEqual(await db.query('select id from thing'), [])
  await db.transaction((tx) => tx.execute(insert, [1]))
})

test('a connection whose copy failed is used again', async (t) => {
  const db = await openWithTable(t, 'copy', { poolMax: 1 })
  await db.execute(insert, [1])
  const dividing = 'select 1 / (id - ?) as q from thing'
  assert.deepEqual(await db.queryBinary(dividing, [0]), [{ q: 1 }])
  await assert.rejects(db.queryBinary(dividing, [1]), { code: '22012' })
  assert.deepEqual(await db.queryBinary(dividing, [0]), [{ q: 1 }])
  await assert.rejects(db.queryBinary('select 1.5 as half'), { code: 'ERR_ASSERTION' })
  await assert.rejects(db.queryBinary(dividing, [0.5]), TypeError)
  await assert.rejects(db.queryBinary(dividing, [2n ** 63n]), TypeError)
  await assert.rejects(db.queryBinary(dividing), { code: 'ERR_ASSERTION' })
})

test('more work than connections waits for its turn', async (t) => {
  const db = await openWithTable(t, 'pool', { poolMax: 2 })
  await Promise.all(Array.from({ length: 40 }, (_, index) => db.execute(insert, [index])))
  assert.deepEqual(await db.query('select count(*) as c from thing'), [{ c: 40 }])
})

test('a deadlock surfaces as an error of one transaction', async (t) => {
  const db = await openWithTable(t, 'deadlock')
  await db.executeMany(insert, [[1], [2]])
  const bothHold = Promise.withResolvers<void>()
  let holding = 0
  const lockInTurn = (ids: [number, number]) =>
    db.transaction(async (tx) => {
      await tx.execute('update thing set id = id where id = ?', [ids[0]])
      holding += 1
      if (holding === 2) bothHold.resolve()
      await bothHold.promise
      await tx.execute('update thing set id = id where id = ?', [ids[1]])
    })
  const results = await Promise.allSettled([lockInTurn([1, 2]), lockInTurn([2, 1])])
  const failures = results.flatMap((result) => (result.status === 'rejected' ? result.reason : []))
  assert.deepEqual(
    failures.map((error: SqlError) => error.code),
    ['40P01'],
  )
})

test('statements that are prepared survive a server that forgets them', async (t) => {
  const db = await openWithTable(t, 'forgotten', { poolMax: 1 })
  const select = 'select id from thing where id >= ?'
  const repeat = async () => {
    for (let n = 0; n < 10; n += 1) assert.deepEqual(await db.query(select, [0]), [])
  }
  await repeat()
  const prepared = 'select count(*) as c from pg_prepared_statements where statement = ?'
  assert.deepEqual(await db.query(prepared, [select.replace('?', '$1')]), [{ c: 1 }])
  await db.execute('deallocate all')
  await repeat()
  assert.deepEqual(await db.query(prepared, [select.replace('?', '$1')]), [{ c: 0 }])
})

test('a transaction whose prepared statement is gone fails as one that may be tried again', async (t) => {
  const db = await openWithTable(t, 'gone', { poolMax: 1 })
  for (let id = 0; id < 10; id += 1) await db.execute(insert, [id])
  await db.execute('deallocate all')
  const tryAgain = () => db.transaction((tx) => tx.execute(insert, [10]))
  await assert.rejects(tryAgain(), DatabaseUnavailable)
  assert.equal(await tryAgain(), 1)
  assert.deepEqual(await db.query('select count(*) as c from thing'), [{ c: 11 }])
})

test('a prepared statement goes on when its table gets another shape', async (t) => {
  const db = await openWithTable(t, 'reshaped', { poolMax: 1 })
  const select = 'select * from thing where id >= ?'
  for (let n = 0; n < 10; n += 1) assert.deepEqual(await db.query(select, [0]), [])
  await db.execute('alter table thing add column name text')
  await db.execute("insert into thing (id, name) values (1, 'one')")
  for (let n = 0; n < 10; n += 1) {
    assert.deepEqual(await db.query(select, [0]), [{ id: 1, name: 'one' }])
  }
})

test('many different statements leave a bounded number of prepared ones on a connection', async (t) => {
  const db = await openWithTable(t, 'bounded', { poolMax: 1 })
  for (let n = 0; n < 300; n += 1) {
    for (let use = 0; use < 5; use += 1) await db.query(`select ${n} as n where 0 < ?`, [1])
  }
  const [row] = await db.query<{ c: number }>('select count(*) as c from pg_prepared_statements')
  assert.ok(row && row.c > 0 && row.c <= 256, `${row?.c} statements`)
})

test('a schema that many open at the same time is created once', async (t) => {
  const schema = 'Odd "name"; of ? a schema'
  const opened = await Promise.all(Array.from({ length: 8 }, () => open(t, { schema })))
  const [first, ...others] = opened
  await first?.execute('create table thing (id bigint)')
  for (const db of others) assert.deepEqual(await db.query('select id from thing'), [])
})

test('commits are durable even where the server does not make them so', async (t) => {
  const db = await openWithTable(t, 'durable')
  await db.execute('alter database postgres set synchronous_commit = off')
  const other = await open(t, { schema: 'durable' })
  assert.deepEqual(await other.query('show synchronous_commit'), [{ synchronous_commit: 'on' }])
  await db.execute('alter database postgres reset synchronous_commit')
})

test('a server that is not there or refuses us is a clear error', async () => {
  const options = { connection: server.connection, schema: 'clear' }
  const nowhere = { ...options, connection: { ...options.connection, port: 1 } }
  await assert.rejects(openPostgres(nowhere), {
    name: 'DatabaseUnavailable',
    message: /does not answer: .*ECONNREFUSED.*\. Check that it runs/,
  })
  const unknown = { ...options, connection: { ...options.connection, database: 'unknown' } }
  await assert.rejects(openPostgres(unknown), {
    code: '3D000',
    message: /"unknown" does not exist/,
  })
})

async function open(t: TestContext, options: Omit<PostgresOptions, 'connection'>): Promise<Db> {
  const db = await openPostgres({ connection: server.connection, ...options })
  t.after(() => db.close())
  return db
}

async function openWithTable(
  t: TestContext,
  schema: string,
  options: Partial<PostgresOptions> = {},
): Promise<Db> {
  const db = await open(t, { schema, ...options })
  await db.execute('create table thing (id bigint primary key)')
  return db
}

async function refusesWithin(limitMs: number, db: Db): Promise<void> {
  const began = performance.now()
  await assert.rejects(db.query('select 1'), DatabaseUnavailable)
  await assert.rejects(db.queryBinary('select 1'), DatabaseUnavailable)
  await assert.rejects(db.execute(insert, [9]), DatabaseUnavailable)
  await assert.rejects(
    db.transaction((tx) => tx.execute(insert, [9])),
    DatabaseUnavailable,
  )
  assert(performance.now() - began < limitMs)
}

async function untilAnswered(db: Db): Promise<void> {
  const deadline = performance.now() + NOTICED_WITHIN_MS
  for (;;) {
    try {
      await db.query('select 1')
      return
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable) || performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
