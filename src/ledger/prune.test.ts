import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  GLOBAL,
  openTestLedger,
  partyOf,
  SECOND,
  type TestLedger,
} from '../../test/support/embedded-ledger.ts'
import { forEachEngine } from '../../test/support/engines.ts'
import { parseCron } from '../config/cron.ts'
import type { Db } from '../db/db.ts'
import { decimal } from '../values/decimal.ts'
import type { Ledger } from './ledger.ts'
import { chooseInputs, coinsOf, tap, transfer } from './payments.ts'
import {
  applySchedule,
  type Pruning,
  type PruningOptions,
  type PruningRun,
  planPruning,
  type SafeOffset,
  startPruning,
} from './prune.ts'
import { pruneBetween, selectOldest, selectSchedule } from './prune-store.ts'

const [alice, bob] = [partyOf('alice'), partyOf('bob')]
const MINUTE = 60_000_000n
const HOUR = 60n * MINUTE
const DAY = 24n * HOUR
/** Five minutes from three o'clock on, and thirty days are kept. The test ledger begins at midnight. */
const SCHEDULE = { cron: '0 0 3 * * ?', maxDurationMs: 300_000, retentionMs: 30 * 86_400_000 }
const DEDUPLICATION_MS = 3_600_000

function readCron(text: string) {
  const read = parseCron(text)
  assert.ok('value' in read)
  return read.value
}

/** Pays back and forth, so that coins are archived; each payment is an offset. */
async function pay({ ledger, network }: TestLedger, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    const [sender, receiver] = n % 2 === 0 ? [alice, bob] : [bob, alice]
    const chosen = chooseInputs(await coinsOf(ledger, sender), decimal('1'))
    assert.ok(chosen)
    const { inputs } = chosen
    await transfer(ledger, network, { sender, receiver, amount: decimal('1'), inputs })
  }
}

async function fill(world: TestLedger, payments: number): Promise<void> {
  const { ledger, network } = world
  for (const receiver of [alice, bob]) {
    await tap(ledger, network, { receiver, amount: decimal('1000') })
  }
  await pay(world, payments)
}

async function activeIds(ledger: Ledger, offset = ledger.end): Promise<string[]> {
  const ids: string[] = []
  for await (const page of ledger.activeAt({ offset, parties: 'any' })) {
    ids.push(...page.map(({ contractId }) => contractId))
  }
  return ids.sort()
}

async function countRows(db: Db, table: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(`select count(*) as count from ${table}`)
  return row?.count ?? 0
}

const isPruned = { code: 'PARTICIPANT_PRUNED_DATA_ACCESSED', status: 400 }

type Watched = { pruning: Pruning; runs: PruningRun[]; batches: [bigint, bigint][] }

function watch(
  t: { after(clean: () => Promise<void>): void },
  options: Partial<PruningOptions> & { ledger: Ledger },
): Watched {
  const runs: PruningRun[] = []
  const batches: [bigint, bigint][] = []
  const pruning = startPruning({
    deduplicationMs: DEDUPLICATION_MS,
    safeOffsets: [],
    readCron,
    onBatch: ({ from, to }) => batches.push([from, to]),
    onRun: (run) => runs.push(run),
    onError: (error) => assert.fail(error as Error),
    ...options,
  })
  t.after(() => pruning.close())
  return { pruning, runs, batches }
}

async function until(condition: () => boolean): Promise<void> {
  for (const end = Date.now() + 10_000; !condition(); ) {
    assert.ok(Date.now() < end, 'it did not happen')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

forEachEngine((engine) => {
  const on = `, on ${engine.name}`

  test(`the stored schedule is made the configured one, and cleared without one${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    assert.equal(await applySchedule(db, undefined), 'kept')
    assert.equal(await applySchedule(db, SCHEDULE), 'set')
    assert.deepEqual(await selectSchedule(db), SCHEDULE)
    assert.equal(await applySchedule(db, SCHEDULE), 'kept')
    for (const other of [{ cron: '0 0 4 * * ?' }, { maxDurationMs: 1000 }, { retentionMs: 1000 }]) {
      assert.equal(await applySchedule(db, { ...SCHEDULE, ...other }), 'set')
      assert.deepEqual(await selectSchedule(db), { ...SCHEDULE, ...other })
    }
    assert.equal(await applySchedule(db, undefined), 'cleared')
    assert.equal(await selectSchedule(db), undefined)
  })

  test(`pruning removes updates and archived contracts, and leaves what is active${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, db } = world
    await fill(world, 20)
    const at = ledger.end - 5n
    const before = { now: await activeIds(ledger), past: await activeIds(ledger, at) }
    const updates = await ledger.updatesAfter(at, 100)
    assert.ok(await pruneBetween(db, 0n, at))
    assert.equal(await pruneBetween(db, 0n, at), false, 'another has been here')
    assert.equal(await ledger.pruned(), at)
    assert.deepEqual(await activeIds(ledger), before.now)
    assert.deepEqual(await activeIds(ledger, at), before.past)
    assert.deepEqual(await ledger.updatesAfter(at, 100), updates)
    assert.equal(await countRows(db, 'ledger_updates'), 5)
    const [archived] = await db.query<{ first: number }>(
      'select min(archived_offset) as first from contracts',
    )
    assert.equal(BigInt(archived?.first ?? 0), at + 1n, 'what was archived later is still told of')
    await assert.rejects(activeIds(ledger, at - 1n), isPruned)
    await assert.rejects(ledger.entriesAfter(at - 1n, 10), isPruned)
    await assert.rejects(ledger.entriesAfter(0n, 10), {
      ...isPruned,
      context: { earliest_offset: String(at) },
    })
    await pay(world, 2)
  })

  test(`pruning never passes the retention nor what somebody still needs${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), {
      ledger: { secondSynchronizerId: SECOND },
    })
    const { ledger, clock, db } = world
    await fill(world, 10)
    const [held] = await coinsOf(ledger, alice)
    assert.ok(held)
    const { contractId } = held
    const step = { kind: 'unassign', contractId, source: GLOBAL, target: SECOND } as const
    const left = await ledger.reassign({ submitter: alice, step })
    const old = ledger.end
    clock.advance(2n * HOUR)
    await tap(ledger, world.network, { receiver: bob, amount: decimal('5') })
    const none: SafeOffset[] = []
    const safe = (offset: bigint) => [{ name: 'the wallet', offset: () => offset }]
    const departure = 'a contract between two synchronizers'
    const table: [retentionMs: number, SafeOffset[], target: bigint, heldBy: string | undefined][] =
      [
        [10 * 86_400_000, none, 0n, undefined],
        [7_200_001, none, 0n, undefined],
        [7_200_000, none, 1n, undefined],
        [7_199_999, none, left.offset - 1n, departure],
        [3_600_000, safe(3n), 3n, 'the wallet'],
        [3_600_000, safe(0n), 0n, 'the wallet'],
        [0, none, left.offset - 1n, departure],
      ]
    for (const [retentionMs, safeOffsets, target, heldBy] of table) {
      const options = { ledger, deduplicationMs: DEDUPLICATION_MS, safeOffsets }
      const plan = await planPruning(options, retentionMs)
      assert.deepEqual([plan.target, plan.heldBy], [target, heldBy], `${retentionMs}`)
    }
    const { event } = JSON.parse(left.item)
    const unassignId = event.unassign_id as string
    await ledger.reassign({ submitter: alice, step: { kind: 'assign', unassignId } })
    clock.advance(MINUTE)
    const options = { ledger, deduplicationMs: DEDUPLICATION_MS, safeOffsets: none }
    assert.deepEqual(await planPruning(options, 0), {
      pruned: 0n,
      retention: ledger.end,
      target: old,
      heldBy: 'the memory of command ids',
    })
    const forgetful = { ...options, deduplicationMs: 0 }
    assert.deepEqual(await planPruning(forgetful, 0), {
      pruned: 0n,
      retention: ledger.end,
      target: ledger.end - 1n,
      heldBy: 'the end of the ledger',
    })
    assert.ok(await pruneBetween(db, 0n, ledger.end - 1n))
    assert.equal(await countRows(db, 'ledger_updates'), 1)
    assert.equal(await countRows(db, 'reassignments'), 1, 'it arrived with the newest update')
    assert.equal((await planPruning(forgetful, 10 * 86_400_000)).target, ledger.end - 1n)
  })

  test(`a window opens at its time, batches run until the retention, and the next waits for its time${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    const world = await openTestLedger(t, db)
    const { ledger, network, clock } = world
    const taps = Array.from({ length: 2100 }, () =>
      tap(ledger, network, { receiver: alice, amount: decimal('1') }),
    )
    await Promise.all(taps)
    const old = ledger.end
    await applySchedule(db, SCHEDULE)
    const { pruning, runs, batches } = watch(t, { ledger })
    clock.advance(30n * DAY + 2n * HOUR)
    await tap(ledger, network, { receiver: alice, amount: decimal('1') })
    await until(() => pruning.state().nextMicros !== undefined)
    assert.deepEqual(batches, [], 'it is not three yet')
    clock.advance(HOUR + MINUTE)
    await until(() => runs.length === 1)
    assert.deepEqual(batches, [
      [0n, 1000n],
      [1000n, 2000n],
      [2000n, old],
    ])
    assert.equal(runs[0]?.to, old)
    assert.equal(runs[0]?.isCut, false)
    clock.advance(DAY - 2n * MINUTE)
    await until(() => pruning.state().nextMicros !== undefined)
    assert.equal(runs.length, 1, 'the window of yesterday is used up')
    clock.advance(MINUTE)
    await until(() => runs.length === 2)
    assert.deepEqual(runs[1]?.from, old)
    assert.equal(batches.length, 3)
    await pruning.close()
    // Jumps over many windows: none of them is open any more.
    clock.advance(100n * DAY + HOUR)
    const again = watch(t, { ledger })
    await until(() => again.pruning.state().nextMicros !== undefined)
    assert.deepEqual(again.runs, [])
    assert.equal(await selectOldest(db), (await ledger.updatesAfter(old, 1))[0]?.recordTime)
  })

  test(`a window closes in the middle, and whoever starts in an open one goes on${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    const world = await openTestLedger(t, db)
    const { ledger, network, clock } = world
    const taps = Array.from({ length: 1100 }, () =>
      tap(ledger, network, { receiver: alice, amount: decimal('1') }),
    )
    await Promise.all(taps)
    const old = ledger.end
    await applySchedule(db, SCHEDULE)
    clock.advance(31n * DAY + 3n * HOUR + MINUTE)
    await tap(ledger, network, { receiver: alice, amount: decimal('1') })
    const cut = watch(t, { ledger, onBatch: () => clock.advance(5n * MINUTE) })
    await until(() => cut.runs.length === 1)
    assert.deepEqual([cut.runs[0]?.to, cut.runs[0]?.isCut], [1000n, true])
    await cut.pruning.close()
    clock.advance(DAY - 4n * MINUTE)
    const resumed = watch(t, { ledger })
    await until(() => resumed.runs.length === 1)
    assert.deepEqual(resumed.batches, [[1000n, old]])
  })

  test(`where windows overlap, one that closes leaves the rest to the next at once${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    const { ledger, network, clock } = await openTestLedger(t, db)
    const taps = Array.from({ length: 1100 }, () =>
      tap(ledger, network, { receiver: alice, amount: decimal('1') }),
    )
    await Promise.all(taps)
    const old = ledger.end
    await applySchedule(db, { ...SCHEDULE, cron: '0 0 * * * ?', maxDurationMs: 5_400_000 })
    clock.advance(31n * DAY + HOUR + MINUTE)
    await tap(ledger, network, { receiver: alice, amount: decimal('1') })
    // From one minute past one to half past one: the window of midnight has closed.
    const { runs } = watch(t, { ledger, onBatch: () => clock.advance(29n * MINUTE) })
    await until(() => runs.length === 2)
    assert.deepEqual(
      runs.map(({ from, to, isCut }) => [from, to, isCut]),
      [
        [0n, 1000n, true],
        [1000n, old, false],
      ],
    )
  })

  test(`a batch that fails is tried again in the window${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    const world = await openTestLedger(t, db)
    await fill(world, 3)
    await applySchedule(db, SCHEDULE)
    const old = world.ledger.end
    world.clock.advance(31n * DAY + 3n * HOUR)
    await pay(world, 1)
    const told: unknown[] = []
    let isBroken = true
    const offset = () => {
      if (isBroken) throw new Error('The wallet does not answer.')
      return 1_000_000n
    }
    const { runs } = watch(t, {
      ledger: world.ledger,
      safeOffsets: [{ name: 'the wallet', offset }],
      onError(error) {
        told.push((error as Error).message)
        isBroken = false
      },
    })
    await until(() => runs.length === 1)
    assert.deepEqual(told, ['The wallet does not answer.'])
    assert.equal(runs[0]?.to, old)
    assert.equal(runs[0]?.failure, undefined)
  })

  if (engine.name === 'postgres') {
    test('of two processes each batch is done by one', async (t) => {
      const db = await engine.open(t, 'participant')
      const world = await openTestLedger(t, db)
      const { ledger, network, clock } = world
      const taps = Array.from({ length: 1500 }, () =>
        tap(ledger, network, { receiver: alice, amount: decimal('1') }),
      )
      await Promise.all(taps)
      const old = ledger.end
      await applySchedule(db, SCHEDULE)
      clock.advance(31n * DAY + 3n * HOUR)
      await tap(ledger, network, { receiver: alice, amount: decimal('1') })
      const active = await activeIds(ledger)
      const both = [watch(t, { ledger }), watch(t, { ledger })]
      await until(() => both.every(({ runs }) => runs.length === 1))
      const batches = both.flatMap(({ batches }) => batches).toSorted(([a], [b]) => Number(a - b))
      assert.deepEqual(batches, [
        [0n, 1000n],
        [1000n, old],
      ])
      assert.deepEqual(await activeIds(ledger), active)
    })
  }
})
