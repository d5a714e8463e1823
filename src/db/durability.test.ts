import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { forEachEngine } from '../../test/support/engines.ts'
import { startPrivatePostgres } from '../../test/support/postgres-supervised.ts'
import { DatabaseUnavailable } from './db-error.ts'
import { type DbTarget, openDb } from './open.ts'

const ACKNOWLEDGED_MIN = 200

// Commits batches of two rows and says so; it is killed in the middle of it.
const writer = `
  const { openDb } = await import(process.argv[1])
  const db = await openDb(JSON.parse(process.argv[2]))
  for (let batch = 0; ; batch += 1) {
    await db.transaction(async (tx) => {
      await tx.execute('insert into thing (id, batch) values (?, ?)', [2 * batch, batch])
      await tx.executeMany('insert into thing (id, batch) values (?, ?)', [[2 * batch + 1, batch]])
    })
    process.stdout.write(batch + '\\n')
  }
`

forEachEngine((engine) => {
  test(`a killed process loses nothing it acknowledged, and no part of a batch is left on ${engine.name}`, async (t) => {
    const target = await engine.newTarget(t)
    await createTable(target)
    const program = import.meta.resolve('./open.ts')
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', writer, program, JSON.stringify(target)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const gone = once(child, 'exit')
    t.after(() => child.kill('SIGKILL'))
    let acknowledged = -1
    for await (const line of createInterface({ input: child.stdout })) {
      acknowledged = Number(line)
      if (acknowledged === ACKNOWLEDGED_MIN) child.kill('SIGKILL')
    }
    await gone
    assert(acknowledged >= ACKNOWLEDGED_MIN)
    await assertWholeBatches(target, acknowledged)
  })
})

test('a killed PostgreSQL server loses nothing it acknowledged', async () => {
  const server = await startPrivatePostgres({ after })
  const target: DbTarget = { engine: 'postgres', connection: server.connection, schema: 'durable' }
  await createTable(target)
  const db = await openDb(target)
  let acknowledged = -1
  let killing: Promise<void> | undefined
  try {
    for (let batch = 0; ; batch += 1) {
      await db.executeMany('insert into thing (id, batch) values (?, ?)', [
        [2 * batch, batch],
        [2 * batch + 1, batch],
      ])
      acknowledged = batch
      if (batch === ACKNOWLEDGED_MIN) killing = server.kill()
    }
  } catch (error) {
    assert(error instanceof DatabaseUnavailable)
  }
  await killing
  await server.start()
  await db.close()
  assert(acknowledged >= ACKNOWLEDGED_MIN)
  await assertWholeBatches(target, acknowledged)
})

async function createTable(target: DbTarget): Promise<void> {
  const db = await openDb(target)
  await db.execute('create table thing (id bigint primary key, batch bigint not null)')
  await db.close()
}

// One batch more than acknowledged may have been committed: its message did not get out.
async function assertWholeBatches(target: DbTarget, acknowledged: number): Promise<void> {
  const db = await openDb(target)
  const rows = await db.query<{ batch: number; c: number }>(
    'select batch, count(*) as c from thing group by batch order by batch',
  )
  await db.close()
  assert(rows.length === acknowledged + 1 || rows.length === acknowledged + 2)
  for (const [index, row] of rows.entries()) assert.deepEqual(row, { batch: index, c: 2 })
}
