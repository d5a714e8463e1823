/**
 * Payments of one party, one after another: two that were made at the same time would want the same
 * coins, and one of them would be refused.
 */
export type Turns = {
  /** Throws `TooManyTurns` when too many wait already. */
  take<T>(party: string, work: () => Promise<T>): Promise<T>
}

/** A queue of this length takes seconds; whoever comes later is better told to come again. */
const WAITING_MAX = 100

export class TooManyTurns extends Error {
  override name = 'TooManyTurns'
}

export function createTurns(): Turns {
  const queues = new Map<string, { last: Promise<unknown>; waiting: number }>()
  return {
    async take(party, work) {
      const queue = queues.get(party) ?? { last: Promise.resolve(), waiting: 0 }
      if (queue.waiting >= WAITING_MAX) {
        throw new TooManyTurns(
          `Too many payments of ${party} are under way. Try again in a few seconds.`,
        )
      }
      queues.set(party, queue)
      queue.waiting += 1
      const turn = queue.last.then(work)
      queue.last = turn.catch(() => {})
      try {
        return await turn
      } finally {
        queue.waiting -= 1
        if (queue.waiting === 0) queues.delete(party)
      }
    },
  }
}
