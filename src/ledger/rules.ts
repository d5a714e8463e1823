import { type Decimal, decimal, divideDecimals, multiplyDecimals } from '../values/decimal.ts'
import {
  bool,
  contractId,
  int64,
  list,
  numeric,
  optional,
  party,
  record,
  text,
  textMap,
  timestamp,
  unit,
  type ValueOf,
  variant,
} from '../values/value-type.ts'
import { coin, coinOf, roundType } from './coin.ts'
import { lockedCoin } from './locked-coin.ts'
import { fetchOpenRound } from './round.ts'
import { type Choice, defineChoice, defineTemplate, require, type Steps } from './template.ts'

/** The rules of the network: what traffic costs, how coins move. */

const trafficFees = record({
  baseRateTrafficLimits: record({
    burstAmount: int64,
    burstWindow: record({ microseconds: int64 }),
  }),
  /** USD for a million bytes. */
  extraTrafficPrice: numeric,
  readVsWriteScalingFactor: int64,
  minTopupAmount: int64,
})

export const amuletRules = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.AmuletRules:AmuletRules',
  payload: record({
    dso: party,
    configSchedule: record({
      initialValue: record({
        decentralizedSynchronizer: record({
          requiredSynchronizers: record({ map: textMap(unit) }),
          activeSynchronizer: text,
          fees: trafficFees,
        }),
        tickDuration: record({ microseconds: int64 }),
      }),
      futureValues: list(unit),
    }),
    isDevNet: bool,
  }),
  signatories: ({ dso }) => [dso],
  observers: () => [],
  isPublic: true,
})

export type AmuletRulesPayload = ValueOf<(typeof amuletRules)['payload']>

/** What every payment names besides its parties. */
export const paymentContext = record({
  amuletRules: contractId,
  openMiningRound: contractId,
})

const transferInput = variant({ InputAmulet: contractId })
const transferOutput = record({
  receiver: party,
  amount: numeric,
  /** With holders, the receiver gets a locked coin. */
  lock: optional(
    record({ holders: list(party), expiresAt: timestamp, optContext: optional(text) }),
  ),
})

export const transferType = record({
  sender: party,
  provider: party,
  inputs: list(transferInput),
  outputs: list(transferOutput),
})

export type Transfer = ValueOf<typeof transferType>

const createdCoin = variant({
  TransferResultAmulet: contractId,
  TransferResultLockedAmulet: contractId,
})

export const transferResult = record({
  round: roundType,
  createdAmulets: list(createdCoin),
  senderChangeAmulet: optional(contractId),
  amuletPrice: numeric,
})

/** Everyone whose coin is spent, locked or received agrees. */
export const transferCoins = defineChoice(amuletRules, {
  name: 'AmuletRules_Transfer',
  consuming: false,
  argument: record({ transfer: transferType, openMiningRound: contractId }),
  result: transferResult,
  controllers: (_payload, { transfer }) => [
    ...new Set([
      transfer.sender,
      ...transfer.outputs.flatMap(({ receiver, lock }) => [receiver, ...(lock?.holders ?? [])]),
    ]),
  ],
  async run(steps: Steps, { payload }, { transfer, openMiningRound }) {
    const { dso } = payload
    const open = await fetchOpenRound(steps, openMiningRound, dso)
    const round = open.round.number
    require(transfer.outputs.length > 0, 'A transfer needs an output.')
    const paid = transfer.outputs.reduce((sum, { amount }) => sum + amount, 0n)
    const spent = await spendCoins(steps, { dso, owner: transfer.sender, inputs: transfer.inputs })
    require(spent >= paid, `The inputs hold too little for the outputs.`)
    const createdAmulets: ValueOf<typeof createdCoin>[] = []
    for (const { receiver, amount, lock } of transfer.outputs) {
      const payload = coinOf(receiver, amount, { dso, round })
      createdAmulets.push(
        lock === null
          ? { tag: 'TransferResultAmulet', value: await steps.create(coin, payload) }
          : {
              tag: 'TransferResultLockedAmulet',
              value: await steps.create(lockedCoin, { amulet: payload, lock }),
            },
      )
    }
    const change = spent - paid
    const senderChangeAmulet =
      change === 0n
        ? null
        : await steps.create(coin, coinOf(transfer.sender, change, { dso, round }))
    return {
      round: open.round,
      createdAmulets,
      senderChangeAmulet,
      amuletPrice: open.amuletPrice,
    }
  },
})

/** On a development network anyone may have coins for the asking. */
export const tapCoins = defineChoice(amuletRules, {
  name: 'AmuletRules_DevNet_Tap',
  consuming: false,
  argument: record({ receiver: party, amount: numeric, openRound: contractId }),
  result: record({
    amuletSum: record({ amulet: contractId, amuletPrice: numeric, round: roundType }),
  }),
  controllers: (_payload, { receiver }) => [receiver],
  async run(steps: Steps, { payload }, argument) {
    require(payload.isDevNet, 'Coins can be tapped on a development network only.')
    const open = await fetchOpenRound(steps, argument.openRound, payload.dso)
    const { round, amuletPrice } = open
    const amulet = await steps.create(
      coin,
      coinOf(argument.receiver, argument.amount, { dso: payload.dso, round: round.number }),
    )
    return { amuletSum: { amulet, amuletPrice, round } }
  },
})

export const rulesChoices: Choice<AmuletRulesPayload, unknown, unknown>[] = [
  transferCoins,
  tapCoins,
]

/** Archives coins of one owner and returns what they held. */
export async function spendCoins(
  steps: Steps,
  of: { dso: string; owner: string; inputs: ValueOf<typeof transferInput>[] },
): Promise<Decimal> {
  require(of.inputs.length > 0, 'A transfer needs an input.')
  let spent = 0n
  for (const { value } of of.inputs) {
    const input = await steps.fetch(coin, value)
    require(input.dso === of.dso, 'An input is a coin of another network.')
    require(input.owner === of.owner, 'An input does not belong to the sender.')
    await steps.archive(coin, value)
    spent += input.amount.initialAmount
  }
  return spent
}

const BYTES_PER_MEGABYTE = decimal('1000000')

/** What extra traffic costs, in USD and in coin. */
export function trafficCost(
  rules: AmuletRulesPayload,
  of: { bytes: bigint; amuletPrice: Decimal },
): { usd: Decimal; coins: Decimal } {
  const { extraTrafficPrice } = feesOf(rules)
  const bytes = of.bytes * decimal('1')
  const usd = multiplyDecimals(divideDecimals(bytes, BYTES_PER_MEGABYTE), extraTrafficPrice)
  return { usd, coins: divideDecimals(usd, of.amuletPrice) }
}

export function feesOf(rules: AmuletRulesPayload) {
  return rules.configSchedule.initialValue.decentralizedSynchronizer.fees
}

export type TrafficParameters = ValueOf<typeof trafficFees>

/** What the deployed networks begin with. */
export const NETWORK_TRAFFIC: TrafficParameters = {
  baseRateTrafficLimits: {
    burstAmount: 400_000n,
    burstWindow: { microseconds: 1_200_000_000n },
  },
  extraTrafficPrice: decimal('16.67'),
  readVsWriteScalingFactor: 4n,
  minTopupAmount: 200_000n,
}

/** The rules that a network starts with. */
export function firstRules(of: {
  dso: string
  synchronizerId: string
  tickMicros: bigint
  traffic?: TrafficParameters
}) {
  return {
    dso: of.dso,
    configSchedule: {
      initialValue: {
        decentralizedSynchronizer: {
          requiredSynchronizers: { map: { [of.synchronizerId]: {} } },
          activeSynchronizer: of.synchronizerId,
          fees: of.traffic ?? NETWORK_TRAFFIC,
        },
        tickDuration: { microseconds: of.tickMicros },
      },
      futureValues: [],
    },
    isDevNet: true,
  }
}
