import type { FastifyInstance, InjectOptions } from 'fastify'

/** A request to an API, and its answer as text: the one shape for our own routes and for remote ones. */
export type HttpCall = (request: HttpRequest) => Promise<HttpAnswer>

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With its query; what comes before it belongs to the call. */
  path: string
  headers?: Record<string, string>
  body?: string
  signal?: AbortSignal
}

export type HttpAnswer = {
  status: number
  body: string
  /** The header of the name in small letters, where the caller of a remote server may want one. */
  header?: (name: string) => string | null
}

/** No answer came, so nobody knows whether the request was carried out. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/** The longest that a request may take, waiting for something to happen included. */
const TIMEOUT_MS = 30_000
/** A page of ten thousand contracts with room to spare; more is no answer of an API like ours. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

/** Calls the routes of an app of this process: real routes, tokens and rights, but no socket. */
export function callOwnRoutes(app: FastifyInstance): HttpCall {
  return async ({ method, path, headers = {}, body, signal }) => {
    const options: InjectOptions = { method, url: path, headers }
    if (body !== undefined) options.payload = body
    const answer = app.inject(options)
    const { statusCode, body: text } = await (signal === undefined
      ? answer
      : orAbort(answer, signal))
    return { status: statusCode, body: text }
  }
}

/** Calls a server elsewhere. */
export function callRemote(fetch: typeof globalThis.fetch, baseUrl: string): HttpCall {
  const base = baseUrl.replace(/\/+$/, '')
  const { origin } = new URL(base)
  return async ({ method, path, headers = {}, body, signal }) => {
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const init: RequestInit = {
      method,
      headers,
      redirect: 'error',
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      ...(body === undefined ? {} : { body }),
    }
    try {
      const response = await fetch(`${base}${path}`, init)
      const { status, headers } = response
      return { status, body: await readBounded(response), header: (name) => headers.get(name) }
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      throw new NoAnswer(`${origin} does not answer (${reasonOf(error)}).`)
    }
  }
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new RangeError('the answer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The answer of a route that waits is no longer wanted once the caller stops. */
function orAbort<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function reasonOf(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string } }
  return cause?.code ?? (name === 'TimeoutError' ? 'no answer in time' : message)
}
