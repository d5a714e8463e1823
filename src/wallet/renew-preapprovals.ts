import { type Instant, instantFromMicros, printInThrees } from '../values/instant.ts'
import { type Automation, type AutomationContext, createAutomation } from './automation.ts'
import { renewPreapprovalCommand } from './commands.ts'
import type { Decision } from './decision.ts'
import type { Held } from './holdings.ts'

/** Renewal of the preapprovals that this node's operator provides, in good time before they end. */

export type Preapproval = {
  contractId: string
  receiver: string
  provider: string
  expiresAtMicros: bigint
}

export type RenewalRule = {
  /** How long a renewed preapproval lasts. */
  lifetimeMs: number
  /** How long before its end it is renewed. */
  renewalMs: number
}

export type RenewalPlan = { preapproval: Preapproval; newExpiresAtMicros: bigint }

/** What has ended stays so: the receiver may have meant it to. */
export function decideRenewal(
  rule: RenewalRule,
  facts: { provider: string; preapprovals: readonly Preapproval[]; nowMicros: bigint },
): Decision<RenewalPlan> {
  const { provider, nowMicros } = facts
  const [first] = facts.preapprovals
    .filter((held) => held.provider === provider && held.expiresAtMicros > nowMicros)
    .toSorted((a, b) => (a.expiresAtMicros < b.expiresAtMicros ? -1 : 1))
  if (first === undefined) return { kind: 'wait', because: 'this node provides no preapproval' }
  const dueAtMicros = first.expiresAtMicros - BigInt(rule.renewalMs) * 1000n
  const ends = `the preapproval of ${first.receiver} ends at ${printTime(first.expiresAtMicros)}`
  if (dueAtMicros > nowMicros) {
    return { kind: 'wait', because: `${ends}, which is far off`, untilMicros: dueAtMicros }
  }
  const newExpiresAtMicros = nowMicros + BigInt(rule.lifetimeMs) * 1000n
  return {
    kind: 'act',
    plan: { preapproval: first, newExpiresAtMicros },
    what: `renew the preapproval of ${first.receiver} until ${printTime(newExpiresAtMicros)}`,
    because: ends,
  }
}

function printTime(micros: bigint): string {
  return printInThrees(instantFromMicros(micros) as Instant)
}

export function renewalAutomation(
  context: AutomationContext,
  rule: RenewalRule,
  intervalMs: number,
): Automation {
  const { view, operator: party } = context
  return createAutomation(context, {
    name: 'preapproval-renewal',
    party,
    intervalMs,
    isEventDriven: false,
    isIdle: () => view.preapprovals(party).length === 0,
    decide: async () =>
      decideRenewal(rule, {
        provider: party,
        preapprovals: view.preapprovals(party).map(readPreapproval),
        nowMicros: context.nowMicros(),
      }),
    toAct: ({ preapproval: { contractId }, newExpiresAtMicros }) => ({
      subject: contractId,
      priority: 'low',
      commands: () => [renewPreapprovalCommand(contractId, newExpiresAtMicros)],
    }),
  })
}

function readPreapproval({ contractId, payload }: Held<'preapproval'>): Preapproval {
  const { receiver, provider, expiresAt } = payload
  return { contractId, receiver, provider, expiresAtMicros: expiresAt }
}
