import type { Act, ActDone, Acts } from './acts.ts'
import type { PaymentContext } from './commands.ts'
import type { Decision, Wait } from './decision.ts'
import type { Participant } from './participant.ts'
import type { TrafficTerms } from './top-up.ts'
import type { Turns } from './turns.ts'
import type { View } from './view.ts'

/** What an automation is: a pure decision about facts, and the act that it becomes. */

export const AUTOMATIONS = [
  'sweep',
  'auto-accept',
  'completion',
  'expiry',
  'top-up',
  'preapproval-renewal',
] as const
export type AutomationName = (typeof AUTOMATIONS)[number]

export type Automation = {
  readonly name: AutomationName
  /** Whose wallet it works for. */
  readonly party: string
  readonly intervalMs: number
  /** Looks whenever the wallet has changed, and not only at its interval. */
  readonly isEventDriven: boolean
  /** Whether the wallet holds nothing that it could work on; costs nothing to ask. */
  isIdle(): boolean
  /** What it would do now; nothing is done. */
  decide(): Promise<Decision<unknown>>
  /** Decides and does what is due, in the wallet's turn. */
  run(): Promise<RunOutcome>
}

export type RunOutcome = Wait | Acted

export type Acted = {
  kind: 'acted'
  done: ActDone
  because: string
  /** What was decided; undefined for a step on the way there. */
  plan: unknown
}

/** What automations stand on. */
export type AutomationContext = {
  participant: Pick<Participant, 'ledgerEnd'>
  view: View
  network: AutomationNetwork
  acts: Acts
  turns: Turns
  /** The party of the node's operator. */
  operator: string
  nowMicros(): bigint
}

/** The public facts of the network, from a scan. */
export type AutomationNetwork = {
  terms(): Promise<NetworkTerms>
  /** The preapproval of a receiver; undefined when there is none. */
  preapprovalOf(receiver: string): Promise<string | undefined>
  /** Bought traffic of this node that is left; undefined when the network does not know. */
  extraTrafficRemainder(): Promise<bigint | undefined>
  /** Who needs traffic, and where. */
  member(): Promise<NetworkMember>
}

export type NetworkTerms = { dso: string; payment: PaymentContext; traffic: TrafficTerms }
export type NetworkMember = { memberId: string; synchronizerId: string; migrationId: bigint }

export type AutomationParts<Plan> = Pick<
  Automation,
  'name' | 'party' | 'intervalMs' | 'isEventDriven'
> & {
  /** Never, unless given. */
  isIdle?(): boolean
  decide(): Promise<Decision<Plan>>
  toAct(plan: Plan): Promise<ActParts> | ActParts
}

export type ActParts = Pick<Act, 'subject' | 'priority' | 'commands'> & {
  /** For a step on the way to what the decision says. */
  what?: string
  /** The automation's party unless given. */
  actAs?: readonly string[]
}

/** The view follows the ledger within milliseconds; longer means that it stands still. */
const VIEW_WAIT_MS = 5_000

/** The view does not hold what the ledger does, so nothing can be decided. */
export class ViewBehind extends Error {
  override name = 'ViewBehind'
}

export function createAutomation<Plan>(
  context: Pick<AutomationContext, 'acts' | 'turns' | 'view' | 'participant'>,
  parts: AutomationParts<Plan>,
): Automation {
  const { acts, turns } = context
  const { name, party, intervalMs, isEventDriven } = parts

  const isIdle = () => parts.isIdle?.() ?? false

  async function decide(): Promise<Decision<Plan>> {
    // With many wallets most have nothing to do, and the ledger need not be asked for them.
    if (!isIdle()) await requireCurrentView(context)
    return parts.decide()
  }

  return {
    name,
    party,
    intervalMs,
    isEventDriven,
    isIdle,
    decide,
    // The decision is made in the turn as well: the payment before it may have changed the facts.
    run: () =>
      turns.take(party, async () => {
        await acts.review({ automation: name, party })
        const decision = await decide()
        if (decision.kind === 'wait') return decision
        const { because } = decision
        const of = await parts.toAct(decision.plan)
        const about = { automation: name, party, what: decision.what, because, actAs: [party] }
        const done = await acts.perform({ ...about, ...of })
        const plan = of.what === undefined ? decision.plan : undefined
        return { kind: 'acted', done, because, plan }
      }),
  }
}

/** What was done a moment ago is among the facts, so that it is not done again. */
async function requireCurrentView({
  view,
  participant,
}: Pick<AutomationContext, 'view' | 'participant'>): Promise<void> {
  const end = await participant.ledgerEnd()
  await view.waitFor(end, AbortSignal.timeout(VIEW_WAIT_MS))
  if (view.end < end) {
    throw new ViewBehind(
      view.fault() ??
        `The wallets stand at offset ${view.end} of the ledger, which ends at ${end}.`,
    )
  }
}
