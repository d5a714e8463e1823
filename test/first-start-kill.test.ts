import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createLogs } from '../src/base/log.ts'
import type { Db } from '../src/db/db.ts'
import { openHistory } from '../src/history/history.ts'
import { findState } from '../src/ledger/updates-store.ts'
import { openNodeLedger } from '../src/open-ledger.ts'
import { ensureFirstUsers } from '../src/users/first-users.ts'
import { openParticipant } from '../src/users/participant-store.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory, post, testConfig } from './support/node.ts'
import { spawnNode, startCommand } from './support/node-process.ts'

/** Where in the way from the spawn to readiness the process is killed. */
const KILLED_AT = [0.6, 0.8, 0.95]
/** How many statements of the seeding run before it is interrupted. */
const INTERRUPTED_AT = [0, 1, 5, 40, 90]

test('a first start that is killed is completed by the next one, with the same bytes', async (t) => {
  const seeded = ['--seed', 'steady']
  const startedAt = performance.now()
  const reference = await startCommand(t, ['--data', newDirectory(t), ...seeded])
  const readyMs = performance.now() - startedAt
  const pageOf = async (scan: string) =>
    (await post(`${scan}/v0/updates`, { page_size: 1000 })).body as { transactions: unknown[] }
  const expected = await pageOf(reference.urls.scan)
  assert.ok(expected.transactions.length > 50)
  await reference.stop()
  for (const part of KILLED_AT) {
    const data = newDirectory(t)
    const child = spawnNode(t, ['--data', data, ...seeded])
    await wait(readyMs * part)
    await child.kill()
    const next = await startCommand(t, ['--data', data, ...seeded])
    assert.deepEqual(await pageOf(next.urls.scan), expected, `killed at ${part} of the start`)
    await next.stop()
  }
})

forEachEngine((engine) => {
  test(`seeding that is interrupted leaves nothing, and the next start seeds the same, on ${engine.name}`, async (t) => {
    const seed = 'steady'
    const config = testConfig(t)
    const open = async () => {
      const db = await engine.open(t, 'participant')
      const history = await openHistory({ db: await engine.open(t, 'app'), cacheBytes: 1_000_000 })
      const identity = { partyHint: 'operator', nodeIdentifier: 'node', isGiven: false }
      const participant = await openParticipant(db, { migrationId: 0n, seed, ...identity })
      await ensureFirstUsers(db, {})
      const log = createLogs({ level: 'error', pretty: false }).named('test')
      const start = (through: Db) =>
        openNodeLedger({
          config,
          db: through,
          participant,
          history,
          log,
          seed,
          isSeedWanted: true,
          simTime: false,
        })
      return { db, start }
    }
    const itemsOf = async (node: Awaited<ReturnType<typeof openNodeLedger>>) => {
      assert.ok(node?.isSeeded)
      const updates = await node.ledger.updatesAfter(0n, 1000)
      await node.ledger.close()
      return updates.map(({ item }) => item)
    }
    const clean = await open()
    const expected = await itemsOf(await clean.start(clean.db))
    const { db, start } = await open()
    for (const count of INTERRUPTED_AT) {
      await assert.rejects(start(failingAfter(db, count)), /interrupted/)
      assert.equal(await findState(db), undefined)
      assert.deepEqual(await db.query('select party from parties'), [])
      assert.deepEqual(await db.query("select user_id from users where user_id = 'alice'"), [])
    }
    assert.deepEqual(await itemsOf(await start(db)), expected)
  })
})

/** A database whose transactions fail after so many statements. */
function failingAfter(db: Db, count: number): Db {
  let left = count
  const wrap = (inner: Db): Db => {
    const counted = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
      return async (...args: A) => {
        if (left === 0) throw new Error('interrupted')
        left -= 1
        return call(...args)
      }
    }
    return {
      ...inner,
      query: counted(inner.query) as Db['query'],
      execute: counted(inner.execute),
      executeMany: counted(inner.executeMany),
      executeAll: counted(inner.executeAll),
    }
  }
  return { ...db, transaction: (work) => db.transaction((tx) => work(wrap(tx))) }
}
