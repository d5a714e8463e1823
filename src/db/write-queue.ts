import { DatabaseUnavailable } from './db-error.ts'

// Ten seconds of durable single-row transactions at a millisecond each; whoever stands further back
// is better told so at once.
const WAITING_MAX = 10_000
// Longer than any batch of ours takes; a request has been given up by its client by then.
const WAIT_MAX_MS = 30_000

export type WriteQueue = {
  /** Runs the work when everything queued before it has ended. */
  run<T>(work: () => Promise<T>): Promise<T>
  /** Refuses new work and resolves when what was queued has ended. */
  close(): Promise<void>
}

type Waiting = { start: () => void; timer: NodeJS.Timeout }

/** First come, first served, one at a time: what holds SQLite's one writer. */
export function createWriteQueue({
  waitingMax = WAITING_MAX,
  waitMaxMs = WAIT_MAX_MS,
}: {
  waitingMax?: number
  waitMaxMs?: number
} = {}): WriteQueue {
  const waiting = new Set<Waiting>()
  let busy = false
  let closed = false
  let onIdle: (() => void) | undefined

  async function turn(): Promise<void> {
    if (!busy) {
      busy = true
      return
    }
    if (waiting.size >= waitingMax) {
      throw new DatabaseUnavailable(
        `${waitingMax} writes are waiting for the database; try again when the load has fallen.`,
      )
    }
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(entry)
        reject(
          new DatabaseUnavailable(
            `A write waited ${waitMaxMs / 1000} seconds for its turn; try again when the load has fallen.`,
          ),
        )
      }, waitMaxMs)
      const entry: Waiting = { start: resolve, timer }
      waiting.add(entry)
    })
  }

  function next(): void {
    const [first] = waiting
    if (first === undefined) {
      busy = false
      onIdle?.()
      return
    }
    waiting.delete(first)
    clearTimeout(first.timer)
    first.start()
  }

  return {
    async run(work) {
      if (closed) throw new DatabaseUnavailable('The database is closed.')
      await turn()
      try {
        return await work()
      } finally {
        next()
      }
    },
    async close() {
      closed = true
      if (!busy) return
      await new Promise<void>((resolve) => {
        onIdle = resolve
      })
    },
  }
}
