import type { Db } from '../db/db.ts'
import { countLocalParties } from './parties-store.ts'

export type TopologyPolling = { parties(): number; close(): void }

/** Counts the parties of this participant now and then; a scrape must not wait for the store. */
export function startTopologyPolling(options: {
  db: Db
  intervalMs: number
  onError: (error: unknown) => void
}): TopologyPolling {
  let parties = Number.NaN
  const poll = async () => {
    try {
      parties = await countLocalParties(options.db)
    } catch (error) {
      options.onError(error)
    }
  }
  void poll()
  const timer = setInterval(poll, options.intervalMs).unref()
  return { parties: () => parties, close: () => clearInterval(timer) }
}
