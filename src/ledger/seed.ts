import type { SimulatedClock } from '../base/clock.ts'
import { createRandom, type Random } from '../base/random.ts'
import { type Decimal, decimal } from '../values/decimal.ts'
import { coin } from './coin.ts'
import type { Ledger } from './ledger.ts'
import {
  createCommand,
  exerciseCommand,
  findNetwork,
  foundNetwork,
  type Network,
  resultOf,
} from './network.ts'
import { chooseInputs, coinsOf, send, tap, transfer } from './payments.ts'
import { createPreapproval, preapproval } from './preapproval.ts'
import { advanceRound, openRound } from './round.ts'
import { amuletRules, type TrafficParameters } from './rules.ts'
import {
  acceptInstruction,
  externalRules,
  factoryTransfer,
  transferInstruction,
} from './token-standard.ts'
import { topUp, topUpState } from './top-up-state.ts'
import {
  acceptedOffer,
  acceptOffer,
  completeOffer,
  rejectOffer,
  transferOffer,
  withdrawOffer,
} from './transfer-offer.ts'
import { recordActivity, validatorLicence } from './validator-licence.ts'

/** The people of the seeded network; the node makes a party and a user of each. */
export const SEED_PEOPLE = ['alice', 'bob', 'carol'] as const

export type SeedOptions = {
  ledger: Ledger
  /** Time moves on between the acts. */
  clock: SimulatedClock
  seed: string
  dso: string
  validator: string
  /** The participant as a member of the synchronizer: `PAR::` and its id. */
  memberId: string
  traffic: TrafficParameters
  people: readonly string[]
}

const COIN_PRICE = decimal('0.15')
const MINUTE_MICROS = 60_000_000n
const DAY_MICROS = 1_440n * MINUTE_MICROS
const ROUNDS = 6
const NOTES = ['Lunch', 'Rent for June', 'Grazie! 🍕', 'Konzertkarten – zwei Stück', 'お茶', '']

type World = SeedOptions & { network: Network; random: Random }

/** How much earlier than its last act the story begins. */
export const SEED_SPAN_MICROS = 15n * 10n * MINUTE_MICROS

/** A small network with a past: coins, transfers, offers, traffic, a reassignment. */
export async function seedNetwork(options: SeedOptions): Promise<void> {
  const { ledger, dso, people, validator } = options
  const { traffic } = options
  const network = await foundNetwork(ledger, { dso, amuletPrice: COIN_PRICE, traffic })
  const world: World = { ...options, network, random: createRandom(options.seed) }
  await admitValidator(world)
  for (const receiver of [...people, validator]) {
    pass(world)
    await tap(ledger, network, { receiver, amount: decimal('1000') })
  }
  await preapprove(world, people[2] as string)
  for (let round = 0; round < ROUNDS; round += 1) {
    await liveThrough(world, round)
    await openNextRound(world)
  }
  await buyTraffic(world)
  await visitSecondSynchronizer(world, people[0] as string)
  await offer(world, people[0] as string, people[1] as string)
}

async function liveThrough(world: World, round: number): Promise<void> {
  const { people, random } = world
  const from = people[round % people.length] as string
  const to = people[(round + 1 + random(people.length - 1)) % people.length] as string
  await pay(world, from, to)
  await pay(world, to, from)
  const offered = await offer(world, from, to)
  if (round % 3 === 1) await reject(world, offered, to)
  else if (round % 3 === 2) await withdraw(world, offered, from)
  else await acceptAndComplete(world, offered, { sender: from, receiver: to })
  if (round % 2 === 0) await payByTokenStandard(world, to, from)
  else await payPreapproved(world, people[round % 2] as string)
  await reportActivity(world)
}

/** A few seconds to a few minutes go by. */
function pass({ clock, random }: World): void {
  clock.advance(BigInt(2_000_000 + random(70_000_000)))
}

function draw({ random }: World): Decimal {
  return BigInt(1 + random(40)) * decimal('0.5') + BigInt(random(1_000_000))
}

async function inputsOf({ ledger }: World, owner: string, amount: Decimal) {
  const chosen = chooseInputs(await coinsOf(ledger, owner), amount)
  if (chosen === undefined) throw new Error(`${owner} has spent more than the story gave.`)
  return chosen.inputs
}

async function pay(world: World, sender: string, receiver: string): Promise<void> {
  pass(world)
  const amount = draw(world)
  const inputs = await inputsOf(world, sender, amount)
  await transfer(world.ledger, world.network, { sender, receiver, amount, inputs })
}

async function offer(world: World, sender: string, receiver: string): Promise<string> {
  pass(world)
  const { ledger, network, clock, random } = world
  const update = await ledger.submit({
    actAs: [sender],
    workflowId: 'offer',
    commands: [
      createCommand(ledger, transferOffer, {
        sender,
        receiver,
        dso: network.dso,
        amount: { amount: draw(world), unit: 'AmuletUnit' },
        description: NOTES[random(NOTES.length)] as string,
        expiresAt: clock.nowMicros() + 30n * DAY_MICROS,
        trackingId: `offer-${random(2 ** 40).toString(16)}`,
      }),
    ],
  })
  return createdBy(update)
}

async function reject(world: World, contractId: string, receiver: string): Promise<void> {
  pass(world)
  const { ledger } = world
  const step = { template: transferOffer, contractId, choice: rejectOffer, argument: {} }
  await ledger.submit({
    actAs: [receiver],
    workflowId: 'offer',
    commands: [exerciseCommand(ledger, step)],
  })
}

async function withdraw(world: World, contractId: string, sender: string): Promise<void> {
  pass(world)
  const { ledger } = world
  const argument = { reason: 'changed my mind' }
  const step = { template: transferOffer, contractId, choice: withdrawOffer, argument }
  await ledger.submit({
    actAs: [sender],
    workflowId: 'offer',
    commands: [exerciseCommand(ledger, step)],
  })
}

async function acceptAndComplete(
  world: World,
  offered: string,
  { sender, receiver }: { sender: string; receiver: string },
): Promise<void> {
  pass(world)
  const { ledger, network } = world
  const accepted = await ledger.submit({
    actAs: [receiver],
    workflowId: 'offer',
    commands: [
      exerciseCommand(ledger, {
        template: transferOffer,
        contractId: offered,
        choice: acceptOffer,
        argument: {},
      }),
    ],
  })
  const contractId = resultOf(accepted, acceptOffer).acceptedTransferOffer
  const waiting = await ledger.contractsOf(acceptedOffer, sender)
  const contract = waiting.find((candidate) => candidate.contractId === contractId)
  if (contract === undefined) throw new Error('The offer has just been accepted.')
  const { amount } = contract.payload.amount
  pass(world)
  await ledger.submit({
    actAs: [sender],
    workflowId: 'offer',
    commands: [
      exerciseCommand(ledger, {
        template: acceptedOffer,
        contractId,
        choice: completeOffer,
        argument: {
          inputs: await inputsOf(world, sender, amount),
          transferContext: contextOf(network),
          walletProvider: world.validator,
        },
      }),
    ],
  })
}

async function payByTokenStandard(world: World, sender: string, receiver: string): Promise<void> {
  pass(world)
  const { ledger, network, clock } = world
  const amount = draw(world)
  const inputs = await inputsOf(world, sender, amount)
  const extraArgs = { context: contextOf(network) }
  const started = await ledger.submit({
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
            executeBefore: clock.nowMicros() + DAY_MICROS,
            inputHoldingCids: inputs.map(({ value }) => value),
            meta: { values: { 'splice.lfdecentralizedtrust.org/reason': 'invoice №17' } },
          },
          extraArgs,
        },
      }),
    ],
  })
  const { output } = resultOf(started, factoryTransfer)
  if (output.tag !== 'TransferInstructionResult_Pending')
    throw new Error('It waits for the receiver.')
  pass(world)
  await ledger.submit({
    actAs: [receiver],
    commands: [
      exerciseCommand(ledger, {
        template: transferInstruction,
        contractId: output.value.transferInstructionCid,
        choice: acceptInstruction,
        argument: { extraArgs },
      }),
    ],
  })
}

async function preapprove(world: World, receiver: string): Promise<void> {
  pass(world)
  const { ledger, network, clock, validator } = world
  const expiresAt = clock.nowMicros() + 90n * DAY_MICROS
  await ledger.submit({
    actAs: [receiver, validator],
    workflowId: 'preapprove',
    commands: [
      exerciseCommand(ledger, {
        template: amuletRules,
        contractId: network.rules,
        choice: createPreapproval,
        argument: { receiver, provider: validator, expiresAt },
      }),
    ],
  })
}

async function payPreapproved(world: World, sender: string): Promise<void> {
  pass(world)
  const { ledger, network, people } = world
  const [approved] = await ledger.contractsOf(preapproval, people[2] as string)
  if (approved === undefined) throw new Error('The story has a preapproval.')
  const amount = draw(world)
  await send(ledger, network, {
    preapproval: approved.contractId,
    sender,
    amount,
    inputs: await inputsOf(world, sender, amount),
    description: 'salary 💶',
  })
}

async function admitValidator({ ledger, network, validator }: World): Promise<void> {
  const { dso } = network
  await ledger.submit({
    actAs: [dso],
    workflowId: 'onboard-validator',
    commands: [
      createCommand(ledger, validatorLicence, {
        validator,
        sponsor: dso,
        dso,
        faucetState: null,
        metadata: null,
        lastActiveAt: null,
      }),
    ],
  })
}

async function reportActivity(world: World): Promise<void> {
  pass(world)
  const { ledger, network, validator } = world
  const [licence] = await ledger.contractsOf(validatorLicence, validator)
  if (licence === undefined) throw new Error('The validator has a licence.')
  const choice = recordActivity
  const { contractId } = licence
  const argument = { openRoundCid: network.round }
  await ledger.submit({
    actAs: [validator],
    commands: [
      exerciseCommand(ledger, { template: validatorLicence, contractId, choice, argument }),
    ],
  })
}

async function openNextRound(world: World): Promise<void> {
  world.clock.advance(10n * MINUTE_MICROS)
  const { ledger, network, random } = world
  const argument = { amuletPrice: COIN_PRICE + BigInt(random(100)) * decimal('0.0001') }
  await ledger.submit({
    actAs: [network.dso],
    workflowId: 'advance-rounds',
    commands: [
      exerciseCommand(ledger, {
        template: openRound,
        contractId: network.round,
        choice: advanceRound,
        argument,
      }),
    ],
  })
  Object.assign(network, await findNetwork(ledger, network.dso))
}

async function buyTraffic(world: World): Promise<void> {
  pass(world)
  const { ledger, network, validator } = world
  const synchronizerId = ledger.synchronizers[0] as string
  const member = {
    memberId: world.memberId,
    synchronizerId,
    migrationId: ledger.migrationId,
  }
  const made = await ledger.submit({
    actAs: [validator],
    commands: [
      createCommand(ledger, topUpState, {
        ...member,
        dso: network.dso,
        validator,
        lastPurchasedAt: 0n,
      }),
    ],
  })
  pass(world)
  await ledger.submit({
    actAs: [validator],
    workflowId: 'top-up',
    commands: [
      exerciseCommand(ledger, {
        template: topUpState,
        contractId: createdBy(made),
        choice: topUp,
        argument: {
          amuletRules: network.rules,
          minTopupInterval: { microseconds: MINUTE_MICROS },
          purchase: {
            ...member,
            provider: validator,
            trafficAmount: 1_200_000n,
            openMiningRound: network.round,
            inputs: await inputsOf(world, validator, decimal('200')),
          },
        },
      }),
    ],
  })
}

/** A coin goes to the second synchronizer and comes back. */
async function visitSecondSynchronizer(world: World, owner: string): Promise<void> {
  const { ledger } = world
  const [here, there] = ledger.synchronizers
  if (here === undefined || there === undefined) return
  const coins = (await ledger.contractsOf(coin, owner))
    .filter(({ payload }) => payload.owner === owner)
    .toSorted((a, b) => Number(a.payload.amount.initialAmount - b.payload.amount.initialAmount))
  const contractId = coins[0]?.contractId
  if (contractId === undefined) return
  for (const [source, target] of [
    [here, there],
    [there, here],
  ] as const) {
    pass(world)
    const left = await ledger.reassign({
      submitter: owner,
      step: { kind: 'unassign', contractId, source, target },
    })
    const { event } = JSON.parse(left.item) as { event: { unassign_id: string } }
    pass(world)
    await ledger.reassign({
      submitter: owner,
      step: { kind: 'assign', unassignId: event.unassign_id },
    })
  }
}

function contextOf(network: Network) {
  return { amuletRules: network.rules, openMiningRound: network.round }
}

/** The contract that a single create command made. */
function createdBy({ item, updateId }: { item: string; updateId: string }): string {
  const { events_by_id: events } = JSON.parse(item) as {
    events_by_id: Record<string, { contract_id: string }>
  }
  return events[`${updateId}:0`]?.contract_id as string
}
