import type { DirectoryEntry } from './frames-store.ts'

/**
 * The position of every frame's first update, sixteen bytes a frame, in memory. It only grows, so a
 * reader that knows how many frames it may see can search it while it grows.
 */
export type Directory = {
  readonly frames: number
  push(entry: DirectoryEntry): void
  /** The last of the first `frames` frames that starts at or before the position; -1 for none. */
  findLast(frames: number, migrationId: bigint, micros: bigint): number
}

const INITIAL_CAPACITY = 1024

export function createDirectory(): Directory {
  let frames = 0
  let migrationIds = new BigInt64Array(INITIAL_CAPACITY)
  let starts = new BigInt64Array(INITIAL_CAPACITY)
  return {
    get frames() {
      return frames
    },
    push({ migrationId, micros }) {
      if (frames === migrationIds.length) {
        migrationIds = grow(migrationIds)
        starts = grow(starts)
      }
      migrationIds[frames] = migrationId
      starts[frames] = micros
      frames += 1
    },
    findLast(count, migrationId, micros) {
      let low = 0
      let high = count
      while (low < high) {
        const middle = (low + high) >>> 1
        const m = migrationIds[middle] as bigint
        if (m < migrationId || (m === migrationId && (starts[middle] as bigint) <= micros)) {
          low = middle + 1
        } else {
          high = middle
        }
      }
      return low - 1
    },
  }
}

function grow(array: BigInt64Array<ArrayBuffer>): BigInt64Array<ArrayBuffer> {
  const larger = new BigInt64Array(array.length * 2)
  larger.set(array)
  return larger
}
