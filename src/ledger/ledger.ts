import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Db } from '../db/db.ts'
import { grpcStatusOf, LedgerError } from '../http/ledger-error.ts'
import { INSTANT_MIN, type Instant, instantFromMicros, microsOf } from '../values/instant.ts'
import { type Contract, isStakeholder } from './contract.ts'
import { selectActiveOf, selectContract, selectStakes } from './contracts-store.ts'
import { addRefusal, commitDraft, type Draft, newDraft } from './draft.ts'
import { ledgerBusy, offsetAfterEnd, pastPruned, unknownTemplate } from './errors.ts'
import { consumedBy } from './item.ts'
import { selectPruned } from './prune-store.ts'
import { type Reassignment, reassignmentMarkOf, runReassignment } from './reassign.ts'
import { markOf, runSubmission, type Submission, type SubmitContext } from './submit.ts'
import { type Interface, identifierOf, type Template, type TemplateEntry } from './template.ts'
import { createTrafficControl, type TrafficOptions, type TrafficStatus } from './traffic-control.ts'
import { offsetOfUpdate } from './update-id.ts'
import {
  type CommandMark,
  insertIdentity,
  type LedgerEntry,
  type LedgerState,
  type LedgerUpdate,
  offsetAtTime,
  readState,
  selectEntriesAfter,
  selectUpdatesAfter,
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

/** How a submission ended: a contended one may be repeated, a failed one is a fault of ours. */
export type SubmissionOutcome = 'accepted' | 'contended' | 'duplicate' | 'refused' | 'failed'

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
  /** The full id of an interface that some template implements, named like a template. */
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
  /** Waits for what is under way; refuses what comes later. */
  close(): Promise<void>
}

export type TypedContract<P> = Omit<Contract, 'payload'> & { payload: P }
export type ActiveQuery = { offset: bigint; parties: readonly string[] | 'any' }

type Job = {
  startOffset: bigint
  startedAt: number
  run(draft: Draft, context: SubmitContext): Promise<LedgerUpdate>
  mark(): CommandMark
  resolve(update: LedgerUpdate): void
  reject(error: unknown): void
}
type Outcome = { job: Job; update: LedgerUpdate } | { job: Job; error: unknown }

/** Beyond this many waiting submissions a client is better told so at once. */
const WAITING_MAX = 10_000
/** Submissions that share a commit; more would only make the first of them wait longer. */
const BATCH_MAX = 64
/** Other processes may move the end again and again; who loses this often gives way. */
const ATTEMPTS_MAX = 50
/** Contracts kept in memory: a few hundred bytes each. */
const CACHED_CONTRACTS_MAX = 20_000
/** Rows of one step of a long read. */
const PAGE_ROWS = 500

export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const { db, clock } = options
  await insertIdentity(db, {
    nonce: options.seed ?? randomBytes(16).toString('hex'),
    secondSynchronizerId: options.secondSynchronizerId,
    traffic: undefined,
  })
  if (options.secondSynchronizerId !== undefined) {
    await setSecondSynchronizer(db, options.secondSynchronizerId)
  }
  let state = await readState(db)
  const synchronizers = [options.synchronizerId]
  if (state.secondSynchronizerId !== undefined) synchronizers.push(state.secondSynchronizerId)
  const byName = new Map(options.templates.map((entry) => [entry.template.name, entry]))
  const interfaces = options.templates.flatMap((entry) =>
    [...entry.interfaces.values()].map((one) => one.interface),
  )
  // Valid as long as `state` is the ledger's end, which every commit makes sure of.
  const cache = new Map<string, Contract>()
  const knownParties = new Set<string>()
  const waiting: Job[] = []
  const watchers = new Set<() => void>()
  let movedAt = performance.now()
  let draining: Promise<void> | undefined
  let isClosed = false
  let isCurrent = true

  function find(name: string): TemplateEntry {
    const entry = byName.get(name)
    if (entry === undefined) throw unknownTemplate(name)
    return entry
  }

  const traffic =
    options.traffic &&
    createTrafficControl({
      ...options.traffic,
      db,
      clock,
      synchronizerId: options.synchronizerId,
      find,
    })

  async function lookup(draft: Draft, contractId: string): Promise<Contract | undefined> {
    const known = draft.contracts.get(contractId) ?? cache.get(contractId)
    if (known !== undefined) return known
    const before = state
    const contract = await selectContract(db, contractId, find)
    // What was read while the end moved may be out of date.
    if (contract !== undefined && state === before) remember(contract)
    return contract
  }

  function remember(contract: Contract): void {
    cache.delete(contract.contractId)
    if (contract.archivedOffset !== undefined) return
    cache.set(contract.contractId, contract)
    if (cache.size <= CACHED_CONTRACTS_MAX) return
    const [oldest] = cache.keys()
    if (oldest !== undefined) cache.delete(oldest)
  }

  /** Strictly rising, and at the clock's time unless that stands still or was set back. */
  function nextRecordTime(draft: Draft): Instant {
    const floor = options.recordTimeFloor?.() ?? INSTANT_MIN
    const least = laterOf(microsOf(draft.end.lastRecordTime), microsOf(floor)) + 1n
    const now = clock.nowMicros()
    const recordTime = instantFromMicros(laterOf(now, least))
    if (recordTime === undefined) throw new RangeError('The clock is beyond the year 9999.')
    return recordTime
  }

  function contextOf({ startOffset }: Job): SubmitContext {
    return {
      db,
      migrationId: options.migrationId,
      synchronizers,
      deduplicationMicros: BigInt(options.deduplicationMs) * 1000n,
      startOffset,
      lookup,
      nextRecordTime,
      entryOf: (template) => find(template.name),
      knownParties,
      traffic,
    }
  }

  function enqueue({ run, mark }: Pick<Job, 'run' | 'mark'>): Promise<LedgerUpdate> {
    if (isClosed || waiting.length >= WAITING_MAX) return Promise.reject(ledgerBusy())
    return new Promise((resolve, reject) => {
      const startedAt = performance.now()
      waiting.push({ startOffset: state.lastOffset, startedAt, run, mark, resolve, reject })
      draining ??= drain()
    })
  }

  async function drain(): Promise<void> {
    // Let what is called in the same turn share the first commit.
    await Promise.resolve()
    while (waiting.length > 0) await settleBatch(waiting.splice(0, BATCH_MAX))
    draining = undefined
  }

  /** Nobody hears of an outcome before the whole batch is durable. */
  async function settleBatch(batch: Job[]): Promise<void> {
    try {
      for (const outcome of await commitBatch(batch)) {
        if ('update' in outcome) outcome.job.resolve(outcome.update)
        else outcome.job.reject(outcome.error)
        tell(outcome.job, 'update' in outcome ? 'accepted' : outcomeOf(outcome.error))
      }
    } catch (error) {
      for (const job of batch) {
        job.reject(error)
        tell(job, outcomeOf(error))
      }
    }
  }

  function tell({ startedAt }: Job, outcome: SubmissionOutcome): void {
    options.events?.onSettled?.(outcome, (performance.now() - startedAt) / 1000)
  }

  async function commitBatch(batch: Job[]): Promise<Outcome[]> {
    let conflict: unknown
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (!isCurrent) await reload()
      const draft = newDraft(state)
      await traffic?.begin(draft)
      const outcomes: Outcome[] = []
      for (const job of batch) outcomes.push(await tryJob(job, draft))
      if (draft.end === state) return outcomes
      // A commit whose answer is lost may have happened: look again before the next one.
      isCurrent = false
      let end: LedgerState
      try {
        end = await commitDraft(db, draft)
      } catch (error) {
        if (!isOffsetTaken(error)) throw error
        conflict = error
        continue
      }
      advance(end, draft.contracts.values())
      options.events?.onCommit?.(batch.length)
      traffic?.keep(draft)
      isCurrent = true
      return outcomes
    }
    throw conflict ?? ledgerBusy()
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

  function advance(end: LedgerState, changed: Iterable<Contract>): void {
    for (const contract of changed) remember(contract)
    state = end
    movedAt = performance.now()
    for (const wake of watchers) wake()
  }

  async function reload(): Promise<void> {
    const stored = await readState(db)
    // A commit of our own may have overtaken the question.
    if (stored.lastOffset > state.lastOffset) {
      cache.clear()
      traffic?.forget()
      advance(stored, [])
    }
    isCurrent = true
  }

  async function* activeAt({ offset, parties }: ActiveQuery): AsyncGenerator<Contract[]> {
    const end = await refresh()
    if (offset > end) throw offsetAfterEnd(offset, end)
    await requireUnpruned(offset)
    const readers = parties === 'any' ? undefined : new Set(parties)
    // A contract that is archived while we read comes up again below; each is told once.
    const told = new Set<string>()
    const take = (page: Contract[]) =>
      page.filter((contract) => {
        if (contract.createdOffset > offset || told.has(contract.contractId)) return false
        if (readers !== undefined && !isStakeholder(contract, readers)) return false
        told.add(contract.contractId)
        return true
      })
    for (const party of readers ?? [undefined]) {
      for await (const page of stakesOf(party)) yield take(page)
    }
    // What was archived since then stands in the updates since then.
    for (let after = offset; after < state.lastOffset; ) {
      const page = await selectUpdatesAfter(db, after, {
        offset: state.lastOffset,
        limit: PAGE_ROWS,
      })
      for (const { item } of page) yield take(await archivedBy(item))
      after = page.at(-1)?.offset ?? state.lastOffset
    }
    // What was pruned while we read may be missing.
    await requireUnpruned(offset)
  }

  async function archivedBy(item: string): Promise<Contract[]> {
    const archived: Contract[] = []
    for (const contractId of consumedBy(item)) {
      const contract = await selectContract(db, contractId, find)
      if (contract !== undefined) archived.push(contract)
    }
    return archived
  }

  async function requireUnpruned(after: bigint): Promise<void> {
    const pruned = await selectPruned(db)
    if (after < pruned) throw pastPruned(after, pruned)
  }

  /** Every offset is there, so that a gap is what was pruned. */
  async function entriesAfter(offset: bigint, limit: number): Promise<LedgerEntry[]> {
    const page = await selectEntriesAfter(db, offset, { offset: state.lastOffset, limit })
    const [first] = page
    if (first !== undefined && first.offset !== offset + 1n) await requireUnpruned(offset)
    return page
  }

  async function* stakesOf(party: string | undefined): AsyncGenerator<Contract[]> {
    let after = { party: party ?? '', template: '', contractId: '' }
    for (;;) {
      const page = await selectStakes(db, { after, party, limit: PAGE_ROWS }, find)
      yield page.map(({ contract }) => contract)
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE_ROWS) return
      after = last.stake
    }
  }

  async function refresh(): Promise<bigint> {
    // On SQLite this process is the only one.
    if (db.engine === 'postgres' && draining === undefined) await reload()
    return state.lastOffset
  }

  return {
    db,
    clock,
    migrationId: options.migrationId,
    synchronizers,
    templates: options.templates,
    get end() {
      return state.lastOffset
    },
    get movedAt() {
      return movedAt
    },
    get activeContracts() {
      return Number(state.activeContracts)
    },
    submit: (submission) =>
      enqueue({
        run: (draft, context) => runSubmission(draft, submission, context),
        mark: () => markOf(submission),
      }),
    reassign: (reassignment) =>
      enqueue({
        run: (draft, context) => runReassignment(draft, reassignment, context),
        mark: () => reassignmentMarkOf(reassignment),
      }),
    entryOf: ({ name }) => find(name),
    entry(templateId) {
      const entry = byName.get(templateId.slice(templateId.indexOf(':') + 1))
      if (entry === undefined || !isNameOf(templateId, entry.template)) {
        throw unknownTemplate(templateId)
      }
      return entry
    },
    interfaceId(id) {
      const found = interfaces.find((known) => isNameOf(id, known))
      return found && identifierOf(found)
    },
    contract: (contractId) => selectContract(db, contractId, find),
    async contractsOf<P>(template: Template<P>, party: string) {
      const found: Contract[] = []
      for (let afterId = ''; ; ) {
        const by = { party, template: template.name, afterId, limit: PAGE_ROWS }
        const page = await selectActiveOf(db, by, find)
        found.push(...page)
        if (page.length < PAGE_ROWS) return found as TypedContract<P>[]
        afterId = page.at(-1)?.contractId ?? ''
      }
    },
    pruned: () => selectPruned(db),
    activeAt,
    updatesAfter: (offset, limit) =>
      selectUpdatesAfter(db, offset, { offset: state.lastOffset, limit }),
    entriesAfter,
    async update(updateId) {
      const offset = offsetOfUpdate(state.nonce, updateId)
      if (offset === undefined || offset < 1n || offset > (await refresh())) return undefined
      const [update] = await selectUpdatesAfter(db, offset - 1n, { offset, limit: 1 })
      return update?.updateId === updateId ? update : undefined
    },
    async traffic() {
      await refresh()
      return traffic?.status(state.traffic)
    },
    peekTraffic: () => traffic?.peek(state.traffic),
    offsetAt: (recordTime) => offsetAtTime(db, recordTime),
    refresh,
    waitAfter(offset, signal) {
      if (state.lastOffset > offset || signal.aborted || isClosed) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = () => {
          if (state.lastOffset <= offset && !signal.aborted && !isClosed) return
          watchers.delete(wake)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        watchers.add(wake)
        signal.addEventListener('abort', wake)
      })
    },
    async close() {
      isClosed = true
      await draining
      for (const wake of watchers) wake()
    },
  }
}

/** `#package-name:Module:Entity`, or with the package id. */
function isNameOf(id: string, named: Interface): boolean {
  return id === `#${named.packageName}:${named.name}` || id === identifierOf(named)
}

function laterOf(a: bigint, b: bigint): bigint {
  if (a > b) return a
  return b
}

function outcomeOf(error: unknown): SubmissionOutcome {
  if (!(error instanceof LedgerError)) return 'failed'
  if (error.code === 'DUPLICATE_COMMAND') return 'duplicate'
  return error.category === 'contention' ? 'contended' : 'refused'
}

/** Two processes that take the same offset: the primary key lets one of them through. */
function isOffsetTaken(error: unknown): boolean {
  const { name, code } = error as { name?: string; code?: string }
  return name === 'SqlError' && (code === '23505' || code === 'SQLITE_CONSTRAINT')
}
