import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../src/base/clock.ts'
import { openDb } from '../src/db/open.ts'
import { openHistory } from '../src/history/history.ts'
import { verifyHistory } from '../src/history/verify.ts'
import { type Ledger, openLedger } from '../src/ledger/ledger.ts'
import { coinsOf } from '../src/ledger/payments.ts'
import { TEMPLATES } from '../src/ledger/templates.ts'
import type { LedgerUpdate } from '../src/ledger/updates-store.ts'
import { startFollowing } from '../src/scan/follow.ts'
import { decimal } from '../src/values/decimal.ts'
import { AMPLE_TRAFFIC, GLOBAL, partyOf, TRAFFIC } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { newPool } from './support/histories.ts'
import { workUntilKilled } from './support/killed-child.ts'
import { createReplay } from './support/replay.ts'

const KILLS = 6
const PEOPLE = [0, 1, 2, 3].map((n) => partyOf(`person-${n}`))
/** Long enough for many commits, so that the kill falls anywhere in one. */
const KILL_DELAY_MS_MAX = 150

/** In a second less than a byte of the base rate comes back, so that what is left tells what was paid. */
async function requirePaidOnce(ledger: Ledger, updates: LedgerUpdate[]): Promise<void> {
  const status = await ledger.traffic()
  assert.ok(status)
  const paying = updates.filter(({ command }) => command.actAs[0] !== TRAFFIC.dso)
  const spent = paying.reduce((sum, { item }) => {
    const bytes = BigInt(Buffer.byteLength(item))
    return sum + bytes + (bytes * 4n) / 10_000n
  }, 0n)
  const { burstAmount } = AMPLE_TRAFFIC.baseRateTrafficLimits
  const surplus = status.available.base - (burstAmount - spent)
  assert.ok(surplus >= 0n && surplus < 100n, `every update is paid once: ${surplus}`)
}

forEachEngine((engine) => {
  test(`however often the process is killed, no coin is lost, minted or paid twice, on ${engine.name}`, async (t) => {
    const participant = await engine.newTarget(t)
    const app = await engine.newTarget(t)
    const told = new Set<string>()
    let first = 0
    for (let round = 0; round < KILLS; round += 1) {
      const args = [JSON.stringify(participant), JSON.stringify(app), String(first)]
      const lines = await workUntilKilled(t, './ledger-child.ts', args, KILL_DELAY_MS_MAX)
      const paid = lines.map((line) => line.slice('paid '.length))
      for (const id of paid) told.add(id)
      // Goes back a little, so that payments which were made are tried again.
      const reached = [0, 1, 2, 3].map(
        (payer) => paid.filter((id) => id.startsWith(`${payer}-`)).length,
      )
      first = Math.max(0, first + Math.min(...reached) - 2)
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
    const updates = await ledger.updatesAfter(0n, 1_000_000)
    assert.ok(updates.length > KILLS)
    const ids = updates.map(({ command }) => command.commandId).filter((id) => id !== '')
    assert.equal(new Set(ids).size, ids.length, 'no command was done twice')
    for (const id of told) assert.ok(ids.includes(id), `the acknowledged payment ${id} is there`)
    await requirePaidOnce(ledger, updates)
    let supply = 0n
    for (const person of PEOPLE) {
      for (const { amount } of await coinsOf(ledger, person)) supply += amount
    }
    assert.equal(supply, decimal('4000'))
    const history = await openHistory({ db: appDb, cacheBytes: 1_000_000 })
    const following = startFollowing({
      ledger,
      history,
      onError(error) {
        throw error
      },
    })
    await following.caughtUp()
    await following.close()
    assert.equal(history.view.updates, updates.length)
    const { checked } = await verifyHistory(history, { pool: newPool(t) })
    assert.equal(checked, updates.length)
    const replay = createReplay()
    for (const { item } of updates) replay.read(JSON.parse(item))
    const active: string[] = []
    for await (const page of ledger.activeAt({ offset: ledger.end, parties: 'any' })) {
      active.push(...page.map(({ contractId }) => contractId))
    }
    assert.deepEqual(active.toSorted(), [...replay.live.keys()].toSorted())
  })
})
