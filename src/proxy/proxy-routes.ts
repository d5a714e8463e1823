import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PlainError } from '../http/plain-error.ts'
import type { ScanRequest } from '../scan/client.ts'
import { parseJsonExactly, printJsonExactly } from '../values/json.ts'
import { type Asked, OPERATIONS, type Operation } from './operations.ts'
import type { OnRead, ReadOutcome } from './proxy-metrics.ts'
import { NoAgreement, type ReadAnswer, type ScanReader } from './scan-reader.ts'

/** The port is open before the network is known, so the reader is asked for with every request. */
export type ProxyRoutesOptions = { reader(): ScanReader | undefined; onRead?: OnRead }
export type LateReader = ProxyRoutesOptions & { open(reader: ScanReader): void }

export function createLateReader(onRead: OnRead): LateReader {
  let opened: ScanReader | undefined
  return {
    reader: () => opened,
    onRead,
    open(reader) {
      opened = reader
    },
  }
}

/** A client gives up not much later. */
const TIMEOUT_MS = 30_000
/** Each holds the answers of several scans. */
const UNDER_WAY_MAX = 64
/** What a scan says in a refusal, if it is not JSON. */
const REFUSAL_LENGTH_MAX = 500

/** Reads of the network for apps, as the scans agree on them; register under `/api/validator`. */
export async function proxyRoutes(
  app: FastifyInstance,
  { reader, onRead = () => {} }: ProxyRoutesOptions,
): Promise<void> {
  const underWay = { count: 0 }
  for (const operation of OPERATIONS) {
    app.route({
      method: operation.method,
      url: `/v0/scan-proxy${operation.path}`,
      async handler(request, reply) {
        const current = reader()
        if (current === undefined) throw later('The node is starting')
        if (underWay.count >= UNDER_WAY_MAX) throw later('Too many reads are under way')
        underWay.count += 1
        try {
          const wanted = operation.request(askedBy(request))
          const answer = await read(operation, current, wanted, onRead)
          return send(operation, answer, reply)
        } finally {
          underWay.count -= 1
        }
      },
    })
  }
}

async function read(
  { id, keyOf, isPage }: Operation,
  reader: ScanReader,
  wanted: ScanRequest,
  onRead: OnRead,
): Promise<ReadAnswer> {
  const options = { keyOf, signal: AbortSignal.timeout(TIMEOUT_MS) }
  try {
    const answer = isPage
      ? await reader.readPage(wanted, options)
      : await reader.read(wanted, options)
    onRead(id, outcomeOf(answer))
    return answer
  } catch (error) {
    onRead(id, error instanceof NoAgreement ? 'no-agreement' : 'failed')
    throw error
  }
}

/** Scans of the network never agree on a failure; the own scan may have one. */
function outcomeOf({ status }: ReadAnswer): ReadOutcome {
  if (status >= 500) return 'failed'
  return status === 200 ? 'agreed' : 'refused'
}

function send(
  { shape }: Operation,
  { status, text }: ReadAnswer,
  reply: FastifyReply,
): FastifyReply {
  reply.type('application/json')
  if (status !== 200) return reply.code(status).send(refusalText(text))
  return reply.send(shape === undefined ? text : printJsonExactly(shape(parseJsonExactly(text))))
}

function askedBy(request: FastifyRequest): Asked {
  const { url, body } = request
  const at = url.indexOf('?')
  return {
    params: request.params as Record<string, string>,
    query: at === -1 ? '' : url.slice(at),
    body: Buffer.isBuffer(body) ? body.toString('utf8') : '',
  }
}

/** What the scans refuse alike is told in their words. */
function refusalText(text: string): string {
  try {
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify({ error: text.slice(0, REFUSAL_LENGTH_MAX) })
  }
}

function later(reason: string): PlainError {
  return new PlainError(503, `${reason}; try again in a few seconds.`, { 'retry-after': '2' })
}
