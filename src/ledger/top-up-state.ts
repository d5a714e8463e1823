import {
  contractId,
  int64,
  party,
  record,
  text,
  timestamp,
  type ValueOf,
} from '../values/value-type.ts'
import { fetchOpenRound } from './round.ts'
import { amuletRules, tapCoins, trafficCost } from './rules.ts'
import { type Choice, defineChoice, defineTemplate, require, type Steps } from './template.ts'
import { buyTraffic, trafficPurchase, trafficPurchased } from './traffic.ts'

/** When a validator last bought traffic: what keeps its automation from buying too often. */

export const topUpState = defineTemplate({
  packageName: 'splice-wallet',
  name: 'Splice.Wallet.TopUpState:ValidatorTopUpState',
  payload: record({
    dso: party,
    validator: party,
    memberId: text,
    synchronizerId: text,
    migrationId: int64,
    lastPurchasedAt: timestamp,
  }),
  signatories: ({ validator }) => [validator],
  observers: () => [],
})

export type TopUpStatePayload = ValueOf<(typeof topUpState)['payload']>

/**
 * Buys traffic if enough time has passed, and notes the time of the purchase. On a development network
 * a purchase without inputs is paid with a coin that is tapped for it.
 */
export const topUp = defineChoice(topUpState, {
  name: 'ValidatorTopUpState_BuyTraffic',
  consuming: true,
  argument: record({
    amuletRules: contractId,
    purchase: trafficPurchase,
    minTopupInterval: record({ microseconds: int64 }),
  }),
  result: record({ topUpState: contractId, purchase: trafficPurchased }),
  controllers: ({ validator }) => [validator],
  async run(steps: Steps, { payload }, argument) {
    const { purchase } = argument
    const nextAt = payload.lastPurchasedAt + argument.minTopupInterval.microseconds
    require(nextAt <= steps.nowMicros, 'It is too soon for another purchase of traffic.')
    require(purchase.provider === payload.validator &&
      purchase.memberId === payload.memberId &&
      purchase.synchronizerId === payload.synchronizerId &&
      purchase.migrationId ===
        payload.migrationId, 'The purchase must be for the member and the synchronizer of the top-up state.')
    const inputs = purchase.inputs.length === 0 ? await tapCost(steps, argument) : purchase.inputs
    const bought = await steps.exercise({
      template: amuletRules,
      contractId: argument.amuletRules,
      choice: buyTraffic,
      argument: { ...purchase, inputs },
    })
    const renewed = { ...payload, lastPurchasedAt: steps.nowMicros }
    return { topUpState: await steps.create(topUpState, renewed), purchase: bought }
  },
})

async function tapCost(
  steps: Steps,
  of: { amuletRules: string; purchase: ValueOf<typeof trafficPurchase> },
): Promise<ValueOf<typeof trafficPurchase>['inputs']> {
  const { provider, openMiningRound, trafficAmount: bytes } = of.purchase
  const rules = await steps.fetch(amuletRules, of.amuletRules)
  require(rules.isDevNet, 'A purchase of traffic needs an input.')
  const { amuletPrice } = await fetchOpenRound(steps, openMiningRound, rules.dso)
  const { amuletSum } = await steps.exercise({
    template: amuletRules,
    contractId: of.amuletRules,
    choice: tapCoins,
    argument: {
      receiver: provider,
      amount: trafficCost(rules, { bytes, amuletPrice }).coins,
      openRound: openMiningRound,
    },
  })
  return [{ tag: 'InputAmulet', value: amuletSum.amulet }]
}

export const topUpStateChoices: Choice<TopUpStatePayload, unknown, unknown>[] = [topUp]
