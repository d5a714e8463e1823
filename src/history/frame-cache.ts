import assert from 'node:assert/strict'
import { createByteCache } from '../base/byte-cache.ts'
import type { Db } from '../db/db.ts'
import type { Encoding } from './encode.ts'
import { FRAME_UPDATES, type FrameIndex, openFrame, readIndex } from './frame.ts'
import { readFrames, type StoredFrame } from './frames-store.ts'
import { type FrameBytes, toVersion, type Version } from './versions.ts'

export type OpenFrame = FrameBytes & { number: number; index: FrameIndex }

export type FrameCache = {
  /** Sealed frames with numbers from `from` (included) to `to` (excluded). */
  read(version: Version, encoding: Encoding, from: number, to: number): Promise<OpenFrame[]>
  /** The same when all of them are in the cache, without waiting. */
  peek(version: Version, encoding: Encoding, from: number, to: number): OpenFrame[] | undefined
  readonly bytes: number
}

/** A frame's index in memory, counted on top of its bytes. */
const INDEX_BYTES = 4096

/** Decoded frames, kept while they fit into `bytesMax`. */
export function createFrameCache(options: { db: Db; bytesMax: number }): FrameCache {
  const cached = createByteCache<OpenFrame>(options.bytesMax)
  const loading = new Map<string, Promise<OpenFrame>>()

  /** Loads consecutive frames with one query; whoever asks for one of them meanwhile waits too. */
  function load(version: Version, encoding: Encoding, from: number, to: number): void {
    const rows = readFrames(options.db, encoding, from, to)
    for (let number = from; number < to; number += 1) {
      const key = cacheKey(version, encoding, number)
      const opened = rows.then((found) => {
        const row = found[number - from]
        assert.ok(row?.number === number, `frame ${number} of the history is stored`)
        const frame = decode(row, version, encoding)
        cached.put(key, frame, frame.bytes.length + INDEX_BYTES)
        return frame
      })
      loading.set(key, opened)
      opened.finally(() => loading.delete(key)).catch(() => {})
    }
  }

  function endOfGap(from: number, to: number, version: Version, encoding: Encoding): number {
    let end = from + 1
    for (; end < to; end += 1) {
      const key = cacheKey(version, encoding, end)
      if (cached.has(key) || loading.has(key)) break
    }
    return end
  }

  return {
    get bytes() {
      return cached.bytes
    },
    peek(version, encoding, from, to) {
      const frames: OpenFrame[] = []
      for (let number = from; number < to; number += 1) {
        const frame = cached.get(cacheKey(version, encoding, number))
        if (frame === undefined) return undefined
        frames.push(frame)
      }
      return frames
    },
    async read(version, encoding, from, to) {
      const frames: (OpenFrame | Promise<OpenFrame>)[] = []
      for (let number = from; number < to; number += 1) {
        const key = cacheKey(version, encoding, number)
        const known = cached.get(key) ?? loading.get(key)
        if (known === undefined) {
          load(version, encoding, number, endOfGap(number, to, version, encoding))
        }
        frames.push(known ?? (loading.get(key) as Promise<OpenFrame>))
      }
      return Promise.all(frames)
    },
  }
}

function cacheKey(version: Version, encoding: Encoding, number: number): string {
  return `${version}${encoding === 'compact_json' ? 'c' : 'p'}${number}`
}

function decode(row: StoredFrame, version: Version, encoding: Encoding): OpenFrame {
  const index = readIndex([{ bytes: row.entries, count: FRAME_UPDATES }])
  const stored = openFrame(row, index, encoding)
  return { ...toVersion(version, stored, index, encoding), number: row.number, index }
}
