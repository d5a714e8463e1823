import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { forEachEngine } from '../../test/support/engines.ts'
import type { Db } from './db.ts'
import { type Migration, migrate, readMigrations, statementsFor } from './migrate.ts'
import { openDb } from './open.ts'

const run = promisify(execFile)

const first: Migration = {
  number: 1,
  name: '0001-first',
  text: `
    -- a table; and its first row
    create table thing (id {integer} primary key, name {text} not null, data {blob});
    insert into thing (id, name) values (1, 'semi;colon {text}');
    {postgres} alter table thing alter column data set storage external;
    {sqlite} create index thing_name on thing (name);
  `.replace("{text}')", "text')"),
}
const second: Migration = {
  number: 2,
  name: '0002-second',
  text: 'alter table thing add column size bigint;',
}

// A process that migrates as soon as it is told the targets; several of them start together.
const migrator = `
  const { migrate } = await import(process.argv[1])
  const { openDb } = await import(process.argv[2])
  const { target, migrations } = JSON.parse(process.argv[3])
  const db = await openDb(target)
  await migrate(db, migrations)
  await db.close()
`

forEachEngine((engine) => {
  const on = `on ${engine.name}`

  test(`migrations are applied once, in order ${on}`, async (t) => {
    const db = await engine.openEmpty(t)
    await migrate(db, [first])
    await migrate(db, [first, second])
    await migrate(db, [first, second])
    assert.deepEqual(await db.query('select * from thing'), [
      { id: 1, name: 'semi;colon text', data: null, size: null },
    ])
    assert.deepEqual(await appliedNumbers(db), [1, 2])
  })

  test(`the columns of migrations hold and order values alike ${on}`, async (t) => {
    const db = await engine.openEmpty(t)
    await migrate(db, [first])
    const names = ['a', 'B', 'ä', 'Z', '_', 'a-b', 'aa', '10', '9']
    const rows = names.map((name, index) => [2n ** 62n + BigInt(index), name])
    await db.executeMany('insert into thing (id, name) values (?, ?)', rows)
    const stored = await db.query<{ name: string }>(
      'select name from thing where id > ? order by name',
      [1],
    )
    const byBytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    assert.deepEqual(
      stored.map(({ name }) => name),
      byBytes,
    )
  })

  test(`a migration that fails leaves nothing, and the ones before it stay ${on}`, async (t) => {
    const db = await engine.openEmpty(t)
    const failing = {
      number: 2,
      name: '0002-failing',
      text: 'create table other (id bigint); insert into other values (1); insert into missing values (1);',
    }
    await assert.rejects(migrate(db, [first, failing]), { name: 'SqlError' })
    assert.deepEqual(await appliedNumbers(db), [1])
    await assert.rejects(db.query('select * from other'), { name: 'SqlError' })
    await migrate(db, [first, second])
    assert.deepEqual(await appliedNumbers(db), [1, 2])
  })

  test(`a schema that is newer than the program is refused ${on}`, async (t) => {
    const db = await engine.openEmpty(t)
    await migrate(db, [first, second])
    await assert.rejects(migrate(db, [first]), {
      message: /schema of a newer version \(migration 0002-second; this version knows 1\)\. Start/,
    })
  })

  test(`a changed text of an applied migration is refused, changed line ends are not ${on}`, async (t) => {
    const db = await engine.openEmpty(t)
    await migrate(db, [first, second])
    await migrate(db, [{ ...first, text: first.text.replaceAll('\n', '\r\n') }, second])
    const changed = { ...first, text: `${first.text} -- changed` }
    await assert.rejects(migrate(db, [changed, second]), {
      message: /Migration 0001-first was applied to the database with another text/,
    })
  })

  test(`processes that start at the same time migrate once ${on}`, async (t) => {
    const target = await engine.newTarget(t)
    const text = `${second.text} insert into thing (id, name) values (2, 'once');`
    const migrations = [first, { ...second, text }]
    const programs = ['./migrate.ts', './open.ts'].map((file) => import.meta.resolve(file))
    const argument = JSON.stringify({ target, migrations })
    const starting = Array.from({ length: 3 }, () =>
      run(process.execPath, ['--input-type=module', '-e', migrator, ...programs, argument]),
    )
    await Promise.all(starting)
    const db = await openDb(target)
    const count = await db.query('select count(*) as c from thing')
    const numbers = await appliedNumbers(db)
    await db.close()
    assert.deepEqual(count, [{ c: 2 }])
    assert.deepEqual(numbers, [1, 2])
  })

  test(`connections of one process migrate at the same time ${on}`, async (t) => {
    const db = await engine.openEmpty(t)
    await Promise.all(Array.from({ length: 4 }, () => migrate(db, [first, second])))
    assert.deepEqual(await appliedNumbers(db), [1, 2])
  })

  for (const database of ['app', 'participant'] as const) {
    test(`the migrations of the ${database} database apply ${on}`, async (t) => {
      const db = await engine.open(t, database)
      assert.equal((await appliedNumbers(db)).length, (await readMigrations(database)).length)
    })
  }
})

test('a statement for one engine is left out on the other', () => {
  const text = '{sqlite} select 1; -- why\n {postgres} select 2; select 3'
  assert.deepEqual(
    statementsFor('sqlite', text).map((statement) => statement.trim()),
    ['select 1', 'select 3'],
  )
  assert.deepEqual(
    statementsFor('postgres', text).map((statement) => statement.trim()),
    ['select 2', 'select 3'],
  )
})

test('an unknown word in braces is refused', () => {
  assert.throws(() => statementsFor('sqlite', 'create table a (b {clob})'), /\{clob\}/)
})

async function appliedNumbers(db: Db): Promise<number[]> {
  const rows = await db.query<{ number: number }>(
    'select number from schema_migrations order by number',
  )
  return rows.map(({ number }) => number)
}
