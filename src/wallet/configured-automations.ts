import { type AutoAcceptRule, autoAcceptAutomation } from './auto-accept.ts'
import type { Automation, AutomationContext, AutomationName } from './automation.ts'
import type { IdleAutomation } from './automation-state.ts'
import { topUpAutomation } from './buy-top-ups.ts'
import { completionAutomation } from './complete-transfers.ts'
import { expiryAutomation } from './expire-offers.ts'
import { type RenewalRule, renewalAutomation } from './renew-preapprovals.ts'
import { type SweepRule, sweepAutomation } from './sweep.ts'
import type { TopUpRule } from './top-up.ts'

/** What the operator has configured, and which automations that makes for the wallets of this node. */

export type AutomationRules = {
  sweeps: readonly SweepRule[]
  autoAccept: readonly AutoAcceptRule[]
  /** Undefined buys nothing. */
  topUp: TopUpRule | undefined
  renewal: RenewalRule
  pollingIntervalMs: number
}

export type ConfiguredAutomations = {
  /** Those of the wallets that are here now. */
  automations(): Automation[]
  /** Those that the configuration names and no wallet here has. */
  idle(): IdleAutomation[]
}

/** Each automation is made once, so that a wallet that is looked at again keeps its own. */
export function configureAutomations(
  context: AutomationContext,
  rules: AutomationRules,
): ConfiguredAutomations {
  const made = new Map<string, Automation>()
  const { pollingIntervalMs: intervalMs, topUp } = rules
  const isHere = (party: string) => context.view.parties.includes(party)

  function make(key: string, create: () => Automation): Automation {
    const automation = made.get(key) ?? create()
    made.set(key, automation)
    return automation
  }

  return {
    automations: () => [
      ...(topUp === undefined ? [] : [make('top-up', () => topUpAutomation(context, topUp))]),
      ...rules.sweeps
        .filter(({ sender }) => isHere(sender))
        .map((rule) =>
          make(`sweep/${rule.sender}`, () => sweepAutomation(context, rule, intervalMs)),
        ),
      ...rules.autoAccept
        .filter(({ receiver }) => isHere(receiver))
        .map((rule) =>
          make(`auto-accept/${rule.receiver}`, () =>
            autoAcceptAutomation(context, { rule, topUp, intervalMs }),
          ),
        ),
      ...context.view.parties.flatMap((party) => [
        make(`completion/${party}`, () => completionAutomation(context, party, intervalMs)),
        make(`expiry/${party}`, () => expiryAutomation(context, party, intervalMs)),
      ]),
      make('renewal', () => renewalAutomation(context, rules.renewal, intervalMs)),
    ],
    idle: () => [
      ...rules.sweeps
        .filter(({ sender }) => !isHere(sender))
        .map(({ sender }) => ({
          name: 'sweep' as const,
          party: sender,
          why: strangerSentence('walletSweep'),
          isWarning: true,
        })),
      ...rules.autoAccept
        .filter(({ receiver }) => !isHere(receiver))
        .map(({ receiver }) => ({
          name: 'auto-accept' as const,
          party: receiver,
          why: strangerSentence('autoAcceptTransfers'),
          isWarning: true,
        })),
      ...(topUp === undefined
        ? [{ name: 'top-up' as const, party: context.operator, why: NO_TOP_UP, isWarning: false }]
        : []),
    ],
  }
}

/** Without a wallet nothing runs; what the configuration names is a warning. */
export function idleWithoutWallet(
  rules: AutomationRules,
  { operator, why }: { operator: string; why: string },
): IdleAutomation[] {
  const idle = (name: AutomationName, party: string) => ({ name, party, why, isWarning: true })
  return [
    ...rules.sweeps.map(({ sender }) => idle('sweep', sender)),
    ...rules.autoAccept.map(({ receiver }) => idle('auto-accept', receiver)),
    ...(rules.topUp === undefined ? [] : [idle('top-up', operator)]),
  ]
}

const NO_TOP_UP = 'topup is not configured, not enabled, or its targetThroughput is 0'

function strangerSentence(key: string): string {
  return `${key} names a party that has no wallet on this node; compare it with the party ids that the wallet shows`
}
