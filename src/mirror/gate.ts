import { setTimeout as wait } from 'node:timers/promises'

/** Politeness towards one scan: so many questions at a time, and so many a second. */
export type Gate = {
  /**
   * Waits for its turn; the question is over when the returned function is called. Undefined when so
   * many wait that it would take too long.
   */
  enter(): Promise<(() => void) | undefined>
}

/** Both encodings of a few pages ahead, and a question besides. */
const AT_ONCE_MAX = 10
/** A quarter of what deployed scans allow to everybody together. */
const PER_SECOND_MAX = 50
/** Ten seconds of questions. */
const WAITING_MAX = 500

export function createGate(perSecond: number = PER_SECOND_MAX): Gate {
  const now = () => performance.now()
  const waiting: (() => void)[] = []
  let inside = 0
  let nextAt = 0
  return {
    async enter() {
      if (waiting.length >= WAITING_MAX) return undefined
      if (inside >= AT_ONCE_MAX) await new Promise<void>((resolve) => waiting.push(resolve))
      else inside += 1
      const at = Math.max(now(), nextAt)
      nextAt = at + 1000 / perSecond
      const ms = at - now()
      if (ms >= 1) await wait(ms)
      let isInside = true
      return () => {
        if (!isInside) return
        isInside = false
        const next = waiting.shift()
        if (next === undefined) inside -= 1
        else next()
      }
    },
  }
}
