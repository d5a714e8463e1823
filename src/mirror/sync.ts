import { setTimeout as wait } from 'node:timers/promises'
import type { PreparedUpdate } from '../history/encode.ts'
import type { History } from '../history/history.ts'
import {
  comparePositions,
  IMPORT_RECORD_TIME,
  type Position,
  printPosition,
} from '../history/position.ts'
import type { PreparePool } from '../history/prepare-pool.ts'
import type { Instant } from '../values/instant.ts'
import { copyImports } from './copy-imports.ts'
import type { Dissent } from './dissent.ts'
import { guessLast, type PageBodies, type PageWish, wholePage } from './page-request.ts'
import { createPageSize } from './page-size.ts'
import { type AgreedPage, type NoPage, readPage } from './pages.ts'
import type { Peers } from './peers.ts'
import { createSparing, readSparingPage } from './sparing.ts'

/** How the copying stands. */
export type SyncState = {
  /** Why nothing can be copied at present, if so. */
  stalled: string | undefined
  /** Whether more scans contradict each other than may be faulty. */
  isSplit: boolean
  /** When enough scans last agreed, and when nothing was missing, in milliseconds since 1970. */
  agreedAt: number | undefined
  caughtUpAt: number | undefined
  /** Scans that stood behind the last page. */
  agreeing: number
  /** Since this process began to copy. */
  updates: number
  pages: number
  pageSize: number
  /** Of the newest update that was copied. */
  synchronizerId: string | undefined
  /** Import updates that are left out, and why. */
  missingImports: string | undefined
}

export type SyncOptions = {
  history: History
  pool: PreparePool
  peers: Peers
  onDissent: (dissent: Dissent) => void
  /** Told after every append, and whenever something about the state has changed. */
  onChange?: (state: SyncState) => void
  /** Called when enough scans refuse pages because their own history is incomplete. */
  fillBackwards?: (signal: AbortSignal) => Promise<void>
  /** Copies only what is not later than this, and then ends. */
  until?: Instant | undefined
  /** Ends as soon as nothing is missing. */
  isOneOff?: boolean
  pageSizeMax?: number
  pollMs?: number
}

export type Sync = {
  state(): SyncState
  /** Resolves when the copying has ended by itself or was closed; rejects with what it cannot mend. */
  readonly done: Promise<void>
  close(): Promise<void>
}

/** Pages under way at a time: the next are asked for while the first is compared and stored. */
const PAGES_AHEAD = 4
/** At the end of the history the scans are asked this often for more. */
const POLL_MS = 750
/** And this often when they have to be asked backwards, which is more work for them. */
const FILL_MS = 10_000
/** How long to wait when the scans do not agree or do not answer: at first, and at most. */
const STALL_MS_MIN = 250
const STALL_MS_MAX = 5_000

/**
 * Copies a network's history: what enough scans say comes after the last update is checked as an
 * import does it and appended. There is no cursor to keep: the history's last position says where to
 * go on, so that a crash at any instant leaves neither gap nor repeat.
 */
export function startSync(options: SyncOptions): Sync {
  const { history, pool, peers } = options
  const stop = new AbortController()
  const size = createPageSize(options.pageSizeMax)
  const sparing = createSparing()
  const state: SyncState = {
    stalled: undefined,
    isSplit: false,
    agreedAt: undefined,
    caughtUpAt: undefined,
    agreeing: 0,
    updates: 0,
    pages: 0,
    pageSize: size.current,
    synchronizerId: undefined,
    missingImports: undefined,
  }
  let isIdle = false
  const done = run()
  // Whoever asks for it sees the failure.
  done.catch(() => {})
  return {
    state: () => state,
    done,
    async close() {
      stop.abort()
      await done.catch(() => {})
    },
  }

  async function run(): Promise<void> {
    let stallMs = STALL_MS_MIN
    while (!stop.signal.aborted) {
      const before = state.updates
      const end = await copyRound()
      if (state.updates > before) stallMs = STALL_MS_MIN
      if (end === 'until' || (options.isOneOff && (end === 'end' || end === 'filled'))) return
      if (end === 'end' || end === 'filled') {
        stallMs = STALL_MS_MIN
        await pause(end === 'end' ? (options.pollMs ?? POLL_MS) : FILL_MS)
      } else if (end !== 'again') {
        await pause(stallMs)
        stallMs = Math.min(STALL_MS_MAX, stallMs * 2)
      }
    }
  }

  async function pause(ms: number): Promise<void> {
    await wait(ms, undefined, { signal: stop.signal }).catch(() => {})
  }

  function change(changes: Partial<SyncState>): void {
    Object.assign(state, changes, { pageSize: size.current })
    options.onChange?.(state)
  }

  function stall(reason: string, isSplit = false): 'stalled' {
    isIdle = false
    change({ stalled: reason, isSplit })
    return 'stalled'
  }

  /** Copies until nothing is missing, or until something is in the way. */
  async function copyRound(): Promise<'end' | 'until' | 'stalled' | 'again' | 'filled'> {
    const round = new AbortController()
    const signal = AbortSignal.any([stop.signal, round.signal])
    let storing: Promise<unknown> = Promise.resolve()
    try {
      await history.refresh()
      const { last } = history.view
      if (last?.recordTime === IMPORT_RECORD_TIME) await takeImports(last.migrationId, signal)
      const reads = readAhead(positionOf(history.view.last), signal)
      let end: Position | undefined = positionOf(history.view.last)
      for await (const { after, page, prepared } of reads) {
        if (stop.signal.aborted) return 'again'
        // The position was a guess; when it was wrong, the round starts again from what is stored.
        if (!isSamePosition(after, end)) return 'again'
        if (page.kind === 'none') {
          await storing
          return await explainNone(page)
        }
        const { updates, refusal } = prepared
        const taken = takeInOrder(updates, end)
        await storing
        storing = store(taken.updates, page, signal)
        storing.catch(() => {})
        end = positionOf(taken.updates.at(-1)) ?? end
        const fault = taken.fault ?? refusal?.reason
        if (fault !== undefined) {
          await storing
          return stall(`What ${page.agreeing.length} scans agree on is not sound: ${fault}`)
        }
        if (taken.isUntil) {
          await storing
          return 'until'
        }
        if (page.isEnd) {
          await storing
          isIdle = taken.updates.length === 0
          change({
            stalled: undefined,
            isSplit: false,
            agreedAt: Date.now(),
            caughtUpAt: Date.now(),
          })
          return 'end'
        }
      }
      await storing
      return 'again'
    } catch (error) {
      if (stop.signal.aborted) return 'again'
      return stall((error as Error).message)
    } finally {
      round.abort()
      await storing.catch(() => {})
    }
  }

  async function explainNone(page: NoPage): Promise<'stalled' | 'filled'> {
    if (page.overwhelmed > 0 && page.answered < page.sizes.need) size.shrink()
    const { known, need } = page.sizes
    const { fillBackwards } = options
    // Both encodings are refused, so each such scan counts twice.
    const complete = known - Math.ceil(page.incomplete / 2)
    if (fillBackwards !== undefined && page.incomplete > 0 && complete < need) {
      stall(`${page.reason} The history is filled backwards instead.`)
      const before = history.view.updates
      await fillBackwards(stop.signal)
      const updates = state.updates + history.view.updates - before
      change({ stalled: undefined, updates, agreedAt: Date.now(), caughtUpAt: Date.now() })
      return 'filled'
    }
    return stall(page.reason, page.isSplit)
  }

  type Read = {
    after: Position | undefined
    page: AgreedPage | NoPage
    prepared: { updates: PreparedUpdate[]; refusal: { reason: string } | undefined }
  }

  /** Pages in order. The position of each follows from a glance at the first answer to the one before. */
  async function* readAhead(
    first: Position | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<Read> {
    const ahead: Promise<Read>[] = []
    let next: Promise<Position | undefined> | undefined = Promise.resolve(first)
    let isFirst = true
    for (;;) {
      while (next !== undefined && ahead.length < PAGES_AHEAD) {
        const after = isFirst ? first : await soon(next, ahead[0])
        if (after === 'later') break
        if (after === undefined && !isFirst) {
          next = undefined
          break
        }
        isFirst = false
        const started = startRead(after, signal)
        started.read.catch(() => {})
        ahead.push(started.read)
        next = started.next
      }
      const current = ahead[0]
      if (current === undefined) return
      const read = await current
      ahead.shift()
      yield read
    }
  }

  function startRead(after: Position | undefined, signal: AbortSignal) {
    const pageSize = size.current
    const guess = Promise.withResolvers<Position | undefined>()
    const read = (async (): Promise<Read> => {
      try {
        const wish = { after, pageSize, isIdle, bytesPerUpdate: size.bytesPerUpdate }
        const onFirst = (first: PageBodies) => guess.resolve(guessLast(first, pageSize))
        const proved = sparing.isOn ? await readProved(wish, { signal, onFirst }) : undefined
        if (proved !== undefined) return { after, ...proved }
        const { onDissent } = options
        const page = await readPage(wish, { peers, pool, signal, onDissent, onFirst })
        if (page.kind === 'none') return { after, page, prepared: NOTHING }
        const { count, bodies } = page
        if (count === 0) return { after, page, prepared: NOTHING }
        if (count === pageSize) size.grow(count, lengthsOf(bodies))
        const prepared = await pool.preparePage(wholePage(bodies, count))
        const isAllDerived = prepared.updates.every(({ derived }) => derived)
        if (isAllDerived && count === pageSize) sparing.noteDerived()
        else if (!isAllDerived) sparing.noteDoubt()
        return { after, page, prepared }
      } finally {
        guess.resolve(undefined)
      }
    })()
    return { read, next: guess.promise }
  }

  /** The cheap way for a page; undefined when it has to be read in full. */
  async function readProved(
    wish: PageWish,
    around: { signal: AbortSignal; onFirst: (bodies: PageBodies) => void },
  ): Promise<Pick<Read, 'page' | 'prepared'> | undefined> {
    const onDoubt = () => sparing.noteDoubt()
    const page = await readSparingPage(wish, { peers, free: sparing.free, ...around })
    if (page === undefined) {
      onDoubt()
      return undefined
    }
    size.grow(page.count, lengthsOf(page.bodies))
    const prepared = await pool.preparePage({
      ...wholePage(page.bodies, page.count),
      isProof: true,
    })
    if (prepared.refusal === undefined) return { page, prepared }
    onDoubt()
    return undefined
  }

  function takeInOrder(updates: PreparedUpdate[], end: Position | undefined) {
    let previous = end
    for (const [i, update] of updates.entries()) {
      const { until } = options
      if (until !== undefined && update.recordTime > until) {
        return { updates: updates.slice(0, i), isUntil: true, fault: undefined }
      }
      if (previous !== undefined && comparePositions(update, previous) <= 0) {
        const fault = `update ${update.updateId} at ${printPosition(update)} does not come after ${printPosition(previous)}.`
        return { updates: updates.slice(0, i), isUntil: false, fault }
      }
      previous = update
    }
    return { updates, isUntil: false, fault: undefined }
  }

  /** A migration begins with its import updates. */
  async function store(
    updates: PreparedUpdate[],
    page: AgreedPage,
    signal: AbortSignal,
  ): Promise<void> {
    for (let start = 0; start < updates.length; ) {
      const { migrationId } = updates[start] as PreparedUpdate
      if (history.view.last?.migrationId !== migrationId) await takeImports(migrationId, signal)
      const rest = updates.slice(start)
      const length = rest.findIndex((update) => update.migrationId !== migrationId)
      const batch = length < 0 ? rest : rest.slice(0, length)
      signal.throwIfAborted()
      await history.append(batch)
      start += batch.length
    }
    if (updates.length === 0) return
    change({
      updates: state.updates + updates.length,
      pages: state.pages + 1,
      agreeing: page.agreeing.length,
      synchronizerId: updates.at(-1)?.synchronizerId,
      agreedAt: Date.now(),
      stalled: undefined,
      isSplit: false,
    })
  }

  async function takeImports(migrationId: bigint, signal: AbortSignal): Promise<void> {
    const missing = await copyImports({ migrationId, history, peers, pool, signal })
    if (missing !== undefined) change({ missingImports: missing })
  }
}

const NOTHING = { updates: [], refusal: undefined }

function lengthsOf({ protobuf, compact }: PageBodies) {
  return { protobuf: protobuf.length, compact: compact.length }
}

function positionOf(update: Position | undefined): Position | undefined {
  return update && { migrationId: update.migrationId, recordTime: update.recordTime }
}

function isSamePosition(one: Position | undefined, other: Position | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return comparePositions(one, other) === 0
}

/** The guess, or that the page before it came first. */
async function soon<T>(
  guess: Promise<T>,
  page: Promise<unknown> | undefined,
): Promise<T | 'later'> {
  if (page === undefined) return guess
  return Promise.race([guess, page.then(() => 'later' as const)])
}
