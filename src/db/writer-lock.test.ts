import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { startPrivatePostgres } from '../../test/support/postgres-supervised.ts'
import { DatabaseUnavailable } from './db-error.ts'
import { tryWriterLock, type WriterLock } from './writer-lock.ts'

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

async function claim(
  schema: string,
  times: { heartbeatMs?: number; heartbeatTimeoutMs?: number } = {},
): Promise<WriterLock> {
  const lock = await tryWriterLock({ connection, schema, ...times })
  assert(lock !== undefined)
  return lock
}
