import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorShape } from './server.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** 32 hex digits: the client's W3C trace, or one of our own. */
    traceId: string
  }
}

/** The largest body that the ledger API takes; upstream's limit. */
export const LEDGER_BODY_BYTES_MAX = 10 * 1024 * 1024
/** Longer sentences are cut: an error must fit a log line and a terminal. */
const CAUSE_CHARACTERS_MAX = 512
/** Entries of `context` are hints, not documents. */
const CONTEXT_VALUE_CHARACTERS_MAX = 256
/** Upstream keeps a whole error under 4 KiB; ids are at most 255 characters, so 8 resources fit. */
const RESOURCES_MAX = 8

/** The categories of ledger errors: each decides the HTTP status and the gRPC code. */
const CATEGORIES = {
  transient: { id: 1, grpc: 14, status: 503, retry: true, redacted: false },
  contention: { id: 2, grpc: 10, status: 409, retry: true, redacted: false },
  deadline: { id: 3, grpc: 4, status: 504, retry: true, redacted: false },
  internal: { id: 4, grpc: 13, status: 500, retry: false, redacted: true },
  unauthenticated: { id: 6, grpc: 16, status: 401, retry: false, redacted: true },
  denied: { id: 7, grpc: 7, status: 403, retry: false, redacted: true },
  invalid: { id: 8, grpc: 3, status: 400, retry: false, redacted: false },
  precondition: { id: 9, grpc: 9, status: 400, retry: false, redacted: false },
  exists: { id: 10, grpc: 6, status: 409, retry: false, redacted: false },
  missing: { id: 11, grpc: 5, status: 404, retry: false, redacted: false },
  outOfRange: { id: 12, grpc: 11, status: 400, retry: true, redacted: false },
  unsupported: { id: 14, grpc: 12, status: 501, retry: false, redacted: true },
} as const

export type LedgerErrorCategory = keyof typeof CATEGORIES

export type LedgerErrorOptions = {
  code: string
  category: LedgerErrorCategory
  /** The sentence for the client: what went wrong and what to do. */
  cause: string
  context?: Record<string, string>
  resources?: [type: string, name: string][]
  /** For the few HTTP conditions (405, 413 …) that no category knows. */
  status?: number
  headers?: Record<string, string>
  /** For the log only: what a redacted answer does not say. Never a token, never a secret. */
  detail?: string
}

/** A refusal that reaches the client as the ledger error body. */
export class LedgerError extends Error {
  override name = 'LedgerError'
  readonly code: string
  readonly category: LedgerErrorCategory
  readonly context: Record<string, string>
  readonly resources: [type: string, name: string][]
  readonly status: number
  readonly headers: Record<string, string>
  readonly detail: string | undefined

  constructor(options: LedgerErrorOptions) {
    super(options.cause)
    this.code = options.code
    this.category = options.category
    this.context = options.context ?? {}
    this.resources = options.resources ?? []
    this.status = options.status ?? CATEGORIES[options.category].status
    this.headers = options.headers ?? {}
    this.detail = options.detail
  }
}

/** All ten keys, always, in this order; `null` where there is nothing to say. */
export type LedgerErrorBody = {
  code: string
  cause: string
  correlationId: string | null
  traceId: string | null
  context: Record<string, string>
  resources: [type: string, name: string][]
  errorCategory: number
  grpcCodeValue: number | null
  retryInfo: string | null
  definiteAnswer: boolean | null
}

/** The JSON body of an error. Redacted categories say nothing but how to ask the operator. */
export const ledgerErrorBody = (
  error: LedgerError,
  ids: { correlationId: string; traceId: string },
): LedgerErrorBody => {
  const category = CATEGORIES[error.category]
  if (category.redacted) {
    return {
      code: 'NA',
      cause:
        'The request was refused for a reason that is not told here. Ask the operator of this node, who finds it in the log under the correlation id.',
      ...ids,
      context: {},
      resources: [],
      errorCategory: -1,
      grpcCodeValue: category.grpc,
      retryInfo: null,
      definiteAnswer: null,
    }
  }
  const context: Record<string, string> = {
    category: String(category.id),
    definite_answer: 'false',
    tid: ids.traceId,
  }
  for (const [key, value] of Object.entries(error.context)) {
    context[key] = cut(value, CONTEXT_VALUE_CHARACTERS_MAX)
  }
  return {
    code: error.code,
    cause: cut(error.message, CAUSE_CHARACTERS_MAX),
    ...ids,
    context,
    resources: error.resources
      .slice(0, RESOURCES_MAX)
      .map(([type, name]) => [type, cut(name, CONTEXT_VALUE_CHARACTERS_MAX)]),
    errorCategory: category.id,
    grpcCodeValue: category.grpc,
    retryInfo: category.retry ? '1 second' : null,
    definiteAnswer: false,
  }
}

/** The error as a gRPC status, as completions tell it. */
export const grpcStatusOf = (error: LedgerError): { code: number; message: string } => {
  const { id, grpc } = CATEGORIES[error.category]
  return {
    code: grpc,
    message: `${error.code}(${id},0): ${cut(error.message, CAUSE_CHARACTERS_MAX)}`,
  }
}

/** The one place where an error of the ledger API becomes an answer. */
export const ledgerErrorHandler = (
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply => {
  const ledgerError = toLedgerError(error)
  // A path that cannot be read has not been through the hook that gives trace ids.
  const traceId = request.traceId || traceIdOf(request.headers.traceparent)
  const ids = { correlationId: newTraceId(), traceId }
  const record = { ...ids, code: ledgerError.code, status: ledgerError.status }
  if (ledgerError.category === 'transient') {
    // The health check that fails tells it once and for all; a stack for each request tells no more.
    const reason = cut((error as Error).message, CAUSE_CHARACTERS_MAX)
    request.log.warn({ ...record, reason }, 'ledger API request failed')
  } else if (ledgerError.status >= 500) {
    request.log.error({ ...record, err: error }, 'ledger API request failed')
  } else {
    const reason = ledgerError.detail ?? cut(ledgerError.message, CAUSE_CHARACTERS_MAX)
    request.log.info({ ...record, reason }, 'ledger API request refused')
  }
  if (!reply.hasHeader('traceparent')) reply.header('traceparent', traceparent(ids.traceId))
  // Fastify closes the connection on a body that is too large, and a client that is still sending
  // would see a broken connection instead of the answer. The rest is thrown away as it comes.
  if (ledgerError.status === 413) reply.removeHeader('connection')
  return reply
    .code(ledgerError.status)
    .headers(ledgerError.headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(ledgerErrorBody(ledgerError, ids)))
}

export const ledgerNotFoundHandler = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  ledgerErrorHandler(unknownPath(), request, reply)

/** For what is not even a request. */
const ledgerMalformedBody = (status: number, sentence: string): string => {
  const error = new LedgerError({
    code: 'INVALID_ARGUMENT',
    category: 'invalid',
    cause: sentence,
    status,
  })
  return JSON.stringify(
    ledgerErrorBody(error, { correlationId: newTraceId(), traceId: newTraceId() }),
  )
}

/** The error shape of the ledger API. */
export const ledgerErrors: ErrorShape = {
  errorHandler: ledgerErrorHandler,
  notFoundHandler: ledgerNotFoundHandler,
  malformedBody: ledgerMalformedBody,
}

export const ledgerMethodNotAllowed = (allowed: string[]): LedgerError =>
  new LedgerError({
    code: 'METHOD_NOT_ALLOWED',
    category: 'invalid',
    cause: `This path does not take that method. It takes ${allowed.join(', ')}.`,
    status: 405,
    headers: { allow: allowed.join(', ') },
  })

/** Gives every request of the instance a trace id, and tells it in the answer. */
export const addTraceIds = (app: FastifyInstance): void => {
  app.decorateRequest('traceId', '')
  app.addHook('onRequest', (request, reply, done) => {
    request.traceId = traceIdOf(request.headers.traceparent)
    reply.header('traceparent', traceparent(request.traceId))
    done()
  })
}

/** The trace id of a W3C `traceparent`, or a new one when there is none that can be read. */
export const traceIdOf = (header: string | string[] | undefined): string => {
  const match =
    typeof header === 'string'
      ? /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/.exec(
          header,
        )
      : null
  return match?.[1] ?? newTraceId()
}

export const badRequest = (cause: string): LedgerError =>
  new LedgerError({ code: 'INVALID_ARGUMENT', category: 'invalid', cause })

const unknownPath = (): LedgerError =>
  new LedgerError({
    code: 'NOT_FOUND',
    category: 'missing',
    cause:
      'There is nothing under this path. The operations of this API are listed at /openapi.json.',
  })

/** Any failure as an error of the API. */
export const toLedgerError = (error: unknown): LedgerError => {
  if (error instanceof LedgerError) return error
  const { code, statusCode, message } = error as Partial<{
    code: unknown
    statusCode: unknown
    message: string
  }>
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new LedgerError({
      code: 'REQUEST_TOO_LARGE',
      category: 'invalid',
      cause: 'The body of the request is too large. Send less at a time.',
      status: 413,
    })
  }
  // Fastify's own sentence quotes the whole address, with what stands in its query.
  if (code === 'FST_ERR_BAD_URL') {
    return badRequest(
      'The request cannot be read: its address has a % that is not followed by two hexadecimal digits of UTF-8 text.',
    )
  }
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new LedgerError({
      code: 'INVALID_ARGUMENT',
      category: 'invalid',
      cause: `The request cannot be read: ${message ?? 'it is malformed'}`,
      status: statusCode,
    })
  }
  if (isStoreAway(error)) {
    return new LedgerError({
      code: 'INDEX_DB_SQL_TRANSIENT_ERROR',
      category: 'transient',
      cause: 'The database of this node does not answer now. Try again in a moment.',
    })
  }
  return new LedgerError({
    code: 'LEDGER_API_INTERNAL_ERROR',
    category: 'internal',
    cause: 'Something inside this node failed.',
  })
}

/**
 * The store says itself when it is away. Beside that, PostgreSQL's classes 08 (connection), 53
 * (resources), 57P (shutdown) and 40 (serialization), and SQLite's "busy" and "locked", all pass.
 */
const isStoreAway = (error: unknown): boolean => {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined
  return (
    typeof code === 'string' &&
    /^(DatabaseUnavailable|SQLITE_BUSY.*|SQLITE_LOCKED.*|(08|53|40)[0-9A-Z]{3}|57P0[1-5]|55P03)$/.test(
      code,
    )
  )
}

const cut = (text: string, charactersMax: number): string =>
  text.length <= charactersMax ? text : `${text.slice(0, charactersMax).toWellFormed()}...`

const newTraceId = (): string => randomUUID().replaceAll('-', '')

const traceparent = (traceId: string): string => `00-${traceId}-${newTraceId().slice(16)}-01`
