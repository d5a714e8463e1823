import type { FastifyReply, FastifyRequest } from 'fastify'
import { LedgerError, ledgerErrorBody } from './ledger-error.ts'
import type { ErrorShape } from './server.ts'

/** A refusal that reaches the client as `{"error": "<sentence>"}`. */
export class PlainError extends Error {
  override name = 'PlainError'
  readonly status: number
  readonly headers: Record<string, string>
  constructor(status: number, sentence: string, headers: Record<string, string> = {}) {
    super(sentence)
    this.status = status
    this.headers = headers
  }
}

const BAD_ADDRESS =
  'The request cannot be read: its address has a % that is not followed by two hexadecimal digits of UTF-8 text.'

/** Why a token is none stays in the log. */
const NO_TOKEN =
  'The request carries no valid token. Send one that was made for this API and has not expired, as "Authorization: Bearer <token>".'

/** Something that the client can mend. */
export function badRequest(sentence: string): PlainError {
  return new PlainError(400, sentence)
}

export function notFound(sentence: string): PlainError {
  return new PlainError(404, sentence)
}

export function methodNotAllowed(allowed: string[]): PlainError {
  const list = allowed.join(', ')
  return new PlainError(405, `This path takes ${list} only.`, { allow: list })
}

/** The error handler of the scan and validator APIs: the one place where their errors become answers. */
export function plainErrorHandler(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const refusal = toPlainError(error, request)
  logRefusal(error, refusal, request)
  return reply
    .code(refusal.status)
    .headers({ ...refusal.headers, 'x-correlation-id': request.id })
    .type('application/json')
    .send(JSON.stringify({ error: refusal.message }))
}

/** What the operator must see at once; refusals, of which there may be many, only when looked for. */
function logRefusal(
  error: unknown,
  { status, message }: PlainError,
  request: FastifyRequest,
): void {
  const record = { correlationId: request.id, status }
  if (error instanceof LedgerError && status < 500) {
    request.log.info({ ...record, reason: error.detail ?? message }, 'request refused')
  } else if (error instanceof PlainError || status < 500) {
    request.log.debug({ ...record, reason: message }, 'request refused')
  } else if (status === 503) {
    request.log.warn({ ...record, reason: (error as Error).message }, 'request failed')
  } else {
    request.log.error({ ...record, err: error }, 'request failed')
  }
}

export function plainNotFoundHandler(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // A proxy's form of a request has the whole address, in which there may be a password.
  const path = request.url.replace(/^[^/]*\/\/[^/]*/, '').split('?')[0] as string
  const cut = path.length > 200 ? `${path.slice(0, 200)}…` : path
  return plainErrorHandler(notFound(`There is nothing at ${cut}.`), request, reply)
}

/** The error shape of the scan and validator APIs. */
export const plainErrors: ErrorShape = {
  errorHandler: plainErrorHandler,
  notFoundHandler: plainNotFoundHandler,
  malformedBody: (_status, sentence) => JSON.stringify({ error: sentence }),
}

function toPlainError(error: unknown, request: FastifyRequest): PlainError {
  if (error instanceof PlainError) return error
  if (error instanceof LedgerError) {
    // The users' part refuses in the ledger's words; what it keeps to itself stays untold here too.
    const { cause } = ledgerErrorBody(error, { correlationId: request.id, traceId: '' })
    const sentence = error.status === 401 ? NO_TOKEN : cause
    return new PlainError(error.status, sentence, error.headers)
  }
  const { name, code, statusCode } = error as { name?: string; code?: string; statusCode?: number }
  if (name === 'DatabaseUnavailable') {
    return new PlainError(
      503,
      `The database does not answer at the moment; try again in a few seconds. The operator of this node finds more in the log under ${request.id}.`,
      { 'retry-after': '5' },
    )
  }
  // Fastify's own sentence quotes the whole address, with what stands in its query.
  if (code === 'FST_ERR_BAD_URL') return badRequest(BAD_ADDRESS)
  if (statusCode === 413) return new PlainError(413, 'The request body is too large.')
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new PlainError(statusCode, `The request cannot be read: ${(error as Error).message}.`)
  }
  return new PlainError(
    500,
    `An internal error occurred. The operator of this node finds it in the log under ${request.id}.`,
  )
}
