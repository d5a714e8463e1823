import { randomUUID } from 'node:crypto'
import type { AddressInfo, Socket } from 'node:net'
import { type TlsOptions, Server as TlsServer } from 'node:tls'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type HTTPMethods,
  LogController,
} from 'fastify'

/** How the errors of a port look: the one place where they become answers. */
export type ErrorShape = {
  errorHandler(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply
  notFoundHandler(request: FastifyRequest, reply: FastifyReply): FastifyReply
  /** The JSON body for what is not even a request. */
  malformedBody(status: number, sentence: string): string
}

export type ServerOptions = {
  logger: FastifyBaseLogger
  bodyBytesMax?: number
  errors: ErrorShape
  /** Whether `/a/` and `//a` are `/a`. */
  isSlashTolerant?: boolean
  tls?: TlsOptions
}

/** Requests of all our APIs are small; the largest are administrative ones with many rights. */
const BODY_BYTES_MAX = 1024 * 1024
/** An update id of 2066 characters, percent-encoded. */
const PARAMETER_LENGTH_MAX = 3 * 2066 + 1
/** A client must send its whole request within this time. */
const REQUEST_TIMEOUT_MS = 30_000
/** Longer than the idle time of usual load balancers, so that they and not we close a connection. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000
/** A stop waits so long for answers that are under way. */
const CLOSE_TIMEOUT_MS = 10_000

const BYTES = 'application/octet-stream'

const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** A Fastify instance with our limits, bodies as bytes, and 405 answers for known paths. */
export function createServer(options: ServerOptions): FastifyInstance {
  // Fastify has a type for each kind of server; they differ in nothing that we use.
  const app: FastifyInstance = fastify({
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: options.errors.errorHandler,
    clientErrorHandler: (error, socket) => answerMalformed(error, socket, options.errors),
    bodyLimit: options.bodyBytesMax ?? BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    genReqId: () => randomUUID(),
    routerOptions: {
      maxParamLength: PARAMETER_LENGTH_MAX,
      ignoreTrailingSlash: options.isSlashTolerant ?? false,
      ignoreDuplicateSlashes: options.isSlashTolerant ?? false,
    },
    ...(options.tls === undefined ? {} : { https: options.tls }),
    return503OnClosing: false,
    forceCloseConnections: 'idle',
  })
  // Fastify would make a child for each request, with the level that the logger had when the server was
  // made. Whoever logs a request names it by its correlation id, so that all can share the one logger.
  app.setChildLoggerFactory(() => options.logger)
  app.setErrorHandler(options.errors.errorHandler)
  app.setNotFoundHandler(options.errors.notFoundHandler)
  // Clients send JSON with any Content-Type or with none; each route reads its own body.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  // Even the catch-all parser refuses a Content-Type that is none.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.headers['content-type'] !== undefined) request.headers['content-type'] = BYTES
    done()
  })
  closeIdleConnections(app)
  return app
}

/** What Node's parser refuses never becomes a request, so the answer is written by hand. */
function answerMalformed(
  error: NodeJS.ErrnoException,
  socket: Socket,
  { malformedBody }: ErrorShape,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, sentence] = MALFORMED[error.code ?? ''] ?? [
    '400 Bad Request',
    'This is not a valid HTTP request.',
  ]
  const body = malformedBody(Number.parseInt(status, 10), sentence)
  const length = Buffer.byteLength(body)
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`,
  )
}

const MALFORMED: Record<string, [status: string, sentence: string]> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'The headers of the request are too large.',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request did not arrive in time.'],
}

/**
 * When the server closes, Node ends the connections that are idle at that moment, but neither those
 * that become idle later nor those on which nothing was ever asked; they would hold up a stop.
 */
function closeIdleConnections(app: FastifyInstance): void {
  const idle = new Set<Socket>()
  let isClosing = false
  const connected = app.server instanceof TlsServer ? 'secureConnection' : 'connection'
  app.server.on(connected, (socket: Socket) => {
    idle.add(socket)
    socket.on('close', () => idle.delete(socket))
  })
  app.server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    response.on('close', () => {
      if (isClosing) socket.destroySoon()
      else if (!socket.destroyed) idle.add(socket)
    })
  })
  app.addHook('preClose', async () => {
    isClosing = true
    for (const socket of idle) socket.destroy()
  })
}

/** Registers routes such that the other methods of their paths are refused, with what is allowed. */
export async function registerRoutes(
  app: FastifyInstance,
  options: {
    prefix?: string
    routes: (scope: FastifyInstance) => Promise<void> | void
    methodNotAllowed: (allowed: string[]) => Error
    /** What an OPTIONS request is told besides the methods. */
    optionsHeaders?: Record<string, string>
  },
): Promise<void> {
  const known = new Map<string, Set<string>>()
  await app.register(
    async (scope) => {
      scope.addHook('onRoute', ({ url, method }) => {
        const methods = known.get(url) ?? new Set()
        for (const name of [method].flat()) {
          methods.add(name)
          // Fastify adds these by itself, later.
          if (name === 'GET') methods.add('HEAD')
        }
        known.set(url, methods)
      })
      await options.routes(scope)
    },
    { prefix: options.prefix ?? '' },
  )
  for (const [url, methods] of known) {
    const allowed = [...methods]
    const others = METHODS.filter((method) => !methods.has(method) && method !== 'OPTIONS')
    const refuse = async () => Promise.reject(options.methodNotAllowed(allowed))
    app.route({ method: others, url, handler: refuse })
    app.options(url, (_request, reply) =>
      reply
        .headers({ allow: allowed.join(', '), ...options.optionsHeaders })
        .code(204)
        .send(),
    )
  }
}

export async function listen(
  app: FastifyInstance,
  options: { host: string; port: number },
): Promise<string> {
  // Fastify would tell of each port; the node tells of all at once, when it is ready.
  const { level } = app.log
  app.log.level = 'warn'
  await app.listen(options)
  app.log.level = level
  const { address, family, port } = app.server.address() as AddressInfo
  const host = family === 'IPv6' ? `[${address}]` : address
  return `${app.server instanceof TlsServer ? 'https' : 'http'}://${host}:${port}`
}

/** Lets answers that are under way finish, for a bounded time. */
export async function closeServer(app: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => app.server.closeAllConnections(), CLOSE_TIMEOUT_MS)
  try {
    await app.close()
  } finally {
    clearTimeout(timer)
  }
}
