import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { splitLines } from './lines.ts'
import type { PrepareRequest, PrepareResult } from './prepare-worker.ts'

/** Threads that check and encode lines: most of an import's work. */
export type PreparePool = {
  readonly threads: number
  prepare(block: { bytes: Uint8Array; firstLine: number }): Promise<PrepareResult>
  close(): Promise<void>
}

/** A block's objects die together; with room for them all the collector has little to copy. */
const YOUNG_MB = 64

type Waiting = { resolve(result: PrepareResult): void; reject(error: Error): void }

export function startPreparePool(options: { threads: number }): PreparePool {
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  const workers = Array.from({ length: options.threads }, () => {
    // A built package has .js files where the sources have .ts.
    const file = new URL(`./prepare-worker${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(file, { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } })
    worker.on('message', (result: PrepareResult) => {
      waiting.get(result.id)?.resolve(result)
      waiting.delete(result.id)
    })
    worker.on('error', (error) => {
      for (const { reject } of waiting.values()) reject(error as Error)
      waiting.clear()
    })
    return worker
  })
  return {
    threads: options.threads,
    prepare({ bytes, firstLine }) {
      lastId += 1
      const request: PrepareRequest = { id: lastId, bytes, firstLine }
      const worker = workers[lastId % workers.length] as Worker
      const result = new Promise<PrepareResult>((resolve, reject) => {
        waiting.set(request.id, { resolve, reject })
      })
      worker.postMessage(request, [bytes.buffer as ArrayBuffer])
      return result
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}

/** Keeps every thread busy with a block ahead, and yields the results in the order of the lines. */
export async function* prepareInOrder(
  pool: PreparePool,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<PrepareResult> {
  const ahead: Promise<PrepareResult>[] = []
  for await (const block of splitLines(source)) {
    const result = pool.prepare(block)
    // Whoever takes it in its turn sees the failure.
    result.catch(() => {})
    ahead.push(result)
    if (ahead.length > pool.threads * 2) yield await (ahead.shift() as Promise<PrepareResult>)
  }
  for (const result of ahead) yield await result
}
