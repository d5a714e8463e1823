import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { nextOf, openWindow, type Recurrence, sleepUntil } from '../base/schedule.ts'
import type { Db } from '../db/db.ts'
import { instantFromMicros } from '../values/instant.ts'
import type { Ledger } from './ledger.ts'
import {
  clearSchedule,
  type PruningSchedule,
  pruneBetween,
  selectFirstDeparture,
  selectPruned,
  selectSchedule,
  writeSchedule,
} from './prune-store.ts'

/**
 * Pruning removes what the ledger API could still tell of the past: updates older than the retention, and
 * the contracts that they archived. Active contracts stay, and so does the history, which is elsewhere.
 *
 * At every time of the schedule a window opens and stays open for its duration. In it batches run one
 * after the other until the retention is reached or the window closes. Whoever starts inside an open
 * window goes on at once. A batch is one transaction, so a crash leaves whole batches behind, and only
 * moves the mark of what is gone from where it found it, so that of two processes one does the batch.
 */
export type Pruning = {
  state(): PruningState
  /** How far a run would come now. */
  plan(): Promise<PruningPlan>
  close(): Promise<void>
}

export type PruningState = {
  isOpen: boolean
  /** When the next window opens; undefined while one is open or when there is no other. */
  nextMicros: bigint | undefined
  lastRun: PruningRun | undefined
  /** Attempts that have failed since the last that did not, and why the newest did. */
  failuresInARow: number
  failure: string | undefined
}

export type PruningRun = {
  startedAt: bigint
  /** Offsets gone before and after the run. */
  from: bigint
  to: bigint
  /** Whether the window closed before the retention was reached. */
  isCut: boolean
  failure?: string
}

/** An offset that pruning must not pass, and what needs the updates after it; undefined when nothing does. */
export type SafeOffset = {
  name: string
  offset(): bigint | undefined | Promise<bigint | undefined>
}

export type PruningPlan = {
  pruned: bigint
  /** The last offset that is older than the retention. */
  retention: bigint
  /** How far pruning may go now. */
  target: bigint
  /** What keeps it from going as far as the retention. */
  heldBy: string | undefined
}

export type PruningOptions = {
  ledger: Ledger
  /** How long command ids are remembered. */
  deduplicationMs: number
  safeOffsets: readonly SafeOffset[]
  /** Reads the stored form of a schedule. */
  readCron(text: string): Recurrence
  onBatch?(batch: { from: bigint; to: bigint }): void
  onRun?(run: PruningRun): void
  onError(error: unknown): void
}

/** As on deployed participants: small enough that nobody waits long for a transaction of it. */
const BATCH_OFFSETS = 1000n
/** Within the window a failed batch is tried again after this. */
const RETRY_MS = 1000

/** Makes the stored schedule the configured one; says whether it was another. */
export async function applySchedule(
  db: Db,
  schedule: PruningSchedule | undefined,
): Promise<'set' | 'cleared' | 'kept'> {
  const stored = await selectSchedule(db)
  if (schedule === undefined) {
    if (stored === undefined) return 'kept'
    await clearSchedule(db)
    return 'cleared'
  }
  const isSame =
    stored?.cron === schedule.cron &&
    stored.maxDurationMs === schedule.maxDurationMs &&
    stored.retentionMs === schedule.retentionMs
  if (isSame) return 'kept'
  await writeSchedule(db, schedule)
  return 'set'
}

/** Prunes by the stored schedule until it is closed. */
export function startPruning(options: PruningOptions): Pruning {
  const { ledger } = options
  const { clock, db } = ledger
  const stop = new AbortController()
  const state: PruningState = {
    isOpen: false,
    nextMicros: undefined,
    lastRun: undefined,
    failuresInARow: 0,
    failure: undefined,
  }

  async function runForEver(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await runOnce()
      } catch (error) {
        if (!stop.signal.aborted) fail(error)
        await pause(RETRY_MS)
      }
    }
  }

  function fail(error: unknown): void {
    state.failuresInARow += 1
    state.failure = (error as Error).message
    options.onError(error)
  }

  function succeed(): void {
    state.failuresInARow = 0
    state.failure = undefined
  }

  /**
   * The window that is open, if there is one; then waits for the next. After a window that closed too
   * early another may be open already, which the next turn finds.
   */
  async function runOnce(): Promise<void> {
    const schedule = await selectSchedule(db)
    if (schedule === undefined) return pause(SCHEDULE_POLL_MS)
    const cron = options.readCron(schedule.cron)
    const duration = BigInt(schedule.maxDurationMs) * 1000n
    const window = openWindow(cron, duration, clock.nowMicros())
    if (window !== undefined && (await runWindow(window.closesAt, schedule)) === 'cut') return
    if (state.lastRun?.failure === undefined) succeed()
    state.nextMicros = nextOf(cron, clock.nowMicros())
    if (state.nextMicros === undefined) await pause(SCHEDULE_POLL_MS)
    else await sleepUntil(clock, state.nextMicros, stop.signal)
  }

  async function runWindow(
    closesAt: bigint,
    schedule: PruningSchedule,
  ): Promise<'reached' | 'cut'> {
    const from = await selectPruned(db)
    state.isOpen = true
    state.nextMicros = undefined
    const run: PruningRun = { startedAt: clock.nowMicros(), from, to: from, isCut: true }
    state.lastRun = run
    try {
      while (!stop.signal.aborted && clock.nowMicros() < closesAt) {
        const isDone = await pruneBatch(run, schedule)
        if (!isDone) continue
        run.isCut = false
        break
      }
    } finally {
      state.isOpen = false
      options.onRun?.(run)
    }
    return run.isCut ? 'cut' : 'reached'
  }

  /** One batch; true when nothing is left to prune for now. */
  async function pruneBatch(run: PruningRun, { retentionMs }: PruningSchedule): Promise<boolean> {
    try {
      const { pruned, target } = await planPruning(options, retentionMs)
      const to = pruned + BATCH_OFFSETS < target ? pruned + BATCH_OFFSETS : target
      if (to > pruned && (await pruneBetween(db, pruned, to))) {
        options.onBatch?.({ from: pruned, to })
      }
      run.to = to
      delete run.failure
      succeed()
      return to === target
    } catch (error) {
      run.failure = (error as Error).message
      fail(error)
      await pause(RETRY_MS)
      return false
    }
  }

  const pause = (ms: number) =>
    wait(ms, undefined, { signal: stop.signal }).catch(() => {}) as Promise<void>

  const running = runForEver()
  return {
    state: () => ({ ...state }),
    async plan() {
      const schedule = await selectSchedule(db)
      return planPruning(options, schedule?.retentionMs ?? Number.POSITIVE_INFINITY)
    },
    async close() {
      stop.abort()
      await running
    },
  }
}

/** A schedule that another start has cleared may be set again by a third. */
const SCHEDULE_POLL_MS = 60_000

/** How far pruning may go: never past the retention, nor past what somebody still needs. */
export async function planPruning(
  options: Pick<PruningOptions, 'ledger' | 'deduplicationMs' | 'safeOffsets'>,
  retentionMs: number,
): Promise<PruningPlan> {
  const { ledger } = options
  const { clock, db } = ledger
  const pruned = await selectPruned(db)
  const retention = await offsetBefore(ledger, clock, retentionMs)
  const end = await ledger.refresh()
  const departure = await selectFirstDeparture(db)
  const bounds: SafeOffset[] = [
    { name: 'the end of the ledger', offset: () => end - 1n },
    {
      name: 'the memory of command ids',
      offset: () => offsetBefore(ledger, clock, options.deduplicationMs),
    },
    ...(departure === undefined
      ? []
      : [{ name: 'a contract between two synchronizers', offset: () => departure - 1n }]),
    ...options.safeOffsets,
  ]
  let target = retention
  let heldBy: string | undefined
  for (const { name, offset } of bounds) {
    const bound = await offset()
    if (bound === undefined || bound >= target) continue
    target = bound
    heldBy = name
  }
  return { pruned, retention, target: target > pruned ? target : pruned, heldBy }
}

/** The last offset whose record time lies at least so far back. */
async function offsetBefore(ledger: Ledger, clock: Clock, backMs: number): Promise<bigint> {
  if (!Number.isFinite(backMs)) return 0n
  const instant = instantFromMicros(clock.nowMicros() - BigInt(backMs) * 1000n)
  return instant === undefined ? 0n : ledger.offsetAt(instant)
}
