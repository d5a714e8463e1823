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
import { migrate, readMigrations } from '../db/migrate.ts'
import { openDb } from '../db/open.ts'
import { prepareLine } from '../history/encode.ts'
import { type Decimal, decimal } from '../values/decimal.ts'
import { coin } from './coin.ts'
import { openLedger } from './ledger.ts'
import { archiveCommand, createCommand, exerciseCommand, resultOf } from './network.ts'
import { chooseInputs, coinsOf, send, tap, transfer } from './payments.ts'
import { createPreapproval } from './preapproval.ts'
import { amuletRules, tapCoins } from './rules.ts'
import { TEMPLATES } from './templates.ts'
import {
  acceptInstruction,
  externalRules,
  factoryTransfer,
  transferInstruction,
} from './token-standard.ts'
import { topUp, topUpState } from './top-up-state.ts'
import { memberTraffic } from './traffic.ts'
import { acceptedOffer, acceptOffer, completeOffer, transferOffer } from './transfer-offer.ts'

const alice = partyOf('alice')
const bob = partyOf('bob')
const carol = partyOf('carol')
const DAY_MICROS = 86_400_000_000n

async function balance({ ledger }: TestLedger, owner: string): Promise<Decimal> {
  return (await coinsOf(ledger, owner)).reduce((sum, { amount }) => sum + amount, 0n)
}

async function inputsFor(world: TestLedger, owner: string, amount: Decimal) {
  const chosen = chooseInputs(await coinsOf(world.ledger, owner), amount)
  assert.ok(chosen)
  return chosen.inputs
}

const refusedWith =
  (code: string, status?: number) => (error: Error & { code?: string; status?: number }) => {
    assert.equal(error.code, code, error.message)
    if (status !== undefined) assert.equal(error.status, status)
    return true
  }

forEachEngine((engine) => {
  const on = `, on ${engine.name}`

  test(`coins are tapped and transferred, and change comes back${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network } = world
    await tap(ledger, network, { receiver: alice, amount: decimal('100') })
    const amount = decimal('30.0000000001')
    const inputs = await inputsFor(world, alice, amount)
    const update = await transfer(ledger, network, { sender: alice, receiver: bob, amount, inputs })
    assert.equal(await balance(world, alice), decimal('69.9999999999'))
    assert.equal(await balance(world, bob), amount)
    const prepared = prepareLine(update.item)
    assert.equal(prepared.derived, true)
    const item = JSON.parse(update.item)
    const events = Object.values(item.events_by_id) as Record<string, unknown>[]
    assert.deepEqual(
      events.map(
        ({ event_type, choice, template_id }) =>
          choice ??
          String(template_id ?? event_type)
            .split(':')
            .at(-1),
      ),
      ['AmuletRules_Transfer', 'Archive', 'Amulet', 'Amulet'],
    )
    assert.match(update.updateId, /^1220[0-9a-f]{64}$/)
    assert.match(String(events[1]?.contract_id), /^00[0-9a-f]{64}ca121220[0-9a-f]{64}$/)
  })

  test(`of two that consume a contract at once one succeeds, the other meets contention${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network } = world
    await tap(ledger, network, { receiver: alice, amount: decimal('10') })
    const inputs = await inputsFor(world, alice, decimal('10'))
    const pay = (receiver: string) =>
      transfer(ledger, network, { sender: alice, receiver, amount: decimal('10'), inputs })
    const outcomes = await Promise.allSettled([pay(bob), pay(carol), pay(bob)])
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), [
      'fulfilled',
      'rejected',
      'rejected',
    ])
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected')
        refusedWith('LOCAL_VERDICT_LOCKED_CONTRACTS', 409)(outcome.reason)
    }
    await assert.rejects(pay(bob), refusedWith('LOCAL_VERDICT_INACTIVE_CONTRACTS', 404))
    const unknown = [{ tag: 'InputAmulet' as const, value: `00${'ab'.repeat(34)}` }]
    await assert.rejects(
      transfer(ledger, network, {
        sender: alice,
        receiver: bob,
        amount: decimal('1'),
        inputs: unknown,
      }),
      refusedWith('CONTRACT_NOT_FOUND', 404),
    )
    assert.equal((await balance(world, bob)) + (await balance(world, carol)), decimal('10'))
  })

  test(`authority is checked at every step${on}`, async (t) => {
    const { ledger, network } = await openTestLedger(t, await engine.open(t, 'participant'))
    const tapFor = exerciseCommand(ledger, {
      template: amuletRules,
      contractId: network.rules,
      choice: tapCoins,
      argument: { receiver: bob, amount: decimal('1'), openRound: network.round },
    })
    await assert.rejects(
      ledger.submit({ actAs: [alice], commands: [tapFor] }),
      refusedWith('DAML_AUTHORIZATION_ERROR', 400),
    )
    const forged = createCommand(ledger, coin, {
      dso: network.dso,
      owner: alice,
      amount: { initialAmount: 1n, createdAt: { number: 0n }, ratePerRound: { rate: 0n } },
    })
    await assert.rejects(
      ledger.submit({ actAs: [alice], commands: [forged] }),
      refusedWith('DAML_AUTHORIZATION_ERROR', 400),
    )
    await tap(ledger, network, { receiver: bob, amount: decimal('1') })
    const [held] = await coinsOf(ledger, bob)
    assert.ok(held)
    await assert.rejects(
      ledger.submit({ actAs: [alice], commands: [archiveCommand(ledger, coin, held.contractId)] }),
      refusedWith('CONTRACT_NOT_FOUND', 404),
    )
    await assert.rejects(
      ledger.submit({ actAs: [bob], commands: [archiveCommand(ledger, coin, held.contractId)] }),
      refusedWith('DAML_AUTHORIZATION_ERROR', 400),
    )
    await assert.rejects(
      tap(ledger, network, { receiver: partyOf('nobody'), amount: 1n }),
      refusedWith('UNKNOWN_INFORMEES', 404),
    )
  })

  test(`a transaction of several commands is whole or not at all${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network } = world
    const tapCommand = (receiver: string, amount: Decimal) =>
      exerciseCommand(ledger, {
        template: amuletRules,
        contractId: network.rules,
        choice: tapCoins,
        argument: { receiver, amount, openRound: network.round },
      })
    const { end } = ledger
    await assert.rejects(
      ledger.submit({ actAs: [alice], commands: [tapCommand(alice, 5n), tapCommand(alice, 0n)] }),
      refusedWith('INTERPRETATION_USER_ERROR', 400),
    )
    assert.equal(ledger.end, end)
    await ledger.submit({
      actAs: [alice],
      commands: [tapCommand(alice, 5n), tapCommand(alice, 6n)],
    })
    assert.equal(ledger.end, end + 1n)
    assert.equal(await balance(world, alice), 11n)
  })

  test(`contracts are listed as they were at an offset, and updates are found by their ids${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network } = world
    const activeIds = async (offset: bigint, parties: string[] | 'any') => {
      const ids: string[] = []
      for await (const page of ledger.activeAt({ offset, parties })) {
        ids.push(...page.map(({ contractId }) => contractId))
      }
      return ids.toSorted()
    }
    const seen: { offset: bigint; all: string[]; own: string[] }[] = []
    for (let n = 0; n < 12; n += 1) {
      const { offset } = await tap(ledger, network, { receiver: alice, amount: decimal('1') })
      if (n % 3 === 2) {
        const inputs = await inputsFor(world, alice, decimal('2'))
        await transfer(ledger, network, { sender: alice, receiver: bob, amount: 1n, inputs })
      }
      assert.ok(offset <= ledger.end)
      const { end } = ledger
      seen.push({
        offset: end,
        all: await activeIds(end, 'any'),
        own: await activeIds(end, [bob, alice]),
      })
    }
    for (const { offset, all, own } of seen) {
      assert.deepEqual(await activeIds(offset, 'any'), all)
      assert.deepEqual(await activeIds(offset, [bob, alice]), own)
    }
    await assert.rejects(activeIds(ledger.end + 1n, 'any'), refusedWith('OFFSET_AFTER_LEDGER_END'))
    for (const update of await ledger.updatesAfter(0n, 100)) {
      assert.deepEqual(await ledger.update(update.updateId), update)
    }
    assert.equal(await ledger.update(`1220${'ab'.repeat(32)}`), undefined)
    assert.equal(await ledger.update('nonsense'), undefined)
  })

  test(`a command id is accepted once within its period${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network, clock } = world
    const pay = () => tap(ledger, network, { receiver: alice, amount: 1n, commandId: 'c1' })
    const outcomes = await Promise.allSettled([pay(), pay(), pay()])
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
    await assert.rejects(pay(), refusedWith('DUPLICATE_COMMAND', 409))
    clock.advance(3_601_000_000n)
    await pay()
    assert.equal(await balance(world, alice), 2n)
  })

  test(`a refused command takes an offset, says why, and its id is free for the next${on}`, async (t) => {
    const db = await engine.open(t, 'participant')
    const world = await openTestLedger(t, db)
    const { ledger, network, clock } = world
    const { end } = ledger
    const pay = (amount: Decimal, commandId?: string) =>
      tap(ledger, network, { receiver: alice, amount, ...(commandId && { commandId }) })
    const outcomes = await Promise.allSettled([pay(0n, 'c1'), pay(1n), pay(0n), pay(0n, 'c2')])
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'fulfilled', 'rejected', 'rejected'],
    )
    await pay(2n, 'c1')
    await assert.rejects(pay(2n, 'c1'), refusedWith('DUPLICATE_COMMAND'))
    const entries = await ledger.entriesAfter(end, 100)
    assert.deepEqual(
      entries.map((entry) => [
        entry.offset - end,
        entry.command.commandId,
        'status' in entry ? entry.status.code : undefined,
      ]),
      [
        [1n, 'c1', 9],
        [2n, '', undefined],
        [3n, 'c2', 9],
        [4n, 'c1', undefined],
        [5n, 'c1', 6],
      ],
    )
    const times = entries.map(({ recordTime }) => recordTime)
    assert.deepEqual(times, [...new Set(times)].toSorted())
    const accepted = entries.flatMap((entry) => ('item' in entry ? [entry] : []))
    assert.deepEqual(await ledger.updatesAfter(end, 100), accepted)
    assert.equal(ledger.end, end + 5n)
    assert.equal(await balance(world, alice), 3n)
    const again = await openLedger({
      db,
      clock,
      migrationId: 0n,
      synchronizerId: GLOBAL,
      templates: TEMPLATES,
      deduplicationMs: 3_600_000,
    })
    t.after(() => again.close())
    assert.equal(again.end, ledger.end)
    assert.equal(again.activeContracts, ledger.activeContracts)
    await tap(again, network, { receiver: alice, amount: 1n, commandId: 'c2' })
  })

  test(`an offer is accepted and completed, and cannot be after it expired${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network, clock } = world
    await tap(ledger, network, { receiver: alice, amount: decimal('5') })
    const offer = async () => {
      await ledger.submit({
        actAs: [alice],
        commands: [
          createCommand(ledger, transferOffer, {
            sender: alice,
            receiver: bob,
            dso: network.dso,
            amount: { amount: decimal('2'), unit: 'AmuletUnit' },
            description: 'lunch',
            expiresAt: clock.nowMicros() + DAY_MICROS,
            trackingId: 't1',
          }),
        ],
      })
      const [offered] = await ledger.contractsOf(transferOffer, bob)
      assert.ok(offered)
      return () =>
        ledger.submit({
          actAs: [bob],
          commands: [
            exerciseCommand(ledger, {
              template: transferOffer,
              contractId: offered.contractId,
              choice: acceptOffer,
              argument: {},
            }),
          ],
        })
    }
    const accepted = resultOf(await (await offer())(), acceptOffer)
    await ledger.submit({
      actAs: [alice],
      commands: [
        exerciseCommand(ledger, {
          template: acceptedOffer,
          contractId: accepted.acceptedTransferOffer,
          choice: completeOffer,
          argument: {
            inputs: await inputsFor(world, alice, decimal('2')),
            transferContext: { amuletRules: network.rules, openMiningRound: network.round },
            walletProvider: alice,
          },
        }),
      ],
    })
    assert.equal(await balance(world, bob), decimal('2'))
    const accept = await offer()
    clock.advance(2n * DAY_MICROS)
    await assert.rejects(accept(), refusedWith('INTERPRETATION_USER_ERROR', 400))
  })

  test(`a preapproval lets others send, and the token standard's choices name their interface${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network, clock } = world
    await tap(ledger, network, { receiver: alice, amount: decimal('9') })
    const made = await ledger.submit({
      actAs: [bob, carol],
      commands: [
        exerciseCommand(ledger, {
          template: amuletRules,
          contractId: network.rules,
          choice: createPreapproval,
          argument: { receiver: bob, provider: carol, expiresAt: clock.nowMicros() + DAY_MICROS },
        }),
      ],
    })
    const { transferPreapprovalCid } = resultOf(made, createPreapproval)
    await send(ledger, network, {
      preapproval: transferPreapprovalCid,
      sender: alice,
      amount: decimal('4'),
      inputs: await inputsFor(world, alice, decimal('4')),
      description: null,
    })
    assert.equal(await balance(world, bob), decimal('4'))
    const context = { amuletRules: network.rules, openMiningRound: network.round }
    const started = await ledger.submit({
      actAs: [alice],
      commands: [
        exerciseCommand(ledger, {
          template: externalRules,
          contractId: network.external,
          choice: factoryTransfer,
          argument: {
            expectedAdmin: network.dso,
            transfer: {
              sender: alice,
              receiver: bob,
              amount: decimal('1'),
              instrumentId: { admin: network.dso, id: 'Amulet' },
              requestedAt: clock.nowMicros(),
              executeBefore: clock.nowMicros() + DAY_MICROS,
              inputHoldingCids: (await inputsFor(world, alice, decimal('1'))).map(
                ({ value }) => value,
              ),
              meta: { values: {} },
            },
            extraArgs: { context },
          },
        }),
      ],
    })
    assert.match(
      started.item,
      /"interface_id":"[0-9a-f]{64}:Splice.Api.Token.TransferInstructionV1:TransferFactory"/,
    )
    prepareLine(started.item)
    const { output } = resultOf(started, factoryTransfer)
    assert.ok(output.tag === 'TransferInstructionResult_Pending')
    assert.equal(await balance(world, alice), decimal('4'))
    await ledger.submit({
      actAs: [bob],
      commands: [
        exerciseCommand(ledger, {
          template: transferInstruction,
          contractId: output.value.transferInstructionCid,
          choice: acceptInstruction,
          argument: { extraArgs: { context } },
        }),
      ],
    })
    assert.equal(await balance(world, bob), decimal('5'))
  })

  test(`traffic is bought at the price of the rules, not sooner than the interval${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network, clock } = world
    await tap(ledger, network, { receiver: alice, amount: decimal('10000') })
    const member = {
      dso: network.dso,
      memberId: 'PAR::alice',
      synchronizerId: GLOBAL,
      migrationId: 0n,
    }
    await ledger.submit({
      actAs: [alice],
      commands: [
        createCommand(ledger, topUpState, { ...member, validator: alice, lastPurchasedAt: 0n }),
      ],
    })
    const buy = async (trafficAmount: bigint) => {
      const [state] = await ledger.contractsOf(topUpState, alice)
      assert.ok(state)
      const { dso: _, ...of } = member
      return ledger.submit({
        actAs: [alice],
        commands: [
          exerciseCommand(ledger, {
            template: topUpState,
            contractId: state.contractId,
            choice: topUp,
            argument: {
              amuletRules: network.rules,
              minTopupInterval: { microseconds: 60_000_000n },
              purchase: {
                ...of,
                provider: alice,
                trafficAmount,
                openMiningRound: network.round,
                inputs: await inputsFor(world, alice, decimal('4000.8')),
              },
            },
          }),
        ],
      })
    }
    await assert.rejects(buy(1000n), refusedWith('INTERPRETATION_USER_ERROR'))
    const { purchase } = resultOf(await buy(1_200_000n), topUp)
    assert.equal(purchase.usdPaid, decimal('20.004'))
    assert.equal(purchase.amuletPaid, decimal('4000.8'))
    await assert.rejects(buy(1_200_000n), refusedWith('INTERPRETATION_USER_ERROR'))
    clock.advance(61_000_000n)
    await buy(1_200_000n)
    assert.equal((await ledger.contractsOf(memberTraffic, network.dso)).length, 2)
    assert.equal(await balance(world, alice), decimal('1998.4'))
  })

  test(`a contract is unassigned and assigned with one counter, which rises${on}`, async (t) => {
    const world = await openTestLedger(t, await engine.open(t, 'participant'), {
      ledger: { secondSynchronizerId: SECOND },
    })
    const { ledger, network } = world
    await tap(ledger, network, { receiver: alice, amount: decimal('1') })
    const [held] = await coinsOf(ledger, alice)
    assert.ok(held)
    const { contractId } = held
    const move = async (source: string, target: string) => {
      const out = await ledger.reassign({
        submitter: alice,
        step: { kind: 'unassign', contractId, source, target },
      })
      const { event } = JSON.parse(out.item)
      await assert.rejects(
        transfer(ledger, network, {
          sender: alice,
          receiver: bob,
          amount: 1n,
          inputs: [{ tag: 'InputAmulet', value: contractId }],
        }),
        refusedWith('CONTRACT_IS_BEING_REASSIGNED'),
      )
      const step = { kind: 'assign' as const, unassignId: event.unassign_id }
      const back = await ledger.reassign({ submitter: alice, step })
      await assert.rejects(
        ledger.reassign({ submitter: alice, step }),
        refusedWith('REASSIGNMENT_VALIDATION_FAILED'),
      )
      for (const { item } of [out, back]) prepareLine(item)
      const counter = JSON.parse(back.item).event.reassignment_counter
      assert.equal(event.reassignment_counter, counter)
      return counter
    }
    assert.equal(await move(GLOBAL, SECOND), 1)
    await assert.rejects(
      transfer(ledger, network, {
        sender: alice,
        receiver: bob,
        amount: 1n,
        inputs: [{ tag: 'InputAmulet', value: contractId }],
      }),
      refusedWith('NO_COMMON_SYNCHRONIZER'),
    )
    assert.equal(await move(SECOND, GLOBAL), 2)
    await transfer(ledger, network, {
      sender: alice,
      receiver: bob,
      amount: decimal('1'),
      inputs: [{ tag: 'InputAmulet', value: contractId }],
    })
  })

  // SQLite's file belongs to one process.
  if (engine.name === 'sqlite') return

  test(`two ledgers on one database never spend a coin twice${on}`, async (t) => {
    const target = await engine.newTarget(t)
    const dbs = await Promise.all([openDb(target), openDb(target)])
    for (const db of dbs) t.after(() => db.close())
    const [one, two] = dbs as [(typeof dbs)[0], (typeof dbs)[0]]
    await migrate(one, await readMigrations('participant'))
    const world = await openTestLedger(t, one)
    const { ledger, network, clock } = world
    const other = await openLedger({
      db: two,
      clock,
      migrationId: 0n,
      synchronizerId: GLOBAL,
      templates: TEMPLATES,
      deduplicationMs: 1000,
    })
    t.after(() => other.close())
    for (let n = 0; n < 20; n += 1)
      await tap(ledger, network, { receiver: alice, amount: decimal('1') })
    const coins = await coinsOf(ledger, alice)
    const outcomes = await Promise.allSettled(
      coins.flatMap(({ contractId }) =>
        [ledger, other].map((submitter) =>
          transfer(submitter, network, {
            sender: alice,
            receiver: bob,
            amount: decimal('1'),
            inputs: [{ tag: 'InputAmulet', value: contractId }],
          }),
        ),
      ),
    )
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 20)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.match(outcome.reason.code, /^LOCAL_VERDICT/)
    }
    assert.equal(await balance(world, bob), decimal('20'))
  })
})
