/** A map bounded by the bytes it holds; the least recently used entries go first. */
export type ByteCache<T> = {
  get(key: string): T | undefined
  has(key: string): boolean
  put(key: string, value: T, bytes: number): void
  readonly bytes: number
}

/** An entry's own bookkeeping, so that many small entries count as well. */
const ENTRY_OVERHEAD_BYTES = 256

export function createByteCache<T>(bytesMax: number): ByteCache<T> {
  const entries = new Map<string, { value: T; bytes: number }>()
  let total = 0
  return {
    get bytes() {
      return total
    },
    has: (key) => entries.has(key),
    get(key) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      // A Map iterates in order of insertion: the newest use stands last.
      entries.delete(key)
      entries.set(key, entry)
      return entry.value
    },
    put(key, value, bytes) {
      total -= entries.get(key)?.bytes ?? 0
      entries.delete(key)
      const size = bytes + ENTRY_OVERHEAD_BYTES
      entries.set(key, { value, bytes: size })
      total += size
      for (const [oldest, dropped] of entries) {
        if (total <= bytesMax) break
        entries.delete(oldest)
        total -= dropped.bytes
      }
    },
  }
}
