import type { Clock } from '../base/clock.ts'
import type { Db } from '../db/db.ts'
import { INT64_MAX } from '../values/value.ts'
import type { Contract } from './contract.ts'
import { selectActiveOf } from './contracts-store.ts'
import type { Draft } from './draft.ts'
import { choiceRefused, notEnoughTraffic } from './errors.ts'
import { type AmuletRulesPayload, amuletRules, feesOf } from './rules.ts'
import type { TemplateEntry } from './template.ts'
import { type MemberTrafficPayload, memberTraffic } from './traffic.ts'
import {
  availableOf,
  charge,
  costOf,
  firstAccount,
  refill,
  type TrafficAccount,
  type TrafficLimits,
  type TrafficSpent,
} from './traffic-account.ts'

/**
 * Every update that goes through the network's synchronizer costs traffic of the participant that
 * submits it. The account stands in the row of the newest update, so that it is stored with the very
 * update that is paid, by the same statement, and two processes that share a database cannot both
 * spend the same byte: of two that want the same offset one gets it.
 *
 * Free are acts of the governing party alone, which on a deployed network come from nodes whose traffic
 * is not limited; whatever goes through a synchronizer that the rules do not name; and everything while
 * there are no rules.
 */
export type TrafficControl = {
  /** Puts the draft on top of what the rules and the account stand at. */
  begin(draft: Draft): Promise<void>
  /** Takes the cost of an update from the draft's account; throws when it cannot be paid. */
  pay(draft: Draft, payment: Payment): Promise<void>
  /** The draft is stored. */
  keep(draft: Draft): void
  /** Another process has changed the ledger. */
  forget(): void
  /** How the member stands now; undefined while there are no rules. */
  status(account: TrafficAccount | undefined): Promise<TrafficStatus | undefined>
  /** The same as far as it is known without asking the store. */
  peek(account: TrafficAccount | undefined): TrafficStatus | undefined
}

export type TrafficOptions = {
  /** `PAR::` and the id of the participant. */
  memberId: string
  /** The party that governs the network: only its contracts count. */
  dso: string
  /** Hears of bytes that were paid, and of submissions that could not be. */
  onSpent?: (spent: TrafficSpent) => void
  onRefused?: () => void
}

export type Payment = {
  item: string
  /** Where the update is sequenced. */
  synchronizerId: string
  actAs: readonly string[]
  created: readonly Contract[]
  archived: readonly Contract[]
}

export type TrafficStatus = {
  memberId: string
  limits: TrafficLimits
  purchased: bigint
  consumed: bigint
  /** Bytes that may be used now. */
  available: { base: bigint; extra: bigint }
}

export type TrafficControlOptions = TrafficOptions & {
  db: Db
  clock: Clock
  /** The synchronizer of the network. */
  synchronizerId: string
  find(name: string): TemplateEntry
}

/** Rows of one step of a long read. */
const PAGE_ROWS = 500

export function createTrafficControl(options: TrafficControlOptions): TrafficControl {
  const { db, clock, memberId, dso, synchronizerId, find } = options
  let known: { limits: TrafficLimits | undefined } | undefined
  let isStale = false

  async function limitsNow(): Promise<TrafficLimits | undefined> {
    if (known !== undefined && !isStale) return known.limits
    const by = { party: dso, template: amuletRules.name, afterId: '', limit: PAGE_ROWS }
    const rules = (await selectActiveOf(db, by, find)).find(isRules)
    known = { limits: rules === undefined ? undefined : limitsOf(rules) }
    isStale = false
    return known.limits
  }

  const isRules = ({ entry, payload }: Contract) =>
    entry.template.name === amuletRules.name && (payload as AmuletRulesPayload).dso === dso

  function purchaseOf({ entry, payload }: Contract): bigint {
    if (entry.template.name !== memberTraffic.name) return 0n
    const bought = payload as MemberTrafficPayload
    const isOurs =
      bought.dso === dso && bought.memberId === memberId && bought.synchronizerId === synchronizerId
    return isOurs ? bought.totalPurchased : 0n
  }

  const sumOf = (contracts: readonly Contract[]) =>
    contracts.reduce((sum, contract) => sum + purchaseOf(contract), 0n)

  /** The member of a ledger that has kept no accounts so far. */
  async function openAccount(limits: TrafficLimits): Promise<TrafficAccount> {
    let purchased = 0n
    for (let afterId = ''; ; ) {
      const by = { party: dso, template: memberTraffic.name, afterId, limit: PAGE_ROWS }
      const page = await selectActiveOf(db, by, find)
      purchased += sumOf(page)
      if (page.length < PAGE_ROWS) break
      afterId = page.at(-1)?.contractId ?? ''
    }
    return firstAccount(limits, { purchased, nowMicros: clock.nowMicros() })
  }

  function statusOf(stored: TrafficAccount, limits: TrafficLimits): TrafficStatus {
    const account = refill(stored, limits, clock.nowMicros())
    const { purchased, consumed } = account
    return { memberId, limits, purchased, consumed, available: availableOf(account) }
  }

  const isFree = ({ actAs, synchronizerId: place }: Payment) =>
    place !== synchronizerId || actAs.every((party) => party === dso)

  return {
    async begin(draft) {
      draft.traffic.limits = await limitsNow()
    },
    async pay(draft, payment) {
      const { limits } = draft.traffic
      let account = draft.end.traffic
      const created = payment.created.filter(({ archivedOffset }) => archivedOffset === undefined)
      const bought = sumOf(created) - sumOf(payment.archived)
      if (limits !== undefined) {
        account = refill(account ?? (await openAccount(limits)), limits, clock.nowMicros())
        if (account.purchased + bought > INT64_MAX) {
          throw choiceRefused(
            `${memberId} would have more traffic than can be counted. Buy less of it.`,
          )
        }
        const cost = isFree(payment) ? 0n : costOf(BigInt(Buffer.byteLength(payment.item)), limits)
        const paid = charge(account, cost)
        if (paid === undefined) {
          options.onRefused?.()
          throw notEnoughTraffic({ memberId, cost, account, available: availableOf(account) })
        }
        const extra = paid.consumed - account.consumed
        draft.traffic.spent.extra += extra
        draft.traffic.spent.base += cost - extra
        account = paid
      }
      const rules = created.find(isRules)
      if (rules !== undefined || payment.archived.some(isRules)) {
        draft.traffic.limits = rules && limitsOf(rules)
        draft.traffic.isChanged = true
      }
      if (account === undefined) return
      const purchased = account.purchased + bought
      draft.end = { ...draft.end, traffic: { ...account, purchased } }
    },
    keep({ traffic }) {
      known = { limits: traffic.limits }
      // Which rules are the first is for the store to say.
      isStale = traffic.isChanged
      if (traffic.spent.base + traffic.spent.extra > 0n) options.onSpent?.(traffic.spent)
    },
    forget() {
      isStale = true
    },
    async status(stored) {
      const limits = await limitsNow()
      if (limits === undefined) return undefined
      return statusOf(stored ?? (await openAccount(limits)), limits)
    },
    peek(stored) {
      const limits = known?.limits
      return limits && stored && statusOf(stored, limits)
    },
  }
}

function limitsOf({ payload }: Contract): TrafficLimits {
  const { baseRateTrafficLimits, readVsWriteScalingFactor } = feesOf(payload as AmuletRulesPayload)
  return {
    burstAmount: baseRateTrafficLimits.burstAmount,
    burstWindowMicros: baseRateTrafficLimits.burstWindow.microseconds,
    readVsWriteScalingFactor,
  }
}
