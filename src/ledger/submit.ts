import { hash, randomUUID } from 'node:crypto'
import type { Db } from '../db/db.ts'
import { selectParties } from '../users/parties-store.ts'
import { type Instant, microsOf } from '../values/instant.ts'
import { type Contract, stakeholdersOf } from './contract.ts'
import { addUpdate, type Draft } from './draft.ts'
import { duplicateCommand, unknownInformees, unknownSynchronizer } from './errors.ts'
import { type Command, executeCommands } from './execute.ts'
import { transactionItem, witnessesOf } from './item.ts'
import type { Template, TemplateEntry } from './template.ts'
import type { TrafficControl } from './traffic-control.ts'
import { updateIdOf } from './update-id.ts'
import { type CommandMark, findCommand, type LedgerUpdate } from './updates-store.ts'

/** One transaction that somebody wants: several commands, all or none. */
export type Submission = {
  commands: readonly Command[]
  actAs: readonly string[]
  readAs?: readonly string[]
  /** Of two submissions of the same user and parties with one id, one is accepted. */
  commandId?: string
  userId?: string
  submissionId?: string
  workflowId?: string
  /** How long the command id is remembered; the ledger's own period unless given. */
  deduplicationMicros?: bigint
  disclosed?: readonly string[]
  synchronizerId?: string
}

/** What a submission stands on while its batch is made. */
export type SubmitContext = {
  db: Db
  migrationId: bigint
  synchronizers: readonly string[]
  deduplicationMicros: bigint
  /** The ledger's end when the submission came. */
  startOffset: bigint
  lookup(draft: Draft, contractId: string): Promise<Contract | undefined>
  nextRecordTime(draft: Draft): Instant
  entryOf(template: Template<unknown>): TemplateEntry
  knownParties: Set<string>
  /** Undefined where traffic costs nothing. */
  traffic: TrafficControl | undefined
}

/** Runs the submission on top of the draft and adds its update to it; throws what refuses it. */
export async function runSubmission(
  draft: Draft,
  submission: Submission,
  context: SubmitContext,
): Promise<LedgerUpdate> {
  const { synchronizerId } = submission
  if (synchronizerId !== undefined && !context.synchronizers.includes(synchronizerId)) {
    throw unknownSynchronizer(synchronizerId)
  }
  const recordTime = context.nextRecordTime(draft)
  const command = markOf(submission)
  const offset = draft.end.lastOffset + 1n
  const updateId = updateIdOf(draft.end.nonce, offset, recordTime)
  const running = executeCommands(submission.commands, {
    actAs: submission.actAs,
    readAs: submission.readAs ?? [],
    disclosed: submission.disclosed ?? [],
    nowMicros: microsOf(recordTime),
    effectiveAt: recordTime,
    offset,
    updateId,
    wantedSynchronizerId: synchronizerId,
    defaultSynchronizerId: context.synchronizers[0] as string,
    lookup: (contractId) => context.lookup(draft, contractId),
    startOffset: context.startOffset,
    entryOf: context.entryOf,
  })
  // The store is asked while the commands run. A repeated command is told so even when it fails,
  // which it does as a rule: the contracts that it wants are gone.
  const asked = refuseRepeated(draft, { command, recordTime, submission }, context)
  const [fresh, executed] = await Promise.allSettled([asked, running])
  if (fresh.status === 'rejected') throw fresh.reason
  if (executed.status === 'rejected') throw executed.reason
  const execution = executed.value
  await requireParties(execution.created.flatMap(stakeholdersOf), context)
  const head = { updateId, migrationId: context.migrationId, recordTime }
  const update: LedgerUpdate = {
    offset,
    recordTime,
    updateId,
    item: transactionItem(execution, {
      ...head,
      workflowId: submission.workflowId ?? '',
      effectiveAt: recordTime,
    }),
    witnesses: witnessesOf(execution),
    command,
  }
  const { actAs } = submission
  // Last, since what is paid is not given back.
  await context.traffic?.pay(draft, { ...execution, item: update.item, actAs })
  for (const contract of execution.created) {
    draft.contracts.set(contract.contractId, contract)
    draft.isNew.add(contract.contractId)
  }
  for (const contract of execution.archived) {
    draft.contracts.set(contract.contractId, { ...contract, archivedOffset: offset })
  }
  addUpdate(draft, update)
  return update
}

/** Every stakeholder of a new contract must be a party of this ledger. */
async function requireParties(parties: string[], context: SubmitContext): Promise<void> {
  const { knownParties } = context
  const asked = [...new Set(parties)].filter((party) => !knownParties.has(party))
  if (asked.length === 0) return
  for (const { party } of await selectParties(context.db, asked)) knownParties.add(party)
  const unknown = asked.filter((party) => !knownParties.has(party))
  if (unknown.length > 0) throw unknownInformees(unknown)
}

/** What is remembered of the command. */
export function markOf(submission: Submission): CommandMark {
  const { commandId = '', userId = '', actAs } = submission
  const parties = [...new Set(actAs)].sort()
  const changeId =
    commandId === '' ? undefined : hash('sha256', JSON.stringify([userId, parties, commandId]))
  const submissionId = submission.submissionId || (commandId === '' ? '' : randomUUID())
  return { changeId, commandId, userId, actAs: parties, submissionId }
}

async function refuseRepeated(
  draft: Draft,
  of: { command: CommandMark; recordTime: Instant; submission: Submission },
  { db, deduplicationMicros }: SubmitContext,
): Promise<void> {
  const { changeId, commandId } = of.command
  if (changeId === undefined) return
  const drafted = draft.updates.find(({ command }) => command.changeId === changeId)
  const earlier =
    drafted === undefined
      ? await findCommand(db, changeId)
      : { ...drafted, submissionId: drafted.command.submissionId }
  if (earlier === undefined) return
  const period = of.submission.deduplicationMicros ?? deduplicationMicros
  if (microsOf(earlier.recordTime) + period <= microsOf(of.recordTime)) return
  throw duplicateCommand(commandId, earlier)
}
