import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { prepareLine } from '../src/history/encode.ts'
import { coin } from '../src/ledger/coin.ts'
import type { Contract } from '../src/ledger/contract.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { lockedCoin } from '../src/ledger/locked-coin.ts'
import { exerciseCommand } from '../src/ledger/network.ts'
import { chooseInputs, coinsOf, tap, transfer } from '../src/ledger/payments.ts'
import {
  acceptInstruction,
  externalRules,
  factoryTransfer,
  transferInstruction,
  transferInstructionChoices,
} from '../src/ledger/token-standard.ts'
import { openTestLedger, partyOf, SECOND, type TestLedger } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { createReplay } from './support/replay.ts'

const PEOPLE = ['alice', 'bob', 'carol'].map(partyOf)
const RUNS = 3
const OPERATIONS = 700
/** Submitted at once, so that they collide now and then. */
const WAVE = 10

type Operation = {
  kind: 'tap' | 'transfer' | 'instruct' | 'accept' | 'reject' | 'move' | 'arrive'
  who: number
  other: number
  amount: bigint
}

const operation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.constantFrom(
    'tap',
    'transfer',
    'transfer',
    'transfer',
    'instruct',
    'accept',
    'reject',
    'move',
    'arrive',
  ),
  who: fc.nat(PEOPLE.length - 1),
  other: fc.nat(PEOPLE.length - 1),
  amount: fc.bigInt(1n, 10n ** 14n),
})

/** What everyone owns: spendable, locked and on its way together. */
type Model = { owned: Map<string, bigint>; supply: bigint }

const MEANT = new Set([
  'LOCAL_VERDICT_LOCKED_CONTRACTS',
  'LOCAL_VERDICT_INACTIVE_CONTRACTS',
  'NO_COMMON_SYNCHRONIZER',
  'CONTRACT_IS_BEING_REASSIGNED',
  'REASSIGNMENT_VALIDATION_FAILED',
])

async function perform(world: TestLedger, model: Model, step: Operation): Promise<void> {
  const { ledger, network, clock } = world
  const sender = PEOPLE[step.who] as string
  const receiver = PEOPLE[step.other] as string
  const { amount } = step
  const credit = (owner: string, change: bigint) =>
    model.owned.set(owner, (model.owned.get(owner) ?? 0n) + change)
  const context = { amuletRules: network.rules, openMiningRound: network.round }
  if (step.kind === 'tap') {
    await tap(ledger, network, { receiver: sender, amount })
    credit(sender, amount)
    model.supply += amount
    return
  }
  if (step.kind === 'transfer') {
    const chosen = chooseInputs(await coinsOf(ledger, sender), amount)
    if (chosen === undefined) return
    await transfer(ledger, network, { sender, receiver, amount, inputs: chosen.inputs })
    credit(sender, -amount)
    credit(receiver, amount)
    return
  }
  if (step.kind === 'instruct') {
    const chosen = chooseInputs(await coinsOf(ledger, sender), amount)
    if (chosen === undefined) return
    await ledger.submit({
      actAs: [sender],
      commands: [
        exerciseCommand(ledger, {
          template: externalRules,
          contractId: network.external,
          choice: factoryTransfer,
          argument: {
            expectedAdmin: network.dso,
            transfer: {
              sender,
              receiver,
              amount,
              instrumentId: { admin: network.dso, id: 'Amulet' },
              requestedAt: clock.nowMicros(),
              executeBefore: clock.nowMicros() + 86_400_000_000n,
              inputHoldingCids: chosen.inputs.map(({ value }) => value),
              meta: { values: {} },
            },
            extraArgs: { context },
          },
        }),
      ],
    })
    return
  }
  if (step.kind === 'accept' || step.kind === 'reject') {
    const [instruction] = (await ledger.contractsOf(transferInstruction, sender)).filter(
      ({ payload }) => payload.transfer.receiver === sender,
    )
    if (instruction === undefined) return
    const choice = step.kind === 'accept' ? acceptInstruction : transferInstructionChoices[1]
    assert.ok(choice)
    await ledger.submit({
      actAs: [sender],
      commands: [
        {
          kind: 'exercise',
          entry: ledger.entryOf(transferInstruction),
          contractId: instruction.contractId,
          choice: choice as never,
          argument: { extraArgs: { context } },
        },
      ],
    })
    if (step.kind === 'reject') return
    const { transfer: done } = instruction.payload
    credit(done.sender, -done.amount)
    credit(done.receiver, done.amount)
    return
  }
  await reassign(ledger, sender, step.kind)
}

async function reassign(ledger: Ledger, owner: string, kind: 'move' | 'arrive'): Promise<void> {
  const [here, there] = ledger.synchronizers as [string, string]
  const coins = (await ledger.contractsOf(coin, owner)).filter(
    ({ synchronizerId }) => (synchronizerId === undefined) === (kind === 'arrive'),
  )
  const chosen = coins[0]
  if (chosen === undefined) return
  if (kind === 'move') {
    const source = chosen.synchronizerId as string
    const target = source === here ? there : here
    const { contractId } = chosen
    await ledger.reassign({
      submitter: owner,
      step: { kind: 'unassign', contractId, source, target },
    })
    return
  }
  for (const { item } of await ledger.updatesAfter(0n, 100_000)) {
    const { event } = JSON.parse(item)
    if (event?.contract_id !== chosen.contractId) continue
    if (event.reassignment_counter !== Number(chosen.reassignmentCounter)) continue
    await ledger.reassign({
      submitter: owner,
      step: { kind: 'assign', unassignId: event.unassign_id },
    })
  }
}

async function allActive(ledger: Ledger): Promise<Contract[]> {
  const found: Contract[] = []
  for await (const page of ledger.activeAt({ offset: ledger.end, parties: 'any' })) {
    found.push(...page)
  }
  return found
}

async function ownedBy(ledger: Ledger, owner: string): Promise<bigint> {
  const free = await ledger.contractsOf(coin, owner)
  const locked = await ledger.contractsOf(lockedCoin, owner)
  const amounts = [
    ...free.map(({ payload }) => payload),
    ...locked.map(({ payload }) => payload.amulet),
  ].filter((held) => held.owner === owner)
  return amounts.reduce((sum, { amount }) => sum + amount.initialAmount, 0n)
}

async function checkLaws({ ledger }: TestLedger, model: Model): Promise<void> {
  let supply = 0n
  for (const person of PEOPLE) {
    const owned = await ownedBy(ledger, person)
    assert.equal(owned, model.owned.get(person) ?? 0n, `what ${person} owns`)
    supply += owned
  }
  assert.equal(supply, model.supply)
  assert.equal(ledger.activeContracts, (await allActive(ledger)).length)
  const updates = await ledger.updatesAfter(0n, 100_000)
  assert.deepEqual(
    updates.map(({ offset }) => offset),
    Array.from({ length: updates.length }, (_, n) => BigInt(n + 1)),
  )
  const replay = createReplay()
  for (const { item } of updates) {
    prepareLine(item)
    replay.read(JSON.parse(item))
  }
  const active = await allActive(ledger)
  assert.deepEqual(
    active
      .map(({ contractId, entry, payload, synchronizerId, reassignmentCounter }) => [
        contractId,
        JSON.stringify(entry.template.payload.toLossless(payload)),
        synchronizerId,
        Number(reassignmentCounter),
      ])
      .toSorted(),
    [...replay.live]
      .map(([id, held]) => [id, held.createArguments, held.synchronizer, held.counter])
      .toSorted(),
  )
}

forEachEngine((engine) => {
  test(`whatever is done, nothing is lost or minted and the history replays, on ${engine.name}`, async (t) => {
    let done = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: OPERATIONS, maxLength: OPERATIONS, size: 'max' }),
        async (operations) => {
          const world = await openTestLedger(t, await engine.open(t, 'participant'), {
            ledger: { secondSynchronizerId: SECOND },
          })
          const model: Model = { owned: new Map(), supply: 0n }
          for (let start = 0; start < operations.length; start += WAVE) {
            const wave = operations.slice(start, start + WAVE)
            const outcomes = await Promise.allSettled(
              wave.map((step) => perform(world, model, step)),
            )
            for (const outcome of outcomes) {
              if (outcome.status === 'fulfilled') done += 1
              else assert.ok(MEANT.has(outcome.reason.code), String(outcome.reason.stack))
            }
          }
          await checkLaws(world, model)
        },
      ),
      { numRuns: RUNS, endOnFailure: true },
    )
    assert.ok(done > (RUNS * OPERATIONS) / 2, 'most operations go through')
  })
})
