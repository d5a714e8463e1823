import type { Db } from '../db/db.ts'
import { appendBatch } from './append.ts'
import type { PreparedUpdate } from './encode.ts'
import { createFrameCache, type FrameCache } from './frame-cache.ts'
import { type PageRequest, type Run, readPage } from './pages.ts'
import { loadView, type View } from './view.ts'

/** The ordered history of updates, open for reading and, by its one writer, for appending. */
export type History = {
  readonly db: Db
  readonly cache: FrameCache
  /** The newest prefix that this process knows. */
  readonly view: View
  /** When the append that is under way began, as `performance.now()` tells; undefined when none is. */
  readonly appendingSince: number | undefined
  append(batch: PreparedUpdate[]): Promise<void>
  readPage(request: PageRequest): AsyncGenerator<Run[]>
  /** The view for a new reader: a follower asks the store for it now and then. */
  latestView(): Promise<View>
  /** Looks for updates that another process has appended. */
  refresh(): Promise<View>
  /** Whether another process appends from now on. */
  setFollower(isFollower: boolean): Promise<View>
}

export type HistoryOptions = {
  db: Db
  /** Decoded frames kept in memory. */
  cacheBytes: number
  /** Whether another process appends; then the store is asked now and then for what is new. */
  isFollower?: boolean
  /** Told of every batch that has become durable, and how long it took. */
  onAppend?: (batch: PreparedUpdate[], seconds: number) => void
}

/** A follower's pages are at most this much behind the writer's. */
const FOLLOW_INTERVAL_MS = 250

export async function openHistory(options: HistoryOptions): Promise<History> {
  const { db, cacheBytes } = options
  let isFollower = options.isFollower ?? false
  const cache = createFrameCache({ db, bytesMax: cacheBytes })
  let view = await loadView(db)
  let isCurrent = true
  let refreshedAt = performance.now()
  let appendingSince: number | undefined
  // Appends and refreshes run one at a time, in the order of the calls; a failure stops none of them.
  let lastTurn: Promise<unknown> = Promise.resolve()
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = lastTurn.then(work)
    lastTurn = turn.catch(() => {})
    return turn
  }
  return {
    db,
    cache,
    get view() {
      return view
    },
    get appendingSince() {
      return appendingSince
    },
    append(batch) {
      if (batch.length === 0) return Promise.resolve()
      return inTurn(async () => {
        const startedAt = performance.now()
        appendingSince = startedAt
        try {
          if (!isCurrent) view = await loadView(db, view)
          // A commit whose answer is lost may have happened: look again before the next one.
          isCurrent = false
          view = await appendBatch(db, view, batch)
          isCurrent = true
        } finally {
          appendingSince = undefined
        }
        options.onAppend?.(batch, (performance.now() - startedAt) / 1000)
      })
    },
    async *readPage(request) {
      yield* readPage({ db, cache, view: isStale() ? await latestView() : view }, request)
    },
    latestView,
    refresh,
    setFollower(follows) {
      isFollower = follows
      return refresh()
    },
  }

  function isStale(): boolean {
    return isFollower && performance.now() - refreshedAt > FOLLOW_INTERVAL_MS
  }

  /** Of many readers at once, the first asks for all. */
  async function latestView(): Promise<View> {
    if (!isStale()) return view
    return inTurn(async () => (isStale() ? load() : view))
  }

  function refresh(): Promise<View> {
    return inTurn(load)
  }

  async function load(): Promise<View> {
    view = await loadView(db, view)
    isCurrent = true
    refreshedAt = performance.now()
    return view
  }
}
