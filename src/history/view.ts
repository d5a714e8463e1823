import type { Db } from '../db/db.ts'
import { createDirectory, type Directory } from './directory.ts'
import type { Encoding } from './encode.ts'
import { FRAME_UPDATES, type FrameIndex, joinWithCommas, readIndex } from './frame.ts'
import { readDirectory } from './frames-store.ts'
import { type HistoryState, readState } from './history-store.ts'
import { readTail, type TailRow } from './tail-store.ts'
import { type FrameBytes, toVersion, type Version } from './versions.ts'

/**
 * A prefix of the history that never changes: so many sealed frames, and the tail behind them as it
 * was. A reader takes the current view once and keeps it, however long it reads.
 */
export type View = HistoryState & { directory: Directory; tail: Tail }

/** The tail's updates, in memory; at most a frame's worth, so any version is made when asked. */
export type Tail = {
  rows: TailRow[]
  index: FrameIndex
  bytes(version: Version, encoding: Encoding): FrameBytes
}

/** Directory rows read at a time: a few milliseconds of the event loop. */
const DIRECTORY_SLICE = 10_000
/** A writer elsewhere may seal the tail between our reads; each attempt then finds newer data. */
const VIEW_ATTEMPTS_MAX = 10

/** What is stored contradicts itself; the message is for the operator. */
export class DamagedHistoryError extends Error {
  override name = 'DamagedHistoryError'
}

/** Reads what has been added since `known` (or everything) into a new view. */
export async function loadView(db: Db, known?: View): Promise<View> {
  const directory = known?.directory ?? createDirectory()
  let found = ''
  for (let attempt = 0; attempt < VIEW_ATTEMPTS_MAX; attempt += 1) {
    const state = await readState(db)
    if (known !== undefined && state.lastOffset === known.lastOffset) return known
    while (directory.frames < state.frames) {
      const limit = Math.min(DIRECTORY_SLICE, state.frames - directory.frames)
      const entries = await readDirectory(db, directory.frames, limit)
      if (entries.length === 0) break
      for (const entry of entries) directory.push(entry)
    }
    const sealed = state.frames * FRAME_UPDATES
    const rows = await readTail(db, sealed, state.updates)
    if (directory.frames >= state.frames && rows.length === state.updates - sealed) {
      return { ...state, directory, tail: createTail(rows) }
    }
    found = `it says that it has ${state.frames} frames and ${state.updates} updates, but its directory lists ${directory.frames} frames and its tail holds ${rows.length} updates`
  }
  throw new DamagedHistoryError(
    `The stored history is damaged: ${found}. Restore it from a backup, or import it into a new directory.`,
  )
}

export function createTail(rows: TailRow[]): Tail {
  const index = readIndex(rows.map((row) => ({ bytes: row.entry, count: 1 })))
  const made = new Map<string, FrameBytes>()
  return {
    rows,
    index,
    bytes(version, encoding) {
      const key = `${version} ${encoding}`
      let bytes = made.get(key)
      if (bytes === undefined) {
        const form = encoding === 'compact_json' ? 'compact' : 'protobuf'
        const joined = joinWithCommas(rows.map((row) => row[form]))
        bytes = toVersion(version, joined, index, encoding)
        made.set(key, bytes)
      }
      return bytes
    },
  }
}
