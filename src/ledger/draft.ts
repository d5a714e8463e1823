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
  type PendingReassignment,
} from './contracts-store.ts'
import { runTogether } from './statements-store.ts'
import { insertUpdates, type LedgerState, type LedgerUpdate } from './updates-store.ts'

/** What a batch of submissions will change, before it is stored in one transaction. */
export type Draft = {
  /** Where the ledger ends with what the draft holds. */
  end: LedgerState
  updates: LedgerUpdate[]
  /** Contracts that are new or changed, as they will be. */
  contracts: Map<string, Contract>
  /** Those of them that the store does not have yet. */
  isNew: Set<string>
  unassigned: Map<string, PendingReassignment>
  assigned: Map<string, bigint>
}

export function newDraft(from: LedgerState): Draft {
  return {
    end: from,
    updates: [],
    contracts: new Map(),
    isNew: new Set(),
    unassigned: new Map(),
    assigned: new Map(),
  }
}

/** Adds an update; the ledger's end moves with it. */
export function addUpdate(draft: Draft, update: LedgerUpdate): void {
  draft.updates.push(update)
  draft.end = { ...draft.end, lastOffset: update.offset, lastRecordTime: update.recordTime }
}

/** Stores the draft whole or not at all; durable when the promise resolves. */
export async function commitDraft(db: Db, draft: Draft): Promise<void> {
  const contracts = [...draft.contracts.values()]
  const isNew = ({ contractId }: Contract) => draft.isNew.has(contractId)
  const added = contracts.filter(isNew)
  const changed = contracts.filter((contract) => !isNew(contract))
  const archived = changed.filter(({ archivedOffset }) => archivedOffset !== undefined)
  const moved = changed.filter(({ archivedOffset }) => archivedOffset === undefined)
  const live = added.filter(({ archivedOffset }) => archivedOffset === undefined)
  const statements = [
    // First, since its offsets decide whether another process was quicker.
    ...insertUpdates(draft.updates),
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
}
