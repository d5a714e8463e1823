/** How many updates a page should have: as many as make it large enough to be worth the question. */
export type PageSize = {
  readonly current: number
  /** How large an update of the last page was; undefined before the first. */
  readonly bytesPerUpdate: Bytes | undefined
  /** A whole page came, with so many bytes. */
  grow(updates: number, bytes: Bytes): void
  /** The page was too much for those who were asked. */
  shrink(): void
}

/** In each encoding. */
type Bytes = { protobuf: number; compact: number }

/** Scans of the deployed network allow no more. */
export const PAGE_SIZE_MAX = 1000
const FIRST_SIZE = 100
/** Scans of our kind keep updates in frames of so many. */
const STEP = 25
/** Both encodings together. */
const TARGET_BYTES = 8 * 1024 * 1024
/** So many pages after a page that was too much, a larger one is tried again. */
const CAUTIOUS_PAGES = 50

export function createPageSize(max: number = PAGE_SIZE_MAX): PageSize {
  let current = Math.min(FIRST_SIZE, max)
  let ceiling = max
  let pagesSince = 0
  let bytesPerUpdate: Bytes | undefined
  return {
    get bytesPerUpdate() {
      return bytesPerUpdate
    },
    get current() {
      return current
    },
    grow(updates, bytes) {
      pagesSince += 1
      if (pagesSince >= CAUTIOUS_PAGES) ceiling = max
      const { protobuf, compact } = bytes
      bytesPerUpdate = { protobuf: protobuf / updates, compact: compact / updates }
      const fitting = Math.floor((TARGET_BYTES * updates) / Math.max(1, protobuf + compact))
      const wanted = Math.min(ceiling, current * 2, Math.max(1, fitting))
      current = wanted >= STEP ? wanted - (wanted % STEP) : wanted
    },
    shrink() {
      current = Math.max(1, Math.floor(current / 2))
      ceiling = current
      pagesSince = 0
    },
  }
}
