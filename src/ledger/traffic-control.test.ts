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
import { type Clock, createSimulatedClock } from '../base/clock.ts'
import { LedgerError } from '../http/ledger-error.ts'
import { decimal } from '../values/decimal.ts'
import { openLedger } from './ledger.ts'
import { archiveCommand, createCommand, exerciseCommand } from './network.ts'
import { chooseInputs, coinsOf, tap } from './payments.ts'
import { advanceRound, openRound } from './round.ts'
import { amuletRules, firstRules, NETWORK_TRAFFIC } from './rules.ts'
import { TEMPLATES } from './templates.ts'
import { buyTraffic, memberTraffic } from './traffic.ts'
import { trafficOf } from './traffic-status.ts'
import type { LedgerUpdate } from './updates-store.ts'

const [alice, dso] = [partyOf('alice'), partyOf('DSO')]
const MEMBER = `PAR::participant::1220${'ab'.repeat(32)}`
const TRAFFIC = { memberId: MEMBER, dso }
const BURST = 400_000n
const MINUTE = 60_000_000n

/** The bytes of an update and the readers' part of them. */
function costOf({ item }: LedgerUpdate): bigint {
  const bytes = BigInt(Buffer.byteLength(item))
  return bytes + (bytes * 4n) / 10_000n
}

async function availableOf({ ledger }: Pick<TestLedger, 'ledger'>) {
  const status = await ledger.traffic()
  assert.ok(status)
  return status.available
}

const tapOne = ({ ledger, network }: TestLedger) =>
  tap(ledger, network, { receiver: alice, amount: decimal('1') })

/** Sends until there is no traffic; returns the refusal. */
async function exhaust(world: TestLedger): Promise<LedgerError> {
  for (;;) {
    try {
      await tapOne(world)
    } catch (error) {
      assert.ok(error instanceof LedgerError)
      return error
    }
  }
}

async function buy({ ledger, network }: TestLedger, bytes: bigint): Promise<LedgerUpdate> {
  const { inputs } = chooseInputs(await coinsOf(ledger, alice), decimal('2000')) ?? {}
  assert.ok(inputs)
  return ledger.submit({
    actAs: [alice],
    commands: [
      exerciseCommand(ledger, {
        template: amuletRules,
        contractId: network.rules,
        choice: buyTraffic,
        argument: {
          inputs,
          openMiningRound: network.round,
          provider: alice,
          memberId: MEMBER,
          synchronizerId: GLOBAL,
          migrationId: 0n,
          trafficAmount: bytes,
        },
      }),
    ],
  })
}

forEachEngine((engine) => {
  const on = `, on ${engine.name}`
  const options = { ledger: { traffic: TRAFFIC, secondSynchronizerId: SECOND } }

  test(`a submission costs its bytes, of the base rate first${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), options)
    assert.deepEqual(await availableOf(world), { base: BURST, extra: 0n }, 'founding is free')
    const update = await tapOne(world)
    assert.deepEqual(await availableOf(world), { base: BURST - costOf(update), extra: 0n })
    world.clock.advance(20n * MINUTE)
    assert.deepEqual(await availableOf(world), { base: BURST, extra: 0n })
  })

  test(`what cannot be paid is refused, costs nothing, and passes when the base rate has refilled${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), options)
    const { ledger, clock } = world
    const refusal = await exhaust(world)
    const { end } = ledger
    const before = await availableOf(world)
    assert.equal(refusal.code, 'SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT')
    assert.equal(refusal.status, 400)
    assert.deepEqual(refusal.context, {
      member: MEMBER,
      trafficCost: refusal.context.trafficCost,
      extraTrafficLimit: '0',
      extraTrafficConsumed: '0',
      baseTrafficRemainder: String(before.base),
      availableTraffic: String(before.base),
    })
    await assert.rejects(tapOne(world), { code: refusal.code })
    assert.equal(ledger.end, end)
    assert.deepEqual(await availableOf(world), before)
    clock.advance(MINUTE)
    assert.equal((await availableOf(world)).base, before.base + 20_000n)
    await tapOne(world)
  })

  test(`of submissions at the same time as many pass as can be paid${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), options)
    const tries = await Promise.allSettled(Array.from({ length: 400 }, () => tapOne(world)))
    const paid = tries.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    const spent = paid.reduce((sum, update) => sum + costOf(update), 0n)
    assert.ok(paid.length > 10 && paid.length < 400)
    assert.deepEqual(await availableOf(world), { base: BURST - spent, extra: 0n })
    assert.ok(BURST - spent < costOf(paid[0] as LedgerUpdate) + 20n, 'nothing was left over')
  })

  test(`extra traffic is used after the base rate, and a restart forgets none of it${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    const world = await openTestLedger(t, db, options)
    const { ledger, network, clock } = world
    await tap(ledger, network, { receiver: alice, amount: decimal('100000') })
    const bought = await buy(world, 200_000n)
    const first = await availableOf(world)
    assert.equal(first.extra, 200_000n)
    assert.ok(first.base < BURST - costOf(bought), 'buying costs traffic too')
    await exhaust(world)
    const status = await ledger.traffic()
    assert.ok(status && status.consumed > 190_000n && status.purchased === 200_000n)
    assert.equal(status.available.base, 0n)
    assert.deepEqual(await trafficOf(ledger, { dso, memberId: MEMBER }), status)
    await ledger.close()
    const again = await openLedger({
      db,
      clock,
      migrationId: 0n,
      synchronizerId: GLOBAL,
      templates: TEMPLATES,
      deduplicationMs: 1000,
      traffic: TRAFFIC,
    })
    t.after(() => again.close())
    assert.deepEqual(await again.traffic(), status)
    await assert.rejects(tapOne({ ...world, ledger: again }), {
      code: 'SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT',
    })
    // The governing party may always act, and traffic is for sale again once the base rate is back.
    await again.submit({
      actAs: [dso],
      commands: [
        exerciseCommand(again, {
          template: openRound,
          contractId: network.round,
          choice: advanceRound,
          argument: { amuletPrice: decimal('0.005') },
        }),
      ],
    })
    assert.deepEqual((await again.traffic())?.available, status.available)
  })

  test(`purchases for others and by others’ rules do not count, and archived ones no longer${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), options)
    const { ledger } = world
    const purchase = {
      dso,
      memberId: MEMBER,
      synchronizerId: GLOBAL,
      migrationId: 0n,
      totalPurchased: 1000n,
      numPurchases: 1n,
      amuletSpent: 0n,
      usdSpent: 0n,
    }
    const create = async (changes: Partial<typeof purchase>) => {
      const payload = { ...purchase, ...changes }
      await ledger.submit({
        actAs: [payload.dso],
        commands: [createCommand(ledger, memberTraffic, payload)],
      })
    }
    await create({})
    await create({ totalPurchased: 500n, migrationId: 7n })
    await create({ memberId: 'PAR::other::1220' })
    await create({ synchronizerId: SECOND })
    await create({ dso: alice })
    assert.equal((await availableOf(world)).extra, 1500n)
    assert.deepEqual(await trafficOf(ledger, { dso, memberId: 'PAR::other::1220' }), {
      purchased: 1000n,
      consumed: 0n,
    })
    assert.equal(await trafficOf(ledger, { dso, memberId: 'PAR::nobody::1220' }), undefined)
    const held = await ledger.contractsOf(memberTraffic, dso)
    const first = held.find(({ payload }) => payload.totalPurchased === 500n)
    assert.ok(first)
    const commands = [archiveCommand(ledger, memberTraffic, first.contractId)]
    await ledger.submit({ actAs: [dso], commands })
    assert.equal((await availableOf(world)).extra, 1000n)
  })

  test(`other rules take effect with the update that brings them${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), options)
    const { ledger, network } = world
    const traffic = {
      ...NETWORK_TRAFFIC,
      baseRateTrafficLimits: { burstAmount: 10n, burstWindow: { microseconds: MINUTE } },
    }
    const rules = firstRules({ dso, synchronizerId: GLOBAL, tickMicros: MINUTE, traffic })
    const changed = ledger.submit({
      actAs: [dso],
      commands: [
        archiveCommand(ledger, amuletRules, network.rules),
        createCommand(ledger, amuletRules, rules),
      ],
    })
    const after = createCommand(ledger, memberTraffic, {
      dso: alice,
      memberId: MEMBER,
      synchronizerId: GLOBAL,
      migrationId: 0n,
      totalPurchased: 1n,
      numPurchases: 1n,
      amuletSpent: 0n,
      usdSpent: 0n,
    })
    const refused = ledger.submit({ actAs: [alice], commands: [after] })
    await Promise.allSettled([changed, refused])
    await changed
    await assert.rejects(refused, { code: 'SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT' })
    assert.deepEqual(await availableOf(world), { base: 10n, extra: 0n })
    const [current] = await ledger.contractsOf(amuletRules, dso)
    assert.ok(current)
    const commands = [archiveCommand(ledger, amuletRules, current.contractId)]
    await ledger.submit({ actAs: [dso], commands })
    assert.equal(await ledger.traffic(), undefined)
    await ledger.submit({ actAs: [alice], commands: [after] })
  })

  test(`a reassignment is paid where it is sequenced, and the second synchronizer is free${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), options)
    const { ledger } = world
    await tapOne(world)
    const [held] = await coinsOf(ledger, alice)
    assert.ok(held)
    const { contractId } = held
    const before = await availableOf(world)
    const step = { kind: 'unassign', contractId, source: GLOBAL, target: SECOND } as const
    const out = await ledger.reassign({ submitter: alice, step })
    const left = await availableOf(world)
    assert.equal(left.base, before.base - costOf(out))
    const { event } = JSON.parse(out.item)
    const { unassign_id: unassignId } = event
    await ledger.reassign({ submitter: alice, step: { kind: 'assign', unassignId } })
    assert.deepEqual(await availableOf(world), left)
  })

  test(`a clock that was set back neither stops the refill nor pays twice${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    const setting = createSimulatedClock(0n)
    let now = 1_767_225_600_000_000n
    const clock: Clock = { ...setting, nowMicros: () => now }
    const world = await openTestLedger(t, db, { ledger: { ...options.ledger, clock } })
    await exhaust(world)
    const { base } = await availableOf(world)
    now -= 3600n * 1_000_000n
    await assert.rejects(tapOne(world), { code: 'SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT' })
    assert.equal((await availableOf(world)).base, base)
    now += 3600n * 1_000_000n
    assert.equal((await availableOf(world)).base, base, 'the refused submission left no trace')
    now -= 3600n * 1_000_000n
    await world.ledger.submit({
      actAs: [dso],
      commands: [archiveCommand(world.ledger, openRound, world.network.round)],
    })
    now += MINUTE
    assert.equal((await availableOf(world)).base, base + 20_000n)
  })

  if (engine.name === 'postgres') {
    test('nodes that share a database spend every byte once', async (t) => {
      const db = await engine.open(t, 'participant')
      const one = await openTestLedger(t, db, options)
      const other = await openLedger({
        db,
        clock: one.clock,
        migrationId: 0n,
        synchronizerId: GLOBAL,
        templates: TEMPLATES,
        deduplicationMs: 1000,
        traffic: TRAFFIC,
      })
      t.after(() => other.close())
      const worlds = [one, { ...one, ledger: other }]
      const tries = await Promise.allSettled(
        worlds.flatMap((world) =>
          Array.from({ length: 8 }, async () => {
            const made: LedgerUpdate[] = []
            for (let n = 0; n < 20; n += 1) made.push(await tapOne(world).catch(stopped(made)))
            return made
          }),
        ),
      )
      assert.ok(tries.length === 16)
      const updates = await one.ledger.updatesAfter(1n, 10_000)
      await other.refresh()
      const spent = updates.reduce((sum, update) => sum + costOf(update), 0n)
      assert.deepEqual(await availableOf(one), { base: BURST - spent, extra: 0n })
      assert.deepEqual(await availableOf({ ledger: other }), { base: BURST - spent, extra: 0n })
    })
  }
})

/** Contention and exhaustion are answers too. */
function stopped(made: LedgerUpdate[]) {
  return (error: unknown): LedgerUpdate => {
    assert.ok(error instanceof LedgerError)
    assert.match(error.code, /TRAFFIC|BACKPRESSURE/)
    return made[0] as LedgerUpdate
  }
}
