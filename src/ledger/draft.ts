import type { Db } from '../db/db.ts'
import type { Contract } from './contract.ts'
import {
  deleteStakeholders,
  insertContracts,
  insertReassignment,
  insertStakeholders,
  markArchived,
  markAssigned,
  moveContract,
  type NewReassignment,
} from './contracts-store.ts'
import { runTogether } from './statements-store.ts'
import type { TrafficLimits, TrafficSpent } from './traffic-account.ts'
import {
  insertEntries,
  type LedgerState,
  type LedgerUpdate,
  type Refusal,
} from './updates-store.ts'

/** What a batch of submissions will change, before it is stored in one transaction. */
export type Draft = {
  /** Where the ledger ends with what the draft holds. */
  end: LedgerState
  updates: LedgerUpdate[]
  /** Commands that were refused, which their submitters hear of among the completions. */
  refusals: Refusal[]
  /** Contracts that are new or changed, as they will be. */
  contracts: Map<string, Contract>
  /** Those of them that the store does not have yet. */
  isNew: Set<string>
  unassigned: Map<string, NewReassignment>
  assigned: Map<string, bigint>
  traffic: DraftTraffic
}

/** What the rules say about traffic with what the draft holds; the account itself stands in `end`. */
export type DraftTraffic = {
  limits: TrafficLimits | undefined
  /** Whether the draft changes the rules. */
  isChanged: boolean
  spent: TrafficSpent
}

export function newDraft(from: LedgerState): Draft {
  return {
    end: from,
    updates: [],
    refusals: [],
    contracts: new Map(),
    isNew: new Set(),
    unassigned: new Map(),
    assigned: new Map(),
    traffic: { limits: undefined, isChanged: false, spent: { base: 0n, extra: 0n } },
  }
}

/** Adds an update; the ledger's end moves with it. */
export function addUpdate(draft: Draft, update: LedgerUpdate): void {
  draft.updates.push(update)
  draft.end = { ...draft.end, lastOffset: update.offset, lastRecordTime: update.recordTime }
}

/** Adds a refused command: it takes an offset, and nothing else. */
export function addRefusal(
  draft: Draft,
  refusal: Pick<Refusal, 'recordTime' | 'command' | 'status'>,
): void {
  const offset = draft.end.lastOffset + 1n
  draft.refusals.push({ ...refusal, offset })
  draft.end = { ...draft.end, lastOffset: offset, lastRecordTime: refusal.recordTime }
}

/** Stores the draft whole or not at all; durable when the promise resolves to the ledger's new end. */
export async function commitDraft(db: Db, draft: Draft): Promise<LedgerState> {
  const contracts = [...draft.contracts.values()]
  const isNew = ({ contractId }: Contract) => draft.isNew.has(contractId)
  const added = contracts.filter(isNew)
  const changed = contracts.filter((contract) => !isNew(contract))
  const archived = changed.filter(({ archivedOffset }) => archivedOffset !== undefined)
  const moved = changed.filter(({ archivedOffset }) => archivedOffset === undefined)
  const live = added.filter(({ archivedOffset }) => archivedOffset === undefined)
  const activeContracts = draft.end.activeContracts + BigInt(live.length) - BigInt(archived.length)
  const end = { ...draft.end, activeContracts }
  const statements = [
    // First, since its offsets decide whether another process was quicker.
    ...insertEntries([...draft.updates, ...draft.refusals], end),
    ...insertContracts(added),
    ...insertStakeholders(live),
    ...deleteStakeholders(archived),
    ...markArchived(
      archived.map(({ contractId, archivedOffset }) => ({
        contractId,
        offset: archivedOffset as bigint,
      })),
    ),
  ]
  const others = moved.length + draft.unassigned.size + draft.assigned.size
  if (others === 0) {
    await runTogether(db, statements)
    return end
  }
  await db.transaction(async (tx) => {
    await Promise.all([
      runTogether(tx, statements),
      ...moved.map(({ contractId, synchronizerId, reassignmentCounter: counter }) =>
        moveContract(tx, { contractId, synchronizerId, counter }),
      ),
      ...[...draft.unassigned.values()].map((pending) => insertReassignment(tx, pending)),
      ...[...draft.assigned].map(([unassignId, offset]) => markAssigned(tx, unassignId, offset)),
    ])
  })
  return end
}
