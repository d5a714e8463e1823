import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { prepareLine } from '../src/history/encode.ts'
import { openHistory } from '../src/history/history.ts'
import { IMPORT_RECORD_TIME } from '../src/history/position.ts'
import { importedContracts } from '../src/ledger/imports.ts'
import { openLedger } from '../src/ledger/ledger.ts'
import { findNetwork } from '../src/ledger/network.ts'
import { chooseInputs, coinsOf, tap, transfer } from '../src/ledger/payments.ts'
import { TEMPLATES } from '../src/ledger/templates.ts'
import { startFollowing } from '../src/scan/follow.ts'
import { carryOver, planMigration } from '../src/synchronizer-migration.ts'
import { ensureFirstUsers, ensurePartyUser } from '../src/users/first-users.ts'
import { openParticipant } from '../src/users/participant-store.ts'
import { selectRights, selectUser } from '../src/users/users-store.ts'
import { decimal } from '../src/values/decimal.ts'
import { GLOBAL, openTestLedger, partyOf, SECOND, TRAFFIC } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory, post } from './support/node.ts'
import { FREE_PORTS, runCommand, spawnNode, startCommand } from './support/node-process.ts'

const KILLS = 4
const KILL_DELAY_MS_MAX = 1200

test('a start with another migration id is planned or refused with a sentence', () => {
  const wanted = (id: bigint, migrating = false) => ({ id, migrating })
  assert.deepEqual(planMigration(undefined, wanted(3n)), { kind: 'stay' })
  assert.deepEqual(planMigration(3n, wanted(3n, true)), { kind: 'stay' })
  assert.deepEqual(planMigration(3n, wanted(5n, true)), { kind: 'migrate', from: 3n })
  assert.throws(() => planMigration(3n, wanted(4n)), /set migration\.migrating to true/)
  assert.throws(() => planMigration(3n, wanted(2n, true)), /already at migration 3/)
})

forEachEngine((engine) => {
  test(`people and active contracts are carried over, and the new migration begins with them, on ${engine.name}`, async (t) => {
    const old = await openTestLedger(t, await engine.open(t, 'participant'), {
      ledger: { secondSynchronizerId: SECOND, traffic: TRAFFIC },
    })
    const [alice, bob] = [partyOf('alice'), partyOf('bob')]
    await ensureFirstUsers(old.db)
    await ensurePartyUser(old.db, 'alice', alice)
    const wish = { migrationId: 0n, partyHint: 'p', nodeIdentifier: 'n', isGiven: true }
    const participant = await openParticipant(old.db, wish)
    for (let n = 0; n < 30; n += 1) {
      await tap(old.ledger, old.network, { receiver: alice, amount: decimal('1') })
    }
    const [moving] = await coinsOf(old.ledger, alice)
    assert.ok(moving)
    const left = await old.ledger.reassign({
      submitter: alice,
      step: { kind: 'unassign', contractId: moving.contractId, source: GLOBAL, target: SECOND },
    })
    const appDb = await engine.open(t, 'app')
    const history = await openHistory({ db: appDb, cacheBytes: 1_000_000 })
    const onError = (error: unknown) => assert.fail(String(error))
    const before = startFollowing({ ledger: old.ledger, history, onError })
    await before.caughtUp()
    await before.close()
    const oldUpdates = history.view.updates
    const traffic = await old.ledger.traffic()
    await old.ledger.close()

    const db = await engine.open(t, 'participant')
    await carryOver(old.db, db, 1n)
    await carryOver(old.db, db, 1n)
    assert.deepEqual(await openParticipant(db, { ...wish, migrationId: 1n }), participant)
    assert.deepEqual(await selectUser(db, 'alice'), await selectUser(old.db, 'alice'))
    assert.deepEqual(await selectRights(db, 'alice'), await selectRights(old.db, 'alice'))
    const ledger = await openLedger({
      db,
      clock: old.clock,
      migrationId: 1n,
      synchronizerId: GLOBAL,
      templates: TEMPLATES,
      deduplicationMs: 1000,
      traffic: TRAFFIC,
    })
    t.after(() => ledger.close())
    assert.ok(traffic && traffic.available.base < traffic.limits.burstAmount)
    assert.deepEqual(await ledger.traffic(), traffic)
    const network = await findNetwork(ledger, old.network.dso)
    assert.deepEqual(network, old.network)
    assert.ok(network)
    assert.deepEqual(ledger.synchronizers, [GLOBAL, SECOND])
    const { event } = JSON.parse(left.item)
    const step = { kind: 'assign' as const, unassignId: event.unassign_id }
    await ledger.reassign({ submitter: alice, step })
    const chosen = chooseInputs(await coinsOf(ledger, alice), decimal('5'))
    assert.ok(chosen)
    const { inputs } = chosen
    await transfer(ledger, network, { sender: alice, receiver: bob, amount: decimal('5'), inputs })

    // Interrupted among the carried contracts.
    const recordTime = IMPORT_RECORD_TIME
    for await (const items of importedContracts(ledger, { after: '', recordTime })) {
      await history.append(items.slice(0, 10).map(prepareLine))
    }
    const after = startFollowing({ ledger, history, onError })
    await after.caughtUp()
    await after.close()
    assert.equal(history.view.imports, 33)
    assert.equal(history.view.updates, oldUpdates + 2)
    assert.equal(history.view.last?.migrationId, 1n)
    const again = startFollowing({ ledger, history, onError })
    await again.caughtUp()
    await again.close()
    assert.equal(history.view.imports, 33)
    assert.equal(history.view.updates, oldUpdates + 2)
  })
})

function valuesFor(t: TestContext, migration: string): string[] {
  const file = join(newDirectory(t), 'validator.yaml')
  writeFileSync(file, `migration: ${migration}\n`)
  return ['-f', file]
}

async function pageOf(scan: string, version = 1): Promise<unknown[]> {
  const { body } = await post(`${scan}/v${version}/updates`, { page_size: 1000 })
  return (body as { transactions: unknown[] }).transactions
}

test('a node migrates, also after it was killed while migrating, and keeps its old pages', async (t) => {
  const data = newDirectory(t)
  const first = await startCommand(t, ['--data', data])
  const demo = [
    'demo',
    '--data',
    data,
    '--url',
    first.urls.ledger,
    '--rate',
    '500',
    '--count',
    '40',
  ]
  assert.equal((await runCommand(demo)).code, 0)
  const oldPage = await pageOf(first.urls.scan)
  // Killed, so that the history may still lack the ledger's last updates.
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')

  const refused = await runCommand([
    'start',
    ...FREE_PORTS,
    '--data',
    data,
    ...valuesFor(t, '{ id: 1 }'),
  ])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /set migration\.migrating to true/)
  assert.ok(!existsSync(join(data, 'participant_1.sqlite')))

  const misnamed = await runCommand(['start', ...FREE_PORTS, '--data', data], {
    env: {
      CANTON_PARTICIPANT_POSTGRES_DB: 'participant_9',
      CANTON_PARTICIPANT_POSTGRES_SERVER: 'h',
    },
  })
  assert.equal(misnamed.code, 2)
  assert.match(misnamed.stderr, /participant_9, but the migration id is 0/)

  const values = valuesFor(t, '{ id: 1, migrating: true }')
  for (let kill = 0; kill < KILLS; kill += 1) {
    const { kill: killNode } = spawnNode(t, ['--data', data, ...values])
    await wait(Math.random() * KILL_DELAY_MS_MAX)
    await killNode()
  }
  const second = await startCommand(t, ['--data', data, ...values])
  const page = await pageOf(second.urls.scan)
  assert.deepEqual(page.slice(0, oldPage.length), oldPage)
  const imports = (await pageOf(second.urls.scan, 0)).filter(
    (item) => (item as { record_time: string }).record_time < '0002',
  )
  assert.ok(imports.length > 10)
  const pay = [
    'demo',
    '--data',
    data,
    '--url',
    second.urls.ledger,
    '--rate',
    '500',
    '--count',
    '20',
  ]
  const paid = await runCommand(pay)
  assert.equal(paid.code, 0, paid.stderr)
  assert.equal(await second.stop(), 0)

  const lowered = await runCommand([
    'start',
    ...FREE_PORTS,
    '--data',
    data,
    ...valuesFor(t, '{ id: 0 }'),
  ])
  assert.equal(lowered.code, 1)
  assert.match(lowered.stderr, /already at migration 1/)
  const verified = await runCommand(['verify', '--data', data])
  assert.equal(verified.code, 0, verified.stderr)
  const third = await startCommand(t, ['--data', data, ...valuesFor(t, '{ id: 1 }')])
  const newest = (await pageOf(third.urls.scan)).at(-1) as { migration_id: number }
  assert.equal(newest.migration_id, 1)
})
