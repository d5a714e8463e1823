import {
  contractId,
  int64,
  list,
  numeric,
  optional,
  party,
  record,
  text,
  type ValueOf,
  variant,
} from '../values/value-type.ts'
import { coin, coinOf } from './coin.ts'
import { fetchOpenRound } from './round.ts'
import { amuletRules, feesOf, spendCoins, trafficCost } from './rules.ts'
import { defineChoice, defineTemplate, require, type Steps } from './template.ts'

/** Traffic that a member of a synchronizer has bought with coins, which are burnt. */

export const memberTraffic = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.DecentralizedSynchronizer:MemberTraffic',
  payload: record({
    dso: party,
    memberId: text,
    synchronizerId: text,
    migrationId: int64,
    totalPurchased: int64,
    numPurchases: int64,
    amuletSpent: numeric,
    usdSpent: numeric,
  }),
  signatories: ({ dso }) => [dso],
  observers: () => [],
  isPublic: true,
})

export type MemberTrafficPayload = ValueOf<(typeof memberTraffic)['payload']>

export const trafficPurchase = record({
  inputs: list(variant({ InputAmulet: contractId })),
  openMiningRound: contractId,
  provider: party,
  memberId: text,
  synchronizerId: text,
  migrationId: int64,
  trafficAmount: int64,
})

export const trafficPurchased = record({
  purchasedTraffic: contractId,
  amuletPaid: numeric,
  usdPaid: numeric,
  senderChangeAmulet: optional(contractId),
})

export const buyTraffic = defineChoice(amuletRules, {
  name: 'AmuletRules_BuyMemberTraffic',
  consuming: false,
  argument: trafficPurchase,
  result: trafficPurchased,
  controllers: (_payload, { provider }) => [provider],
  async run(steps: Steps, { payload }, purchase) {
    const { dso } = payload
    const { synchronizerId, trafficAmount: bytes } = purchase
    const known = payload.configSchedule.initialValue.decentralizedSynchronizer
    require(Object.hasOwn(
      known.requiredSynchronizers.map,
      synchronizerId,
    ), 'Traffic can only be bought for a synchronizer that the rules name.')
    const { minTopupAmount } = feesOf(payload)
    require(bytes >=
      minTopupAmount, `At least ${minTopupAmount} bytes of traffic must be bought at a time.`)
    const { round, amuletPrice } = await fetchOpenRound(steps, purchase.openMiningRound, dso)
    const cost = trafficCost(payload, { bytes, amuletPrice })
    const owner = purchase.provider
    const spent = await spendCoins(steps, { dso, owner, inputs: purchase.inputs })
    require(spent >= cost.coins, 'The inputs hold too little for the traffic.')
    const change = spent - cost.coins
    const senderChangeAmulet =
      change === 0n
        ? null
        : await steps.create(coin, coinOf(owner, change, { dso, round: round.number }))
    const purchasedTraffic = await steps.create(memberTraffic, {
      dso,
      memberId: purchase.memberId,
      synchronizerId,
      migrationId: purchase.migrationId,
      totalPurchased: bytes,
      numPurchases: 1n,
      amuletSpent: cost.coins,
      usdSpent: cost.usd,
    })
    return { purchasedTraffic, amuletPaid: cost.coins, usdPaid: cost.usd, senderChangeAmulet }
  },
})
