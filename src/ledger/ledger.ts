import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Db } from '../db/db.ts'
import { type Instant, microsOf } from '../values/instant.ts'
import { createCommitter } from './commit-batch.ts'
import type { Contract } from './contract.ts'
import { selectContract } from './contracts-store.ts'
import { createLedgerEnd } from './ledger-end.ts'
import { type ActiveQuery, createLedgerReader } from './ledger-reading.ts'
import { selectPruned } from './prune-store.ts'
import { type Reassignment, reassignmentMarkOf, runReassignment } from './reassign.ts'
import { createSubmissionQueue, type SubmissionEnd } from './submission-queue.ts'
import { markOf, runSubmission, type Submission } from './submit.ts'
import type { Template, TemplateEntry } from './template.ts'
import { indexTemplates } from './template-index.ts'
import { createTrafficControl, type TrafficOptions, type TrafficStatus } from './traffic-control.ts'
import {
  insertIdentity,
  type LedgerEntry,
  type LedgerUpdate,
  offsetAtTime,
  readState,
  setSecondSynchronizer,
} from './updates-store.ts'

export type LedgerOptions = {
  db: Db
  clock: Clock
  migrationId: bigint
  /** The synchronizer where everything starts. */
  synchronizerId: string
  templates: readonly TemplateEntry[]
  /** How long command ids are remembered. */
  deduplicationMs: number
  /** Record times are later than this: where the history already stands. */
  recordTimeFloor?: () => Instant | undefined
  /** Switches the second synchronizer on, for good. */
  secondSynchronizerId?: string | undefined
  /** Makes the ids of a new ledger the same each time. */
  seed?: string | undefined
  events?: LedgerEvents
  /** Whose traffic pays for updates, and who governs its price; without it they are free. */
  traffic?: TrafficOptions
}

/** How a submission ended. */
export type SubmissionOutcome = SubmissionEnd

/** Told what goes on, for those who measure. */
export type LedgerEvents = {
  /** From the call to the durable end. */
  onSettled?(outcome: SubmissionOutcome, seconds: number): void
  /** So many submissions have shared a commit. */
  onCommit?(submissions: number): void
}

/** The embedded ledger of a participant. */
export type Ledger = {
  readonly db: Db
  readonly clock: Clock
  readonly migrationId: bigint
  readonly synchronizers: readonly string[]
  readonly templates: readonly TemplateEntry[]
  /** The last offset that this process knows to be committed. */
  readonly end: bigint
  /** When that became known, on the clock of `performance.now()`. */
  readonly movedAt: number
  /** So many contracts are active at the end. */
  readonly activeContracts: number
  submit(submission: Submission): Promise<LedgerUpdate>
  reassign(reassignment: Reassignment): Promise<LedgerUpdate>
  entryOf(template: { readonly name: string }): TemplateEntry
  /** `#package-name:Module:Entity`, or with the package id. */
  entry(templateId: string): TemplateEntry
  /** The full id of a known interface, named like a template. */
  interfaceId(id: string): string | undefined
  contract(contractId: string): Promise<Contract | undefined>
  /** Active contracts of a template in which the party has a stake. */
  contractsOf<P>(template: Template<P>, party: string): Promise<TypedContract<P>[]>
  /** Updates up to this offset are gone. Whoever asks for what came before is refused. */
  pruned(): Promise<bigint>
  /** Contracts that were active at an offset and in which one of the parties has a stake. */
  activeAt(query: ActiveQuery): AsyncGenerator<Contract[]>
  updatesAfter(offset: bigint, limit: number): Promise<LedgerUpdate[]>
  /** Every offset's: updates, and commands that were refused. */
  entriesAfter(offset: bigint, limit: number): Promise<LedgerEntry[]>
  update(updateId: string): Promise<LedgerUpdate | undefined>
  offsetAt(recordTime: Instant): Promise<bigint>
  /** How the participant's traffic stands; undefined where it costs nothing. */
  traffic(): Promise<TrafficStatus | undefined>
  /** The same as far as this process knows it. */
  peekTraffic(): TrafficStatus | undefined
  /** Asks the store for the end, which another process may have moved. */
  refresh(): Promise<bigint>
  /** Resolves when the end lies after the offset, or when the signal aborts. */
  waitAfter(offset: bigint, signal: AbortSignal): Promise<void>
  /** The time of an update that would be made now: the clock's, but never before the newest update. */
  nowMicros(): bigint
  /** Whether nothing will come any more. */
  readonly isClosed: boolean
  /** Waits for what is under way; refuses what comes later. */
  close(): Promise<void>
}

export type TypedContract<P> = Omit<Contract, 'payload'> & { payload: P }

/** Puts the parts together: the end, the queue, the commits, the reads. */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const { db, clock, migrationId, events } = options
  await insertIdentity(db, {
    nonce: options.seed ?? randomBytes(16).toString('hex'),
    secondSynchronizerId: options.secondSynchronizerId,
    traffic: undefined,
  })
  if (options.secondSynchronizerId !== undefined) {
    await setSecondSynchronizer(db, options.secondSynchronizerId)
  }
  const end = createLedgerEnd(await readState(db))
  const { synchronizerId } = options
  const { secondSynchronizerId } = end.state
  const synchronizers = [synchronizerId]
  if (secondSynchronizerId !== undefined) synchronizers.push(secondSynchronizerId)
  const { find, entry, interfaceId } = indexTemplates(options.templates)
  const traffic =
    options.traffic && createTrafficControl({ ...options.traffic, db, clock, synchronizerId, find })
  const committer = createCommitter({
    ...options,
    end,
    synchronizers,
    find,
    traffic,
    onCommit: events?.onCommit,
  })
  const queue = createSubmissionQueue({
    endOffset: () => end.state.lastOffset,
    commit: committer.commit,
    onSettled: events?.onSettled,
  })

  async function refresh(): Promise<bigint> {
    // On SQLite this process is the only one.
    if (db.engine === 'postgres' && !queue.isDraining) await committer.reload()
    return end.state.lastOffset
  }

  const reader = createLedgerReader({ db, end, find, refresh })
  return {
    db,
    clock,
    migrationId,
    synchronizers,
    templates: options.templates,
    get end() {
      return end.state.lastOffset
    },
    get movedAt() {
      return end.movedAt
    },
    get activeContracts() {
      return Number(end.state.activeContracts)
    },
    submit: (submission) =>
      queue.submit({
        run: (draft, context) => runSubmission(draft, submission, context),
        mark: () => markOf(submission),
      }),
    reassign: (reassignment) =>
      queue.submit({
        run: (draft, context) => runReassignment(draft, reassignment, context),
        mark: () => reassignmentMarkOf(reassignment),
      }),
    entryOf: ({ name }) => find(name),
    entry,
    interfaceId,
    contract: (contractId) => selectContract(db, contractId, find),
    async contractsOf<P>(template: Template<P>, party: string) {
      return (await reader.contractsOf(template.name, party)) as TypedContract<P>[]
    },
    pruned: () => selectPruned(db),
    activeAt: reader.activeAt,
    updatesAfter: reader.updatesAfter,
    entriesAfter: reader.entriesAfter,
    update: reader.update,
    async traffic() {
      await refresh()
      return traffic?.status(end.state.traffic)
    },
    peekTraffic: () => traffic?.peek(end.state.traffic),
    offsetAt: (recordTime) => offsetAtTime(db, recordTime),
    refresh,
    waitAfter: end.waitAfter,
    nowMicros() {
      const [now, newest] = [clock.nowMicros(), microsOf(end.state.lastRecordTime)]
      return now > newest ? now : newest
    },
    get isClosed() {
      return end.isClosed
    },
    async close() {
      await queue.close()
      end.close()
    },
  }
}
