import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startPrivatePostgres } from '../../test/support/postgres-supervised.ts'
import { DatabaseUnavailable } from './db-error.ts'
import { holdWriterLock, tryWriterLock, type WriterLock } from './writer-lock.ts'

const server = await startPrivatePostgres({ after })
const { connection } = server

test('one holds the lock of a schema, and another gets it after the release', async () => {
  const first = await claim('one')
  assert.equal(await tryWriterLock({ connection, schema: 'one' }), undefined)
  const other = await claim('two')
  await first.release()
  assert.equal(first.lost.aborted, true)
  const second = await claim('one')
  await Promise.all([second.release(), other.release()])
  await second.release()
})

test('the holder notices when the server dies, and may claim the lock again later', async () => {
  const lock = await claim('killed')
  const lost = once(lock.lost, 'abort')
  await server.kill()
  await lost
  await lock.release()
  await assert.rejects(tryWriterLock({ connection, schema: 'killed' }), DatabaseUnavailable)
  await server.start()
  await (await claim('killed')).release()
})

test('the holder notices when the server is silent', async () => {
  const lock = await claim('silent', { heartbeatMs: 20, heartbeatTimeoutMs: 200 })
  const lost = once(lock.lost, 'abort')
  await server.pause()
  try {
    await lost
  } finally {
    await server.resume()
  }
  await lock.release()
})

test('a lock that is lost with its connection is claimed until it is held again', async () => {
  const regained = Promise.withResolvers<void>()
  const schema = 'held'
  const held = await holdWriterLock({ connection, schema, onRegained: regained.resolve })
  assert(held !== undefined)
  assert.equal(await holdWriterLock({ connection, schema, onRegained() {} }), undefined)
  assert.equal(held.state(), 'held')
  await server.kill()
  await server.start()
  // Whoever is quicker has it; the one that lost it says so, and waits.
  const other = await claim(schema)
  await until(() => held.state() === 'taken')
  await other.release()
  await regained.promise
  assert.equal(held.state(), 'held')
  assert.equal(await tryWriterLock({ connection, schema }), undefined)
  await held.release()
  await (await claim(schema)).release()
})

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < deadline, 'the condition comes true')
    await delay(20)
  }
}

async function claim(
  schema: string,
  times: { heartbeatMs?: number; heartbeatTimeoutMs?: number } = {},
): Promise<WriterLock> {
  const lock = await tryWriterLock({ connection, schema, ...times })
  assert(lock !== undefined)
  return lock
}
