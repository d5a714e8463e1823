import type { Exchange } from '../../src/http/exchange.ts'

/** What a scan answers to a path: a status and JSON, nothing at all, or nothing ever. */
export type Answer = { status: number; json: unknown } | 'away' | 'hangs'

export type AnsweringScans = {
  exchange: Exchange
  /** By the host, such as `a.test`. */
  asked: string[]
}

/** Scans in this process that answer as the function says. */
export function createAnsweringScans(
  answer: (host: string, path: string) => Answer,
): AnsweringScans {
  const asked: string[] = []
  return {
    asked,
    async exchange(url, { signal, onHead, onChunk }) {
      const { hostname, pathname } = new URL(url)
      asked.push(hostname)
      const given = answer(hostname, pathname.replace('/api/scan', ''))
      await new Promise(setImmediate)
      if (given === 'away') throw new Error('connect ECONNREFUSED')
      if (given === 'hangs') {
        await new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('given up')), { once: true })
        })
        return
      }
      onHead(given.status, () => undefined)
      onChunk(Buffer.from(JSON.stringify(given.json)))
    },
  }
}
