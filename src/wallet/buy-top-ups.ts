import {
  type ActParts,
  type Automation,
  type AutomationContext,
  createAutomation,
} from './automation.ts'
import { chooseCoins, readCoin, sumOf } from './coin-inputs.ts'
import { createTopUpStateCommand, mergeCommand, topUpCommand } from './commands.ts'
import type { Decision } from './decision.ts'
import type { Held } from './holdings.ts'
import { decideTopUp, type TopUpPlan, type TopUpRule } from './top-up.ts'

/** Buys what the top-up decides on. The contract that remembers the last purchase is made first. */
export function topUpAutomation(context: AutomationContext, rule: TopUpRule): Automation {
  const { view, network, operator: party } = context
  const coins = () => view.coins(party).map(readCoin)

  async function findState(): Promise<Held<'topUpState'> | undefined> {
    const { memberId, synchronizerId, migrationId } = await network.member()
    return view
      .topUpStates(party)
      .find(
        ({ payload }) =>
          payload.memberId === memberId &&
          payload.synchronizerId === synchronizerId &&
          payload.migrationId === migrationId,
      )
  }

  async function decide(): Promise<Decision<TopUpPlan>> {
    const { traffic } = await network.terms()
    const state = await findState()
    return decideTopUp(rule, {
      terms: traffic,
      balance: sumOf(coins()),
      // The network does not know members that have never bought any.
      extraTrafficRemainder: (await network.extraTrafficRemainder()) ?? 0n,
      lastPurchasedAtMicros: state?.payload.lastPurchasedAt ?? 0n,
      nowMicros: context.nowMicros(),
    })
  }

  async function toAct({ bytes, cost, intervalMs }: TopUpPlan): Promise<ActParts> {
    const { dso, payment, traffic } = await network.terms()
    const member = await network.member()
    const state = await findState()
    const priority = 'high'
    if (state === undefined) {
      const create = createTopUpStateCommand({
        dso,
        validator: party,
        ...member,
        lastPurchasedAt: 0n,
      })
      const what = 'begin to note purchases of traffic'
      return { subject: 'state', what, priority, commands: () => [create] }
    }
    const chosen = chooseCoins(coins(), cost.coins)
    if (chosen.kind === 'merge' && !traffic.isDevNet) {
      const { inputs, total } = chosen
      const merge = mergeCommand(payment, { owner: party, coins: inputs, total })
      const what = `make one of ${inputs.length} coins, to pay for traffic`
      return { subject: 'merge', what, priority, commands: () => [merge] }
    }
    const buy = topUpCommand(payment, {
      state: state.contractId,
      purchase: {
        provider: party,
        // On a development network the ledger taps what the purchase costs.
        coins: traffic.isDevNet || chosen.kind !== 'enough' ? [] : chosen.inputs,
        ...member,
        bytes,
      },
      minTopupIntervalMicros: BigInt(intervalMs) * 1000n,
    })
    return { subject: member.synchronizerId, priority, commands: () => [buy] }
  }

  const { pollingIntervalMs: intervalMs } = rule
  const parts = { name: 'top-up' as const, party, intervalMs, isEventDriven: false }
  return createAutomation(context, { ...parts, decide, toAct })
}
