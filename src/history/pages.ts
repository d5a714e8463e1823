import type { Db } from '../db/db.ts'
import { INSTANT_MAX, microsOf } from '../values/instant.ts'
import type { Encoding } from './encode.ts'
import { countUpTo, FRAME_UPDATES, type FrameIndex } from './frame.ts'
import type { FrameCache, OpenFrame } from './frame-cache.ts'
import { importMigrations, readImportsByUpdate } from './imports-store.ts'
import { IMPORT_RECORD_TIME, type Position } from './position.ts'
import type { FrameBytes, Version } from './versions.ts'
import { createTail, type View } from './view.ts'

export type PageRequest = {
  version: Version
  encoding: Encoding
  after: Position | undefined
  pageSize: number
}

/** Consecutive updates, joined by commas, ready to stand in a JSON array. */
export type Run = {
  bytes: Buffer
  updates: number
  /** Set when the run is a whole sealed frame, which never changes and so can be kept compressed. */
  frame: number | undefined
}

/**
 * Frames decoded in one go, about 2 MB: what a page holds in memory at a time, and about a
 * millisecond of the event loop when they come from the store.
 */
const FRAMES_PER_STEP = 8
const IMPORTS_PER_STEP = 25

/**
 * The updates after a position, in steps: each step is a few runs, and the next is only made when
 * asked for, so a page of any size takes the memory of one step.
 */
export async function* readPage(
  source: { db: Db; cache: FrameCache; view: View },
  request: PageRequest,
): AsyncGenerator<Run[]> {
  const { view } = source
  if (request.version === 0 && view.imports > 0) {
    yield* readPageWithImports(source, request)
    return
  }
  const from = await findOrdinal(source, request)
  yield* readRange(source, request, from, Math.min(view.updates, from + request.pageSize))
}

/** The ordinal of the first update after the position. */
export async function findOrdinal(
  source: { cache: FrameCache; view: View },
  request: Pick<PageRequest, 'version' | 'encoding' | 'after'>,
): Promise<number> {
  const { cache, view } = source
  if (request.after === undefined) return 0
  const { migrationId } = request.after
  const micros = microsOf(request.after.recordTime)
  const sealed = view.frames * FRAME_UPDATES
  const inTail = countUpTo(view.tail.index, migrationId, micros)
  if (inTail > 0) return sealed + inTail
  const number = view.directory.findLast(view.frames, migrationId, micros)
  if (number < 0) return 0
  const [frame] =
    cache.peek(request.version, request.encoding, number, number + 1) ??
    (await cache.read(request.version, request.encoding, number, number + 1))
  return number * FRAME_UPDATES + countUpTo((frame as OpenFrame).index, migrationId, micros)
}

/** Updates with ordinals from `from` (included) to `to` (excluded). */
export async function* readRange(
  source: { cache: FrameCache; view: View },
  request: Pick<PageRequest, 'version' | 'encoding'>,
  from: number,
  to: number,
): AsyncGenerator<Run[]> {
  const { cache, view } = source
  const { version, encoding } = request
  const sealed = view.frames * FRAME_UPDATES
  let next = from
  while (next < Math.min(to, sealed)) {
    const firstFrame = Math.floor(next / FRAME_UPDATES)
    const endFrame = Math.min(
      firstFrame + FRAMES_PER_STEP,
      Math.ceil(Math.min(to, sealed) / FRAME_UPDATES),
    )
    const frames =
      cache.peek(version, encoding, firstFrame, endFrame) ??
      (await cache.read(version, encoding, firstFrame, endFrame))
    const runs = frames.map((frame) => {
      const start = frame.number * FRAME_UPDATES
      const run = slice(
        frame,
        Math.max(next, start) - start,
        Math.min(to, start + FRAME_UPDATES) - start,
      )
      if (run.updates === FRAME_UPDATES) run.frame = frame.number
      return run
    })
    next = Math.min(to, endFrame * FRAME_UPDATES)
    // The tail's few updates join the last step, so that a page at the end is one step.
    if (next === sealed && to > sealed) {
      runs.push(slice(view.tail.bytes(version, encoding), 0, to - sealed))
      next = to
    }
    yield runs
  }
  if (next < to) yield [slice(view.tail.bytes(version, encoding), next - sealed, to - sealed)]
}

/** One update, for those who look at each: its bytes, and its entry in `index`. */
export type EachUpdate = { ordinal: number; bytes: Buffer; index: FrameIndex; entry: number }

/** Updates with ordinals from `from` (included) to `to` (excluded), a frame at a time. */
export async function* readEach(
  source: { cache: FrameCache; view: View },
  form: Pick<PageRequest, 'version' | 'encoding'>,
  from: number,
  to: number,
): AsyncGenerator<EachUpdate[]> {
  const { cache, view } = source
  const { version, encoding } = form
  for (let next = from; next < to; ) {
    const number = Math.floor(next / FRAME_UPDATES)
    const start = number * FRAME_UPDATES
    const end = Math.min(to, start + FRAME_UPDATES)
    const isTail = number >= view.frames
    const frame = isTail
      ? { ...view.tail.bytes(version, encoding), index: view.tail.index }
      : ((await cache.read(version, encoding, number, number + 1))[0] as OpenFrame)
    const updates: EachUpdate[] = []
    for (let ordinal = next; ordinal < end; ordinal += 1) {
      const entry = ordinal - start
      const { bytes } = slice(frame, entry, entry + 1)
      updates.push({ ordinal, bytes, index: frame.index, entry })
    }
    yield updates
    next = end
  }
}

function slice(frame: FrameBytes, from: number, to: number): Run {
  const start = frame.starts[from] as number
  const end = (frame.starts[to] as number) - 1
  return { bytes: frame.bytes.subarray(start, end), updates: to - from, frame: undefined }
}

/** Only /v0/updates shows import updates: in each migration first, in the order of their ids. */
async function* readPageWithImports(
  source: { db: Db; cache: FrameCache; view: View },
  request: PageRequest,
): AsyncGenerator<Run[]> {
  const { after } = request
  let remaining = request.pageSize
  let next = await findOrdinal(source, request)
  for (const migrationId of await importMigrations(source.db)) {
    if (after !== undefined && migrationId <= after.migrationId) continue
    const lastImport = lastImportInView(source.view, migrationId)
    if (lastImport === undefined) break
    const before = await findOrdinal(source, {
      ...request,
      after: { migrationId: migrationId - 1n, recordTime: INSTANT_MAX },
    })
    for await (const runs of readRange(source, request, next, Math.min(before, next + remaining))) {
      remaining -= countUpdates(runs)
      yield runs
    }
    next = Math.max(next, before)
    for await (const runs of readImportRuns(source.db, request, {
      migrationId,
      lastImport,
      count: remaining,
    })) {
      remaining -= countUpdates(runs)
      yield runs
    }
    if (remaining === 0) return
  }
  yield* readRange(source, request, next, Math.min(source.view.updates, next + remaining))
}

/** Imports that are stored after the view was taken do not belong to it: up to which id those of it go. */
function lastImportInView({ last }: View, migrationId: bigint): Buffer | 'all' | undefined {
  if (last === undefined || migrationId > last.migrationId) return undefined
  const isLast = migrationId === last.migrationId && last.recordTime === IMPORT_RECORD_TIME
  return isLast ? Buffer.from(last.updateId) : 'all'
}

async function* readImportRuns(
  db: Db,
  request: PageRequest,
  options: { migrationId: bigint; lastImport: Buffer | 'all'; count: number },
): AsyncGenerator<Run[]> {
  const { migrationId, lastImport, count } = options
  let afterId = ''
  for (let remaining = count; remaining > 0; ) {
    const limit = Math.min(remaining, IMPORTS_PER_STEP)
    const found = await readImportsByUpdate(db, migrationId, afterId, limit)
    const rows = found.filter(
      ({ updateId }) => lastImport === 'all' || lastImport.compare(Buffer.from(updateId)) >= 0,
    )
    const last = rows.at(-1)
    if (last === undefined) return
    yield [slice(createTail(rows).bytes(request.version, request.encoding), 0, rows.length)]
    if (rows.length < limit) return
    afterId = last.updateId
    remaining -= rows.length
  }
}

function countUpdates(runs: Run[]): number {
  return runs.reduce((sum, run) => sum + run.updates, 0)
}
