import type { Random } from '../base/random.ts'
import type { Automation, RunOutcome } from '../wallet/automation.ts'
import { readCoin, sumOf } from '../wallet/coin-inputs.ts'
import { describeFailure } from '../wallet/run-failure.ts'
import { decideTopUp, type TopUpFacts, type TopUpRule } from '../wallet/top-up.ts'
import { MINUTE_MICROS, unit } from './activity.ts'
import { NEVER } from './neighbours.ts'
import type { Usage } from './usage.ts'
import type { World } from './world.ts'

/**
 * When automations look. A look at which nothing has changed does nothing, so it is left out: after a
 * change every automation looks at its next time, some part of its interval later, and one that waits
 * for an instant looks then.
 */
export type Polls = {
  nextAt(): bigint
  /** All of them look at once, as at a start. */
  everything(): void
  /** Something has changed: those that follow events look at once, the others at their next time. */
  soon(): void
  /** Traffic has run low: the top-up looks at its next time. */
  topUp(): void
  /** Those whose time has come, each once. */
  due(): Generator<Automation>
  run(automation: Automation): Promise<RunOutcome | { kind: 'failed'; sentence: string }>
  /** Asks the top-up's own decision, without the ledger. */
  isTopUpDue(atMicros: bigint): boolean
}

/** What failed is tried again after a change, or after this time; a node would try at every interval. */
const RETRY_MICROS = 10n * MINUTE_MICROS

export function createPolls(
  world: World,
  of: { random: Random; usage: Usage; topUp: TopUpRule | undefined },
): Polls {
  const { clock, view, automations: configured } = world
  const { topUp } = of
  const automations = configured.automations()
  const dueAt = new Map<Automation, bigint>()
  let known: Omit<TopUpFacts, 'extraTrafficRemainder' | 'nowMicros'> | undefined

  /** Automations have their own rhythm; what changes now is seen some part of an interval later. */
  function nextLook({ intervalMs }: Automation): bigint {
    const later = BigInt(Math.round(unit(of.random) * intervalMs * 1000))
    return clock.nowMicros() + later
  }

  function schedule(automation: Automation, at: bigint): void {
    const planned = dueAt.get(automation)
    if (planned === undefined || at < planned) dueAt.set(automation, at)
  }

  const nextAt = () => [...dueAt.values()].reduce((first, at) => (at < first ? at : first), NEVER)

  async function readTopUp(): Promise<void> {
    const { traffic } = await configured.context.network.terms()
    const { operator } = configured.context
    known = {
      terms: traffic,
      balance: sumOf(view.coins(operator).map(readCoin)),
      lastPurchasedAtMicros: view.topUpStates(operator)[0]?.payload.lastPurchasedAt ?? 0n,
    }
  }

  return {
    nextAt,
    everything() {
      for (const automation of automations) schedule(automation, clock.nowMicros())
    },
    soon() {
      known = undefined
      for (const automation of automations) {
        schedule(automation, automation.isEventDriven ? clock.nowMicros() : nextLook(automation))
      }
    },
    topUp() {
      for (const automation of automations) {
        if (automation.name === 'top-up') schedule(automation, nextLook(automation))
      }
    },
    *due() {
      for (const automation of automations) {
        const at = dueAt.get(automation)
        if (at === undefined || at > clock.nowMicros()) continue
        dueAt.delete(automation)
        yield automation
      }
    },
    async run(automation) {
      try {
        const outcome = await automation.run()
        if (automation.name === 'top-up') await readTopUp()
        if (outcome.kind === 'wait' && outcome.untilMicros !== undefined) {
          if (automation.name !== 'top-up') schedule(automation, outcome.untilMicros)
        }
        return outcome
      } catch (error) {
        schedule(automation, clock.nowMicros() + RETRY_MICROS)
        return { kind: 'failed', sentence: describeFailure(error).sentence }
      }
    },
    isTopUpDue(nowMicros) {
      if (topUp === undefined || known === undefined) return false
      const { purchased, consumed } = of.usage.state()
      const facts = { extraTrafficRemainder: purchased - consumed, nowMicros, ...known }
      return decideTopUp(topUp, facts).kind === 'act'
    },
  }
}
