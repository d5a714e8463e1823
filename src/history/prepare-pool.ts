import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { PageKeys } from './item-key.ts'
import { splitLines } from './lines.ts'
import type { PageBorders, PreparedPage } from './prepare-page.ts'
import type { PrepareRequest, PrepareResult } from './prepare-worker.ts'

/** Threads that check and encode lines: most of an import's work. */
export type PreparePool = {
  readonly threads: number
  prepare(block: { bytes: Uint8Array; firstLine: number }): Promise<PrepareResult>
  /** A page that scans agreed on; large bodies travel to the thread and are gone for the caller. */
  preparePage(page: PageBodies): Promise<PreparedPage>
  /** What the items of pages of one encoding say; the caller keeps the bodies. */
  pageKeys(bodies: readonly Uint8Array[]): Promise<PageKeys[]>
  close(): Promise<void>
}

export type PageBodies = {
  protobuf: Uint8Array
  compact: Uint8Array
  count: number
  isProof?: boolean
  borders?: PageBorders | undefined
}

/** A block's objects die together; with room for them all the collector has little to copy. */
const YOUNG_MB = 64

type Answer = { id: number }
type Waiting = { resolve(result: Answer): void; reject(error: Error): void }
type NewRequest = PrepareRequest extends infer Each
  ? Each extends PrepareRequest
    ? Omit<Each, 'id'>
    : never
  : never

export function startPreparePool(options: { threads: number }): PreparePool {
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  const workers = Array.from({ length: options.threads }, () => {
    // A built package has .js files where the sources have .ts.
    const file = new URL(`./prepare-worker${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(file, { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } })
    worker.on('message', (result: Answer) => {
      waiting.get(result.id)?.resolve(result)
      waiting.delete(result.id)
    })
    worker.on('error', (error) => {
      for (const { reject } of waiting.values()) reject(error as Error)
      waiting.clear()
    })
    return worker
  })
  function ask<T extends Answer>(request: NewRequest, moved: ArrayBuffer[] = []): Promise<T> {
    lastId += 1
    const id = lastId
    const worker = workers[id % workers.length] as Worker
    const result = new Promise<Answer>((resolve, reject) => {
      waiting.set(id, { resolve, reject })
    })
    worker.postMessage({ ...request, id }, moved)
    return result as Promise<T>
  }
  return {
    threads: options.threads,
    prepare: ({ bytes, firstLine }) =>
      ask<PrepareResult>({ kind: 'lines', bytes, firstLine }, [bytes.buffer as ArrayBuffer]),
    async preparePage(page) {
      const { page: prepared } = await ask<Answer & { page: PreparedPage }>(
        { kind: 'page', ...page },
        ownBuffers(page),
      )
      return prepared
    },
    async pageKeys(bodies) {
      const { pages } = await ask<Answer & { pages: PageKeys[] }>({
        kind: 'keys',
        bodies: [...bodies],
      })
      return pages
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}

/** Small buffers are parts of one that others use too. */
function ownBuffers({ protobuf, compact }: PageBodies): ArrayBuffer[] {
  const buffers = new Set([protobuf.buffer, compact.buffer] as ArrayBuffer[])
  return [...buffers].filter(({ byteLength }) => byteLength > Buffer.poolSize)
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
