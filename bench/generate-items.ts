import type { Draw } from './draw.ts'
import {
  contract,
  created,
  elements,
  enumeration,
  exercised,
  genMap,
  instant,
  list,
  longTime,
  NONE,
  numeric,
  party,
  record,
  roundRecord,
  shortTime,
  some,
  text,
  textMap,
  variant,
} from './generate-json.ts'

// The two kinds of update item as JSON text. Transactions are coin transfers (a choice of the coin rules, the coins
// it archives and creates), or small ones of a few events: taps, rounds, coupons.

export type Coin = {
  id: string
  owner: string
  amount: string
  round: number
  createdAt: string
  reassigned: number
  unassignId: string
}
export type World = {
  dso: string
  parties: string[]
  synchronizers: [home: string, away: string]
  packages: { amulet: string; wallet: string; tokenStandard: string }
  coins: Coin[]
  rules: string
  known: Map<string, string>
}

export type When = { migration: number; micros: number }

type Transaction = {
  id: string
  createdAt: string
  events: string[]
  draw: Draw
  world: World
  round: number
}

const EXTERNAL_HASH_RATIO = 0.1

/** How often a transaction has 1, 2, 3, … 12 events. */
const EVENT_COUNT_WEIGHTS = [11, 9, 6, 4, 5, 7, 12, 14, 12, 9, 7, 4]
const EVENT_COUNTS = EVENT_COUNT_WEIGHTS.flatMap((weight, index) =>
  Array<number>(weight).fill(index + 1),
)

/** Contracts that later updates refer to; the bound keeps the memory small. */
const KNOWN_MAX = 4096

const SMALLEST_TRANSFER = 4
const MICROS_PER_ROUND = 600_000_000
const FIRST_ROUND_MICROS = Date.UTC(2024, 5, 25) * 1000

const WORKFLOWS = ['', '', '', 'wallet-batch', 'traffic-topup', 'merge-amulets']
const MEMOS = [
  '',
  '',
  'rent',
  'salary',
  'invoice',
  'refund',
  'for the coffee ☕',
  'Überweisung',
  '给你',
]

export function printTransaction(draw: Draw, world: World, { migration, micros }: When): string {
  const id = `1220${draw.hex(64)}`
  const effective = micros - 100_000 - draw.below(900_000)
  const round = Math.floor((micros - FIRST_ROUND_MICROS) / MICROS_PER_ROUND)
  const tx = { id, createdAt: shortTime(effective), events: [] as string[], draw, world, round }
  const size = draw.pick(EVENT_COUNTS)
  const roots = size < SMALLEST_TRANSFER ? addSmall(tx, size) : addTransfer(tx, size)
  const hash = draw.chance(EXTERNAL_HASH_RATIO)
    ? `,"external_transaction_hash":"${draw.hex(64)}"`
    : ''
  const head = `{"update_id":"${id}","migration_id":${migration},"workflow_id":"${draw.pick(WORKFLOWS)}","record_time":"${longTime(micros)}"`
  const middle = `,"synchronizer_id":"${world.synchronizers[0]}","effective_at":"${instant(effective)}","root_event_ids":${list(id, roots)}`
  return `${head}${middle},"events_by_id":{${tx.events.join()}}${hash}}`
}

export function printReassignment(draw: Draw, world: World, { migration, micros }: When): string {
  const id = `1220${draw.hex(64)}`
  if (world.coins.length === 0) world.coins.push(newCoin(draw, world, micros))
  const coin = draw.pick(world.coins)
  coin.reassigned += 1
  if (coin.reassigned % 2 === 1) coin.unassignId = `00${draw.hex(64)}`
  const [home, away] = world.synchronizers
  const leaves = coin.reassigned % 4 === 1 || coin.reassigned % 4 === 2
  const [source, target] = leaves ? [home, away] : [away, home]
  const counter = Math.ceil(coin.reassigned / 2)
  const head = `{"update_id":"${id}","record_time":"${longTime(micros)}","event":{"submitter":"${coin.owner}","source_synchronizer":"${source}"`
  const unassignId = `"unassign_id":"${coin.unassignId}"`
  return coin.reassigned % 2 === 1
    ? `${head},"migration_id":${migration},"target_synchronizer":"${target}",${unassignId},"reassignment_counter":${counter},"contract_id":"${coin.id}"}}`
    : `${head},"target_synchronizer":"${target}","migration_id":${migration},${unassignId},"created_event":${coinCreated(world, coin, `${id}:0`)},"reassignment_counter":${counter}}}`
}

/** One to three roots without children: created coupons, archived coins, a tap. */
function addSmall(tx: Transaction, size: number): number[] {
  const roots: number[] = []
  for (let index = 0; index < size; index += 1) {
    const kind = tx.draw.below(3)
    roots.push(
      kind === 0
        ? addArchive(tx)
        : kind === 1
          ? addCoupon(tx)
          : addCoin(tx, tx.draw.pick(tx.world.parties)),
    )
  }
  return roots
}

/** A transfer in a wallet's batch: two nested choices, then archived inputs and created outputs. */
function addTransfer(tx: Transaction, size: number): number[] {
  const { draw, world } = tx
  const wrapped = size > 6
  const moves = size - (wrapped ? 2 : 1)
  const inputs = Math.ceil(moves / 2) + draw.below(Math.floor(moves / 3))
  const sender = draw.pick(world.parties)
  const provider = draw.pick(world.parties)
  const receivers = Array.from({ length: moves - inputs }, () => draw.pick(world.parties))

  const batch = wrapped ? reserve(tx) : -1
  const transfer = reserve(tx)
  const spent = Array.from({ length: inputs }, () => takeCoin(tx, sender))
  const archived = spent.map((coin) => addArchive(tx, coin))
  const outputIndexes = receivers.map((receiver) => addCoin(tx, receiver, draw.chance(0.3)))
  const outputs = world.coins.slice(-outputIndexes.length)

  const argument = record([
    [
      'transfer',
      record([
        ['sender', party(sender)],
        ['provider', party(provider)],
        ['inputs', elements(spent.map((coin) => variant('InputAmulet', contract(coin.id))))],
        [
          'outputs',
          elements(
            outputs.map((coin) =>
              record([
                ['receiver', party(coin.owner)],
                ['receiverFeeRatio', numeric('0.0000000000')],
                ['amount', numeric(coin.amount)],
                ['lock', NONE],
              ]),
            ),
          ),
        ],
        ['beneficiaries', NONE],
      ]),
    ],
    [
      'context',
      record([
        ['openMiningRound', contract(roundContract(tx, 0))],
        [
          'issuingMiningRounds',
          genMap([[roundRecord(tx.round - 2), contract(roundContract(tx, 1))]]),
        ],
        ['validatorRights', '{"genMap":{}}'],
        ['featuredAppRight', NONE],
      ]),
    ],
    ['expectedDso', some(party(world.dso))],
  ])
  const result = record([
    ['round', roundRecord(tx.round)],
    [
      'summary',
      record([
        ['inputAmuletAmount', numeric(amount(draw))],
        ['inputAppRewardAmount', numeric('0.0000000000')],
        ['inputValidatorRewardAmount', numeric('0.0000000000')],
        [
          'balanceChanges',
          genMap([
            [
              party(sender),
              record([
                ['changeToInitialAmountAsOfRoundZero', numeric(amount(draw))],
                ['changeToHoldingFeesRate', numeric('0.0000190259')],
              ]),
            ],
          ]),
        ],
        ['amuletPrice', numeric(`0.${`${5 + (tx.round % 90)}`.padStart(3, '0')}0000000`)],
      ]),
    ],
    [
      'createdAmulets',
      elements(outputs.map((coin) => variant('TransferResultAmulet', contract(coin.id)))),
    ],
    ['senderChangeAmulet', some(contract(outputs.at(-1)?.id ?? ''))],
    [
      'meta',
      some(
        record([
          ['values', textMap([['splice.lfdecentralizedtrust.org/reason', text(draw.pick(MEMOS))]])],
        ]),
      ),
    ],
  ])
  place(
    tx,
    transfer,
    exercised(`${tx.id}:${transfer}`, {
      contract: world.rules,
      template: `${world.packages.amulet}:Splice.AmuletRules:AmuletRules`,
      package: 'splice-amulet',
      choice: 'AmuletRules_Transfer',
      argument,
      result,
      children: list(tx.id, [...archived, ...outputIndexes]),
      consuming: false,
      actors: [sender, provider],
    }),
  )
  if (!wrapped) return [transfer]
  place(
    tx,
    batch,
    exercised(`${tx.id}:${batch}`, {
      contract: installOf(tx, provider),
      template: `${world.packages.wallet}:Splice.Wallet.Install:WalletAppInstall`,
      package: 'splice-wallet',
      choice: 'WalletAppInstall_ExecuteBatch',
      argument: record([
        [
          'context',
          record([
            ['dso', party(world.dso)],
            ['validator', party(provider)],
            ['round', contract(roundContract(tx, 0))],
          ]),
        ],
        [
          'operations',
          elements([
            variant(
              'CO_TransferAmulet',
              record([
                ['sender', party(sender)],
                ['memo', text(draw.pick(MEMOS))],
              ]),
            ),
          ]),
        ],
      ]),
      result: record([
        ['outcomes', elements([variant('COO_Transfer', enumeration('Accepted'))])],
        ['optMergeResult', NONE],
      ]),
      children: list(tx.id, [transfer]),
      consuming: false,
      actors: [provider],
      interface: draw.chance(0.3)
        ? `${world.packages.tokenStandard}:Splice.Api.Token.TransferInstructionV1:TransferFactory`
        : undefined,
    }),
  )
  return [batch]
}

function addCoin(tx: Transaction, owner: string, large = false): number {
  const coin: Coin = {
    id: freshContract(tx.draw),
    owner,
    amount: large ? `${tx.draw.below(1e9)}${amount(tx.draw)}` : amount(tx.draw),
    round: tx.round,
    createdAt: tx.createdAt,
    reassigned: 0,
    unassignId: '',
  }
  tx.world.coins.push(coin)
  const index = reserve(tx)
  place(tx, index, coinCreated(tx.world, coin, `${tx.id}:${index}`))
  return index
}

function coinCreated(world: World, coin: Coin, eventId: string): string {
  return created(eventId, {
    contract: coin.id,
    template: `${world.packages.amulet}:Splice.Amulet:Amulet`,
    package: 'splice-amulet',
    fields: record([
      ['dso', party(world.dso)],
      ['owner', party(coin.owner)],
      [
        'amount',
        record([
          ['initialAmount', numeric(coin.amount)],
          ['createdAt', roundRecord(coin.round)],
          ['ratePerRound', record([['rate', numeric('0.0000190259')]])],
        ]),
      ],
    ]),
    createdAt: coin.createdAt,
    signatories: sorted(world.dso, coin.owner),
    observers: [],
  })
}

function addCoupon(tx: Transaction): number {
  const { draw, world } = tx
  const provider = draw.pick(world.parties)
  const index = reserve(tx)
  place(
    tx,
    index,
    created(`${tx.id}:${index}`, {
      contract: freshContract(draw),
      template: `${world.packages.amulet}:Splice.Amulet:AppRewardCoupon`,
      package: 'splice-amulet',
      fields: record([
        ['dso', party(world.dso)],
        ['provider', party(provider)],
        ['featured', draw.chance(0.5) ? '{"bool":true}' : '{"bool":false}'],
        ['amount', numeric(amount(draw))],
        ['round', roundRecord(tx.round)],
        ['beneficiary', draw.chance(0.5) ? NONE : some(party(draw.pick(world.parties)))],
      ]),
      createdAt: tx.createdAt,
      signatories: [world.dso],
      observers: [provider],
    }),
  )
  return index
}

function addArchive(tx: Transaction, coin = takeCoin(tx, tx.draw.pick(tx.world.parties))): number {
  const index = reserve(tx)
  place(
    tx,
    index,
    exercised(`${tx.id}:${index}`, {
      contract: coin.id,
      template: `${tx.world.packages.amulet}:Splice.Amulet:Amulet`,
      package: 'splice-amulet',
      choice: 'Archive',
      argument: '{"record":{}}',
      result: '{"unit":{}}',
      children: '[]',
      consuming: true,
      actors: sorted(tx.world.dso, coin.owner),
    }),
  )
  return index
}

/** A coin from an earlier update where there is one that is not on another synchronizer; it is gone afterwards. */
function takeCoin(tx: Transaction, owner: string): Coin {
  const { coins } = tx.world
  const index = tx.draw.below(coins.length)
  const coin = coins[index]
  if (coin === undefined || coin.reassigned % 4 !== 0)
    return { ...newCoin(tx.draw, tx.world, 0), owner }
  coins[index] = coins.at(-1) as Coin
  coins.pop()
  return coin
}

/** A coin that exists since before the history began. */
function newCoin(draw: Draw, world: World, micros: number): Coin {
  return {
    id: freshContract(draw),
    owner: draw.pick(world.parties),
    amount: amount(draw),
    round: 0,
    createdAt: shortTime(micros),
    reassigned: 0,
    unassignId: '',
  }
}

function roundContract(tx: Transaction, back: number): string {
  const name = `${tx.world.dso}${tx.round - back}`
  return knownContract(tx, name)
}

function installOf(tx: Transaction, provider: string): string {
  return knownContract(tx, provider)
}

/** Contracts that many updates refer to. The oldest is forgotten first. */
function knownContract(tx: Transaction, name: string): string {
  const { known } = tx.world
  const found = known.get(name)
  if (found !== undefined) return found
  const id = freshContract(tx.draw)
  known.set(name, id)
  if (known.size > KNOWN_MAX) known.delete(known.keys().next().value as string)
  return id
}

function freshContract(draw: Draw): string {
  return `00${draw.hex(64)}ca121220${draw.hex(64)}`
}

function amount(draw: Draw): string {
  return `${draw.below(100_000)}.${`${draw.below(1e10)}`.padStart(10, '0')}`
}

function sorted(one: string, other: string): string[] {
  if (one === other) return [one]
  return one < other ? [one, other] : [other, one]
}

/** Events are numbered in preorder, but a choice is printed only after its consequences are known. */
function reserve(tx: Transaction): number {
  return tx.events.push('') - 1
}

function place(tx: Transaction, index: number, event: string): void {
  tx.events[index] = `"${tx.id}:${index}":${event}`
}
