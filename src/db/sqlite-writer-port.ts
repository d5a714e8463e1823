import { Worker } from 'node:worker_threads'
import type { SqlValue } from './db.ts'
import { DatabaseUnavailable, SqlError } from './db-error.ts'

type Work =
  | { kind: 'begin' }
  | { kind: 'commit' }
  | { kind: 'rollback' }
  | { kind: 'close' }
  | { kind: 'query' | 'execute'; sql: string; params: SqlValue[]; inTransaction: boolean }
  | { kind: 'executeMany'; sql: string; rows: SqlValue[][] }
  // Two lists instead of one of objects: half as long on its way.
  | { kind: 'executeAll'; texts: string[]; rows: SqlValue[][] }

export type WriterRequest = Work & { id: number }

export type WriterError = { message: string; code?: string | undefined; sql?: string | undefined }

/** The reply with id 0 comes first and says whether the connection is open. */
export type WriterReply = { id: number; value?: unknown; error?: WriterError }

export type WriterPort = {
  request(work: Work): Promise<unknown>
  /** Checkpoints, closes the connection and ends the thread. */
  close(): Promise<void>
}

type Packed = [WriterRequest, ArrayBuffer[]]
type Waiting = { resolve: (value: unknown) => void; reject: (error: Error) => void }

/** The main thread's end of the worker that writes. */
export async function startWriter(path: string): Promise<WriterPort> {
  const waiting = new Map<number, Waiting>()
  let outbox: Packed[] = []
  let lastId = 0
  let dead: Error | undefined
  // The same folder holds .ts files in the repository and .js files in a build.
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
  const worker = new Worker(new URL(`./sqlite-writer${extension}`, import.meta.url), {
    workerData: { path },
    // Options of the main program, such as `--eval`, do not fit a worker.
    execArgv: [],
  })
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))

  function fail(error: Error): void {
    dead ??= error
    for (const { reject } of waiting.values()) reject(dead)
    waiting.clear()
  }

  worker.on('message', (replies: WriterReply[]) => {
    for (const reply of replies) {
      const entry = waiting.get(reply.id)
      waiting.delete(reply.id)
      if (reply.error === undefined) entry?.resolve(reply.value)
      else entry?.reject(toError(reply.error))
    }
  })
  worker.once('error', (error) => {
    const reason = error instanceof Error ? error.message : String(error)
    fail(new DatabaseUnavailable(`The writer of ${path} has failed: ${reason}. Restart the node.`))
  })
  worker.once('exit', () => {
    fail(new DatabaseUnavailable(`The writer of ${path} has ended. Restart the node.`))
  })

  function expect(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
  }

  async function request(work: Work): Promise<unknown> {
    if (dead !== undefined) throw dead
    lastId += 1
    // Packed at once: the caller may use its buffers again as soon as this returns.
    const packed = pack({ ...work, id: lastId })
    const reply = expect(lastId)
    if (outbox.length === 0) queueMicrotask(flush)
    outbox.push(packed)
    return reply
  }

  /** Requests of one turn travel together: a message costs more than most statements. */
  function flush(): void {
    const packed = outbox
    outbox = []
    worker.postMessage(
      packed.map(([message]) => message),
      packed.flatMap(([, buffers]) => buffers),
    )
  }

  async function close(): Promise<void> {
    try {
      if (dead === undefined) await request({ kind: 'close' })
    } finally {
      await exited
    }
  }

  try {
    await expect(0)
  } catch (error) {
    await worker.terminate()
    throw cannotOpen(path, error)
  }
  return { request, close }
}

/**
 * Moves all binary parameters in one fresh buffer. The caller's own buffers are never detached: who
 * stores a frame goes on to serve it. Sending them as they are would copy the whole buffer behind
 * each view, which for a slice of a pool or a page is far more than the slice.
 */
function pack(request: WriterRequest): Packed {
  const size = sizeOf(request)
  if (size === 0) return [request, []]
  const packed = new Uint8Array(new ArrayBuffer(size))
  let end = 0
  const packValue = (value: SqlValue): SqlValue => {
    if (!(value instanceof Uint8Array)) return value
    const place = packed.subarray(end, end + value.length)
    place.set(value)
    end += value.length
    return place
  }
  const message =
    'rows' in request
      ? { ...request, rows: request.rows.map((row) => row.map(packValue)) }
      : 'params' in request
        ? { ...request, params: request.params.map(packValue) }
        : request
  return [message, [packed.buffer]]
}

function sizeOf(request: WriterRequest): number {
  if ('rows' in request) {
    return request.rows.reduce((sum, row) => sum + bytesOf(row), 0)
  }
  return 'params' in request ? bytesOf(request.params) : 0
}

/** The bytes of a row's binary values. */
export function bytesOf(values: SqlValue[]): number {
  let bytes = 0
  for (const value of values) if (value instanceof Uint8Array) bytes += value.length
  return bytes
}

function cannotOpen(path: string, error: unknown): unknown {
  if (!(error instanceof SqlError)) return error
  return new SqlError(
    `The database file ${path} cannot be opened (${error.message}); check that it is a database of this program, and the permissions of its directory.`,
    { code: error.code, sql: undefined },
  )
}

function toError({ message, code, sql }: WriterError): Error {
  return code === undefined ? new Error(message) : new SqlError(message, { code, sql })
}
