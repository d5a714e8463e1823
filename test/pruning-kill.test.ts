import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../src/base/clock.ts'
import { openDb } from '../src/db/open.ts'
import { openHistory } from '../src/history/history.ts'
import { openLedger } from '../src/ledger/ledger.ts'
import { TEMPLATES } from '../src/ledger/templates.ts'
import { startFollowing } from '../src/scan/follow.ts'
import { GLOBAL, TRAFFIC } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { workUntilKilled } from './support/killed-child.ts'
import { createReplay } from './support/replay.ts'
import { createScanApp } from './support/scan-app.ts'

const KILLS = 4
const KILL_DELAY_MS_MAX = 150

forEachEngine((engine) => {
  test(`a kill during pruning leaves whole batches, every active contract and the whole history, on ${engine.name}`, async (t) => {
    const participant = await engine.newTarget(t)
    const app = await engine.newTarget(t)
    let first = 0
    for (let round = 0; round < KILLS; round += 1) {
      const args = [JSON.stringify(participant), JSON.stringify(app), String(first), 'prune']
      // Command ids are forgotten with what is pruned, so that numbers are not used again.
      const told = await workUntilKilled(t, './ledger-child.ts', args, KILL_DELAY_MS_MAX)
      first += told.length + 1
    }
    const db = await openDb(participant)
    t.after(() => db.close())
    const appDb = await openDb(app)
    t.after(() => appDb.close())
    const ledger = await openLedger({
      db,
      clock: systemClock,
      migrationId: 0n,
      synchronizerId: GLOBAL,
      templates: TEMPLATES,
      deduplicationMs: 1,
      traffic: TRAFFIC,
    })
    t.after(() => ledger.close())
    const pruned = await ledger.pruned()
    assert.ok(pruned > 0n && pruned < ledger.end)
    const [left] = await db.query<{ first: number; count: number }>(
      'select min(ledger_offset) as first, count(*) as count from ledger_updates',
    )
    assert.deepEqual(left, { first: Number(pruned) + 1, count: Number(ledger.end - pruned) })
    const [stale] = await db.query<{ count: number }>(
      'select count(*) as count from contracts where archived_offset <= ?',
      [pruned],
    )
    assert.equal(stale?.count, 0)
    assert.ok((await ledger.traffic())?.available.base)

    const history = await openHistory({ db: appDb, cacheBytes: 1_000_000 })
    const onError = (error: unknown) => assert.fail(error as Error)
    const following = startFollowing({ ledger, history, onError })
    await following.caughtUp()
    await following.close()
    const replay = createReplay()
    const scan = await createScanApp(t, history)
    const payload = { page_size: 1_000_000 }
    const page = await scan.inject({ method: 'POST', url: '/api/scan/v1/updates', payload })
    for (const item of page.json().transactions) replay.read(item)
    const active: string[] = []
    for await (const contracts of ledger.activeAt({ offset: ledger.end, parties: 'any' })) {
      active.push(...contracts.map(({ contractId }) => contractId))
    }
    assert.deepEqual(active.toSorted(), [...replay.live.keys()].toSorted())
  })
})
