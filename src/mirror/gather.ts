import type { Peer, Peers } from './peers.ts'

/** One more peer is asked whenever the others let us wait so long. */
const HEDGE_MS = 5_000

export type Decision<Result> =
  | { result: Result }
  /**
   * Enough is known, but a little patience may make it better: decide again after this time, and ask
   * all other peers at once when those who answered differ.
   */
  | { waitMs: number; isDisputed?: boolean }
  | undefined

export type GatherOptions<Answer, Result> = {
  peers: Peers
  /** Undefined when the peer gave nothing that could help. */
  ask(peer: Peer, signal: AbortSignal): Promise<Answer | undefined>
  /** Called after each answer with all so far, and who is still to answer. */
  decide(
    answers: ReadonlyMap<Peer, Answer>,
    around: { isSettled: boolean; pending: ReadonlySet<Peer> },
  ): Promise<Decision<Result>> | Decision<Result>
  /** Told of what comes after the result: it may contradict it. */
  onLate?: (peer: Peer, answer: Answer, result: Result) => void
  signal?: AbortSignal | undefined
}

/**
 * Asks as many peers as the sizes say, in parallel, and another for each that does not help, until
 * the answers so far decide or all peers were asked. Undefined when they did not decide.
 */
export async function gather<Answer, Result>(
  options: GatherOptions<Answer, Result>,
): Promise<Result | undefined> {
  const { peers, ask, decide, signal } = options
  const candidates = peers.order()
  const answers = new Map<Peer, Answer>()
  const stop = new AbortController()
  const onAbort = () => stop.abort()
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) stop.abort()
  const pending = new Set<Peer>()
  let ended: { result: Result } | 'without' | undefined
  let arrived = Promise.withResolvers<void>()

  async function askNext(): Promise<void> {
    const peer = candidates.shift()
    if (peer === undefined) return
    pending.add(peer)
    const answer = await ask(peer, stop.signal)
    pending.delete(peer)
    if (ended !== undefined) {
      if (pending.size === 0) signal?.removeEventListener('abort', onAbort)
      if (ended !== 'without' && answer !== undefined && !stop.signal.aborted) {
        options.onLate?.(peer, answer, ended.result)
      }
      return
    }
    if (answer !== undefined) answers.set(peer, answer)
    else if (!stop.signal.aborted) void askNext()
    arrived.resolve()
  }

  for (let n = peers.sizes().ask; n > 0; n -= 1) void askNext()
  while (!stop.signal.aborted) {
    const seen = answers.size
    const decision = await decide(answers, { isSettled: pending.size === 0, pending })
    if (decision !== undefined && 'result' in decision) {
      ended = decision
      break
    }
    if (answers.size > seen) continue
    if (decision?.isDisputed) {
      while (candidates.length > 0) void askNext()
    }
    if (pending.size === 0 && decision === undefined) {
      if (candidates.length === 0) break
      void askNext()
    }
    const waitMs = Math.min(HEDGE_MS, decision?.waitMs ?? HEDGE_MS)
    const isLate = await isSilent(arrived.promise, waitMs)
    if (!isLate) arrived = Promise.withResolvers<void>()
    else if (decision === undefined) void askNext()
  }
  if (pending.size === 0) signal?.removeEventListener('abort', onAbort)
  if (ended !== undefined) return (ended as { result: Result }).result
  ended = 'without'
  stop.abort()
  return undefined
}

async function isSilent(arrival: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), ms)
  })
  try {
    return await Promise.race([arrival.then(() => false), late])
  } finally {
    clearTimeout(timer)
  }
}
