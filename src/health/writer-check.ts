import type { Check } from './checks.ts'

/** What the check must know of the history's writer. */
export type Writer = {
  /** When the append that is under way began, in milliseconds of `now`; undefined when none is. */
  appendingSince(): number | undefined
  /** Whether the right to write is this node's: held, lost for now, or taken by another node. */
  place(): 'held' | 'lost' | 'taken'
  now?: () => number
}

/**
 * A batch takes a second on a slow disk, and statements are ended after a minute; what has lasted
 * this long waits for something that does not come.
 */
export const STALLED_AFTER_MS = 30_000

export function isStalled({ appendingSince, now = () => performance.now() }: Writer): boolean {
  const since = appendingSince()
  return since !== undefined && now() - since >= STALLED_AFTER_MS
}

/** The writer holds its place and makes progress while it has work. */
export function writerCheck(writer: Writer): Check {
  return {
    name: 'history writer',
    run() {
      const place = writer.place()
      if (place === 'taken') {
        return 'Another node has become the writer of this history; stop it, or restart this node to follow it.'
      }
      if (place === 'lost') {
        return 'The lock of the history is lost together with its connection; it is claimed again as soon as the database answers.'
      }
      if (!isStalled(writer)) return undefined
      return `An append has made no progress for ${STALLED_AFTER_MS / 1000} seconds; look for a lock or a slow disk in the database.`
    },
  }
}
