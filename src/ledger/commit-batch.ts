import type { Clock } from '../base/clock.ts'
import type { Db } from '../db/db.ts'
import { grpcStatusOf, LedgerError } from '../http/ledger-error.ts'
import { INSTANT_MIN, type Instant, instantFromMicros, microsOf } from '../values/instant.ts'
import type { Contract } from './contract.ts'
import { type ContractCache, createContractCache } from './contract-cache.ts'
import { selectContract } from './contracts-store.ts'
import { addRefusal, commitDraft, type Draft, newDraft } from './draft.ts'
import { ledgerBusy } from './errors.ts'
import type { LedgerEnd } from './ledger-end.ts'
import type { Job, Outcome } from './submission-queue.ts'
import type { SubmitContext } from './submit.ts'
import type { TemplateEntry } from './template.ts'
import type { TrafficControl } from './traffic-control.ts'
import { type LedgerState, readState } from './updates-store.ts'

export type CommitterOptions = {
  db: Db
  clock: Clock
  end: LedgerEnd
  migrationId: bigint
  synchronizers: readonly string[]
  find(name: string): TemplateEntry
  deduplicationMs: number
  recordTimeFloor?: (() => Instant | undefined) | undefined
  traffic: TrafficControl | undefined
  /** So many submissions have shared a commit. */
  onCommit?: ((submissions: number) => void) | undefined
}

export type Committer = {
  /** Runs the jobs one after the other on top of the end, and stores what they did together. */
  commit(batch: readonly Job[]): Promise<Outcome[]>
  /** Asks the store for the end, which another process may have moved. */
  reload(): Promise<void>
}

/** Other processes may move the end again and again; who loses this often gives way. */
const ATTEMPTS_MAX = 50

export function createCommitter(options: CommitterOptions): Committer {
  const { db, end, find, traffic } = options
  const cache = createContractCache()
  const knownParties = new Set<string>()
  const nextRecordTime = (draft: Draft) => recordTimeAfter(draft, options)
  const lookup = (draft: Draft, contractId: string) =>
    lookUp({ db, end, cache, find }, draft, contractId)
  let isCurrent = true

  function contextOf({ startOffset }: Job): SubmitContext {
    return {
      db,
      migrationId: options.migrationId,
      synchronizers: options.synchronizers,
      deduplicationMicros: BigInt(options.deduplicationMs) * 1000n,
      startOffset,
      lookup,
      nextRecordTime,
      entryOf: (template) => find(template.name),
      knownParties,
      traffic,
    }
  }

  async function tryJob(job: Job, draft: Draft): Promise<Outcome> {
    try {
      return { job, update: await job.run(draft, contextOf(job)) }
    } catch (error) {
      noteRefusal(job, draft, error)
      return { job, error }
    }
  }

  /** Who named a command hears of its refusal among the completions; a fault of ours is none. */
  function noteRefusal(job: Job, draft: Draft, error: unknown): void {
    const command = job.mark()
    if (command.commandId === '' || !(error instanceof LedgerError)) return
    const recordTime = nextRecordTime(draft)
    addRefusal(draft, { recordTime, command, status: grpcStatusOf(error) })
  }

  async function reload(): Promise<void> {
    const stored = await readState(db)
    // A commit of our own may have overtaken the question.
    if (stored.lastOffset > end.state.lastOffset) {
      cache.clear()
      traffic?.forget()
      end.move(stored)
    }
    isCurrent = true
  }

  async function commit(batch: readonly Job[]): Promise<Outcome[]> {
    let conflict: unknown
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (!isCurrent) await reload()
      const draft = newDraft(end.state)
      await traffic?.begin(draft)
      const outcomes: Outcome[] = []
      for (const job of batch) outcomes.push(await tryJob(job, draft))
      if (draft.end === end.state) return outcomes
      // A commit whose answer is lost may have happened: look again before the next one.
      isCurrent = false
      let moved: LedgerState
      try {
        moved = await commitDraft(db, draft)
      } catch (error) {
        if (!isOffsetTaken(error)) throw error
        conflict = error
        continue
      }
      for (const contract of draft.contracts.values()) cache.remember(contract)
      end.move(moved)
      options.onCommit?.(batch.length)
      traffic?.keep(draft)
      isCurrent = true
      return outcomes
    }
    throw conflict ?? ledgerBusy()
  }

  return { commit, reload }
}

async function lookUp(
  of: { db: Db; end: LedgerEnd; cache: ContractCache; find(name: string): TemplateEntry },
  draft: Draft,
  contractId: string,
): Promise<Contract | undefined> {
  const { db, end, cache, find } = of
  const known = draft.contracts.get(contractId) ?? cache.get(contractId)
  if (known !== undefined) return known
  const before = end.state
  const contract = await selectContract(db, contractId, find)
  // What was read while the end moved may be out of date.
  if (contract !== undefined && end.state === before) cache.remember(contract)
  return contract
}

/** Strictly rising, and at the clock's time unless that stands still or was set back. */
function recordTimeAfter(
  draft: Draft,
  { clock, recordTimeFloor }: Pick<CommitterOptions, 'clock' | 'recordTimeFloor'>,
): Instant {
  const floor = recordTimeFloor?.() ?? INSTANT_MIN
  const least = laterOf(microsOf(draft.end.lastRecordTime), microsOf(floor)) + 1n
  const recordTime = instantFromMicros(laterOf(clock.nowMicros(), least))
  if (recordTime === undefined) throw new RangeError('The clock is beyond the year 9999.')
  return recordTime
}

function laterOf(a: bigint, b: bigint): bigint {
  if (a > b) return a
  return b
}

/** Two processes that take the same offset: the primary key lets one of them through. */
function isOffsetTaken(error: unknown): boolean {
  const { name, code } = error as { name?: string; code?: string }
  return name === 'SqlError' && (code === '23505' || code === 'SQLITE_CONSTRAINT')
}
