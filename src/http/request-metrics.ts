import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sizeBuckets } from '../metrics/histogram.ts'
import type { Registry } from '../metrics/registry.ts'

export type RequestMetricsOptions = {
  registry: Registry
  service: string
  /** Operation ids of the app's OpenAPI document, see `operationIds`. */
  operations: OperationIds
}

/** Ids by method and path, the names of parameters left out: `GET /v2/users/{}`. */
export type OperationIds = ReadonlyMap<string, string>

/** The measures of one route and method. */
type RouteMeasures = {
  inflight: { inc(): void; dec(): void }
  requestBytes: { observe(bytes: number): void }
  responseBytes: { observe(bytes: number): void }
  /** By status; negative where the connection broke off. */
  outcomes: Map<number, { observe(seconds: number): void; count(): void }>
}

/** Refused before anything was done: the method, the size, the rate. */
const REJECTED = new Set([405, 413, 414, 429])

/** The operation ids of an OpenAPI document whose paths stand under the prefix. */
export function operationIds(document: { paths?: unknown }, prefix = ''): Map<string, string> {
  const ids = new Map<string, string>()
  const paths = document.paths as Record<string, Record<string, { operationId?: string }>>
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { operationId }] of Object.entries(methods)) {
      if (operationId !== undefined) {
        ids.set(`${method.toUpperCase()} ${withoutNames(prefix + path)}`, operationId)
      }
    }
  }
  return ids
}

function withoutNames(path: string): string {
  return path.replaceAll(/\{[^}]*\}|:[^/]+/g, '{}')
}

/** Measures every request of an app by its route; what a client can choose never becomes a label. */
export function measureRequests(app: FastifyInstance, options: RequestMetricsOptions): void {
  const { registry, service, operations } = options
  const byOperation = ['http_service', 'operation'] as const
  const durations = registry.histogram({
    name: 'daml_http_requests_duration_seconds',
    help: "Time from the request's head to the answer's last byte.",
    labels: [...byOperation, 'http_verb', 'path', 'status', 'status_code'],
  })
  const totals = registry.counter({
    name: 'daml_http_requests_total',
    help: 'Requests completed.',
    labels: ['service', 'http_verb', 'path', 'http_status'],
  })
  const inflight = registry.gauge({
    name: 'daml_http_requests_inflight',
    help: 'Requests being served.',
    labels: byOperation,
  })
  const requestBytes = registry.histogram({
    name: 'daml_http_requests_payload_bytes',
    help: 'Sizes of request bodies.',
    labels: byOperation,
    buckets: sizeBuckets,
  })
  const responseBytes = registry.histogram({
    name: 'daml_http_responses_payload_bytes',
    help: 'Sizes of answers, as sent.',
    labels: byOperation,
    buckets: sizeBuckets,
  })
  // Bounded by the routes that we register and the methods that Node can read.
  const routes = new Map<string, Map<string, RouteMeasures>>()

  function operationOf(method: string, path: string): string {
    if (path === 'unknown') return path
    const route = withoutNames(path)
    const asked = method === 'HEAD' ? 'GET' : method
    return operations.get(`${asked} ${route}`) ?? `${method} ${path}`
  }

  function measuresOf(method: string, path: string): RouteMeasures {
    const methods = routes.get(path) ?? new Map<string, RouteMeasures>()
    const known = methods.get(method)
    if (known !== undefined) return known
    const labels = { http_service: service, operation: operationOf(method, path) }
    const made: RouteMeasures = {
      inflight: inflight.labels(labels),
      requestBytes: requestBytes.labels(labels),
      responseBytes: responseBytes.labels(labels),
      outcomes: new Map(),
    }
    routes.set(path, methods.set(method, made))
    return made
  }

  function outcomeOf(route: RouteMeasures, method: string, path: string, end: End) {
    const key = end.isBroken ? -end.status : end.status
    const known = route.outcomes.get(key)
    if (known !== undefined) return known
    const isRejected = path === 'unknown' || REJECTED.has(end.status)
    const duration = durations.labels({
      http_service: service,
      operation: operationOf(method, path),
      http_verb: method,
      path,
      status: end.isBroken ? 'failure' : isRejected ? 'rejected' : 'completed',
      status_code: end.status,
    })
    const total = totals.labels({ service, http_verb: method, path, http_status: end.status })
    const made = {
      observe: (seconds: number) => duration.observe(seconds),
      count: () => total.inc(),
    }
    route.outcomes.set(key, made)
    return made
  }

  app.addHook('onRequest', (request, reply, done) => {
    const startedAt = performance.now()
    const { method } = request
    const path = request.routeOptions.url ?? 'unknown'
    const route = measuresOf(method, path)
    const { raw } = reply
    const sentBefore = raw.socket?.bytesWritten ?? 0
    route.inflight.inc()
    // Fastify's own hook for answers does not come when the client has gone away before the end.
    raw.on('close', () => {
      route.inflight.dec()
      const isBroken = !raw.writableFinished
      const outcome = outcomeOf(route, method, path, { status: reply.statusCode, isBroken })
      outcome.observe((performance.now() - startedAt) / 1000)
      outcome.count()
      const received = bodyBytes(request)
      if (received !== undefined) route.requestBytes.observe(received)
      if (!isBroken) route.responseBytes.observe(sentBytes(request, reply, sentBefore))
    })
    done()
  })
}

type End = { status: number; isBroken: boolean }

/** Bodies are read whole, as bytes; undefined where there is none. */
function bodyBytes({ body }: FastifyRequest): number | undefined {
  return body instanceof Uint8Array ? body.length : undefined
}

/** A streamed answer does not know its length before; then what the connection has sent tells it. */
function sentBytes(request: FastifyRequest, reply: FastifyReply, sentBefore: number): number {
  const length = reply.raw.getHeader('content-length')
  if (length !== undefined) return Number(length)
  return Math.max(0, (request.raw.socket?.bytesWritten ?? 0) - sentBefore)
}
