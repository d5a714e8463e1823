import { LedgerError } from '../http/ledger-error.ts'
import type { Draft } from './draft.ts'
import { ledgerBusy } from './errors.ts'
import type { SubmitContext } from './submit.ts'
import type { CommandMark, LedgerUpdate } from './updates-store.ts'

/** What a submission does to a draft, and how its refusal is remembered. */
export type Work = {
  run(draft: Draft, context: SubmitContext): Promise<LedgerUpdate>
  mark(): CommandMark
}

export type Job = Work & {
  /** The ledger's end when the submission came. */
  startOffset: bigint
  startedAt: number
  resolve(update: LedgerUpdate): void
  reject(error: unknown): void
}

export type Outcome = { job: Job; update: LedgerUpdate } | { job: Job; error: unknown }

/** How a submission ended: a contended one may be repeated, a failed one is a fault of ours. */
export type SubmissionEnd = 'accepted' | 'contended' | 'duplicate' | 'refused' | 'failed'

export type SubmissionQueue = {
  submit(work: Work): Promise<LedgerUpdate>
  readonly isDraining: boolean
  /** Waits for what is under way; refuses what comes later. */
  close(): Promise<void>
}

/** Beyond this many waiting submissions a client is better told so at once. */
const WAITING_MAX = 10_000
/** Submissions that share a commit; more would only make the first of them wait longer. */
const BATCH_MAX = 64

/** What waits while a commit is under way shares the next one. */
export function createSubmissionQueue(options: {
  endOffset(): bigint
  /** Resolves when the whole batch is durable. */
  commit(batch: readonly Job[]): Promise<Outcome[]>
  onSettled?: ((end: SubmissionEnd, seconds: number) => void) | undefined
}): SubmissionQueue {
  const waiting: Job[] = []
  let draining: Promise<void> | undefined
  let isClosed = false

  async function drain(): Promise<void> {
    // Let what is called in the same turn share the first commit.
    await Promise.resolve()
    while (waiting.length > 0) await settle(waiting.splice(0, BATCH_MAX))
    draining = undefined
  }

  /** Nobody hears of an outcome before the whole batch is durable. */
  async function settle(batch: Job[]): Promise<void> {
    try {
      for (const outcome of await options.commit(batch)) {
        if ('update' in outcome) outcome.job.resolve(outcome.update)
        else outcome.job.reject(outcome.error)
        tell(outcome.job, 'update' in outcome ? 'accepted' : endOf(outcome.error))
      }
    } catch (error) {
      for (const job of batch) {
        job.reject(error)
        tell(job, endOf(error))
      }
    }
  }

  function tell({ startedAt }: Job, end: SubmissionEnd): void {
    options.onSettled?.(end, (performance.now() - startedAt) / 1000)
  }

  return {
    submit(work) {
      if (isClosed || waiting.length >= WAITING_MAX) return Promise.reject(ledgerBusy())
      return new Promise((resolve, reject) => {
        const startedAt = performance.now()
        waiting.push({ ...work, startOffset: options.endOffset(), startedAt, resolve, reject })
        draining ??= drain()
      })
    },
    get isDraining() {
      return draining !== undefined
    },
    async close() {
      isClosed = true
      await draining
    },
  }
}

function endOf(error: unknown): SubmissionEnd {
  if (!(error instanceof LedgerError)) return 'failed'
  if (error.code === 'DUPLICATE_COMMAND') return 'duplicate'
  return error.category === 'contention' ? 'contended' : 'refused'
}
