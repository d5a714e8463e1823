import type { LedgerState } from './updates-store.ts'

/** Where the ledger ends as far as this process knows, and those who wait for it to move. */
export type LedgerEnd = {
  readonly state: LedgerState
  /** When that became known, on the clock of `performance.now()`. */
  readonly movedAt: number
  readonly isClosed: boolean
  move(to: LedgerState): void
  /** Resolves when the end lies after the offset, when the signal aborts, or when nothing will come any more. */
  waitAfter(offset: bigint, signal: AbortSignal): Promise<void>
  /** Nobody waits from now on. */
  close(): void
}

export function createLedgerEnd(first: LedgerState): LedgerEnd {
  const watchers = new Set<() => void>()
  let state = first
  let movedAt = performance.now()
  let isClosed = false
  const wakeAll = () => {
    for (const wake of watchers) wake()
  }
  return {
    get state() {
      return state
    },
    get movedAt() {
      return movedAt
    },
    get isClosed() {
      return isClosed
    },
    move(to) {
      state = to
      movedAt = performance.now()
      wakeAll()
    },
    waitAfter(offset, signal) {
      const isOver = () => state.lastOffset > offset || signal.aborted || isClosed
      if (isOver()) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = () => {
          if (!isOver()) return
          watchers.delete(wake)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        watchers.add(wake)
        signal.addEventListener('abort', wake)
      })
    },
    close() {
      isClosed = true
      wakeAll()
    },
  }
}
