import { DatabaseUnavailable } from './db-error.ts'

// A statement that takes longer is either long or lost; asking the server tells which.
const SILENCE_MS = 2_000
// How soon after its return a server that was given up is used again.
const RETRY_MS = 500

export type ServerWatch = {
  /** Runs the work, which fails as soon as the server is found to answer nobody. */
  guard<T>(work: () => Promise<T>): Promise<T>
  close(): void
}

/**
 * Tells a long statement from a lost server. A server that is killed breaks its connections, but one
 * that is stopped, frozen or cut off leaves them silent for minutes. When work has been silent for a
 * while, the probe asks for a new connection: if that is silent too, all work fails at once, and new
 * work is refused at once, until the probe, repeated, gets an answer.
 */
export function watchServer({
  probe,
  onLost,
  silenceMs = SILENCE_MS,
}: {
  /** Resolves to whether the server answered within a short time; never rejects. */
  probe: () => Promise<boolean>
  onLost: () => void
  silenceMs?: number | undefined
}): ServerWatch {
  const silent = new Set<(error: Error) => void>()
  let lost = false
  let closed = false
  let probing = false
  let retry: NodeJS.Timeout | undefined

  async function ask(): Promise<void> {
    if (probing || closed) return
    probing = true
    const answered = await probe()
    probing = false
    lost = !answered
    if (answered || closed) return
    for (const reject of silent) reject(noAnswer())
    onLost()
    clearTimeout(retry)
    retry = setTimeout(ask, RETRY_MS)
    retry.unref()
  }

  return {
    async guard(work) {
      if (lost) throw noAnswer()
      const { promise, reject } = Promise.withResolvers<never>()
      silent.add(reject)
      const timer = setInterval(ask, silenceMs)
      try {
        return await Promise.race([work(), promise])
      } finally {
        clearInterval(timer)
        silent.delete(reject)
      }
    },
    close() {
      closed = true
      clearTimeout(retry)
    },
  }
}

function noAnswer(): DatabaseUnavailable {
  return new DatabaseUnavailable(
    'The PostgreSQL server is silent. Check that it runs and can be reached.',
  )
}
