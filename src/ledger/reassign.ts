import { createHash } from 'node:crypto'
import { type Contract, isStakeholder, stakeholdersOf } from './contract.ts'
import { type PendingReassignment, selectReassignment } from './contracts-store.ts'
import { addUpdate, type Draft } from './draft.ts'
import {
  contractArchived,
  contractInFlight,
  contractNotFound,
  reassignmentRefused,
  unknownSynchronizer,
} from './errors.ts'
import { assignmentItem, unassignmentItem } from './item.ts'
import type { SubmitContext } from './submit.ts'
import { updateIdOf } from './update-id.ts'
import type { CommandMark, LedgerUpdate } from './updates-store.ts'

/** Moves a contract between synchronizers, in two steps that each make an update of their own. */
export type Reassignment = {
  submitter: string
  commandId?: string
  userId?: string
  step:
    | { kind: 'unassign'; contractId: string; source: string; target: string }
    | { kind: 'assign'; unassignId: string }
}

export async function runReassignment(
  draft: Draft,
  reassignment: Reassignment,
  context: SubmitContext,
): Promise<LedgerUpdate> {
  const { submitter, step } = reassignment
  const pending =
    step.kind === 'unassign'
      ? await planUnassignment(draft, { ...step, submitter }, context)
      : await findPending(draft, step.unassignId, context)
  const contract = await requireOwn(draft, pending.contractId, submitter, context)
  const isUnassignment = step.kind === 'unassign'
  const recordTime = context.nextRecordTime(draft)
  const offset = draft.end.lastOffset + 1n
  const updateId = updateIdOf(draft.end.nonce, offset, recordTime)
  const head = { updateId, migrationId: context.migrationId, recordTime }
  const parties = stakeholdersOf(contract)
  const update: LedgerUpdate = {
    offset,
    recordTime,
    updateId,
    item: (isUnassignment ? unassignmentItem : assignmentItem)(
      { submitter, ...pending },
      contract,
      head,
    ),
    witnesses: { parties, events: [parties.map((_, place) => place)] },
    command: reassignmentMarkOf(reassignment),
  }
  await context.traffic?.pay(draft, {
    item: update.item,
    synchronizerId: isUnassignment ? pending.source : pending.target,
    actAs: [submitter],
    created: [],
    archived: [],
  })
  draft.contracts.set(contract.contractId, {
    ...contract,
    synchronizerId: isUnassignment ? undefined : pending.target,
    reassignmentCounter: pending.counter,
  })
  if (isUnassignment) draft.unassigned.set(pending.unassignId, { ...pending, offset })
  else draft.assigned.set(pending.unassignId, offset)
  addUpdate(draft, update)
  return update
}

async function planUnassignment(
  draft: Draft,
  step: { contractId: string; source: string; target: string; submitter: string },
  context: SubmitContext,
): Promise<PendingReassignment> {
  const { contractId, source, target } = step
  for (const id of [source, target]) {
    if (!context.synchronizers.includes(id)) throw unknownSynchronizer(id)
  }
  const contract = await requireOwn(draft, contractId, step.submitter, context)
  if (contract.synchronizerId === undefined) throw contractInFlight(contractId)
  if (contract.synchronizerId !== source) {
    throw reassignmentRefused(`Contract ${contractId} is not on the synchronizer ${source}.`)
  }
  if (source === target) {
    throw reassignmentRefused('A contract is reassigned to another synchronizer than its own.')
  }
  const counter = contract.reassignmentCounter + 1n
  const unassignId = `00${createHash('sha256').update(`unassign/${contractId}/${counter}`).digest('hex')}`
  return { unassignId, contractId, source, target, counter }
}

async function findPending(
  draft: Draft,
  unassignId: string,
  { db }: SubmitContext,
): Promise<PendingReassignment> {
  const pending = draft.assigned.has(unassignId)
    ? undefined
    : (draft.unassigned.get(unassignId) ?? (await selectReassignment(db, unassignId)))
  if (pending === undefined) {
    throw reassignmentRefused(`No contract is on its way under the reassignment id ${unassignId}.`)
  }
  return pending
}

async function requireOwn(
  draft: Draft,
  contractId: string,
  submitter: string,
  context: SubmitContext,
): Promise<Contract> {
  const contract = await context.lookup(draft, contractId)
  if (contract === undefined || !isStakeholder(contract, new Set([submitter]))) {
    throw contractNotFound(contractId)
  }
  if (contract.archivedOffset !== undefined) throw contractArchived(contractId)
  return contract
}

export function reassignmentMarkOf({
  submitter,
  commandId = '',
  userId = '',
}: Reassignment): CommandMark {
  return { changeId: undefined, commandId, userId, actAs: [submitter], submissionId: '' }
}
