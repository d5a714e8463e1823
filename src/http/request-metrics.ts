import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sizeBuckets } from '../metrics/histogram.ts'
import type { Registry } from '../metrics/registry.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether the request counts as being served. */
    isInflight: boolean
  }
}

type Observe = {
  duration(seconds: number): void
  count(): void
  responseBytes(bytes: number): void
}

/** Measures every request of an app by its route; what a client can choose never becomes a label. */
export function measureRequests(
  app: FastifyInstance,
  options: { registry: Registry; service: string },
): void {
  const { registry, service } = options
  const durations = registry.histogram({
    name: 'daml_http_requests_duration_seconds',
    help: "Time from the request's head to the answer's last byte.",
    labels: ['http_service', 'operation', 'http_verb', 'path', 'status', 'status_code'],
  })
  const totals = registry.counter({
    name: 'daml_http_requests_total',
    help: 'Requests completed.',
    labels: ['service', 'http_verb', 'path', 'http_status'],
  })
  const inflight = registry
    .gauge({
      name: 'daml_http_requests_inflight',
      help: 'Requests being served.',
      labels: ['http_service'],
    })
    .labels({ http_service: service })
  const responseBytes = registry.histogram({
    name: 'daml_http_responses_payload_bytes',
    help: 'Sizes of answers, as sent.',
    labels: ['http_service', 'operation'],
    buckets: sizeBuckets,
  })
  // Routes times statuses: bounded by what we register, so the handles can be kept.
  const handles = new Map<string, Observe>()

  function handleOf(request: FastifyRequest, reply: FastifyReply, isAborted: boolean): Observe {
    const path = request.routeOptions.url ?? 'unknown'
    const key = `${request.method} ${path} ${reply.statusCode} ${isAborted}`
    const known = handles.get(key)
    if (known !== undefined) return known
    const operation = `${request.method} ${path}`
    const duration = durations.labels({
      http_service: service,
      operation,
      http_verb: request.method,
      path,
      status: isAborted ? 'failure' : path === 'unknown' ? 'rejected' : 'completed',
      status_code: reply.statusCode,
    })
    const total = totals.labels({
      service,
      http_verb: request.method,
      path,
      http_status: reply.statusCode,
    })
    const bytes = responseBytes.labels({ http_service: service, operation })
    const made: Observe = {
      duration: (seconds) => duration.observe(seconds),
      count: () => total.inc(),
      responseBytes: (size) => bytes.observe(size),
    }
    handles.set(key, made)
    return made
  }

  function finish(request: FastifyRequest, reply: FastifyReply, isAborted: boolean): void {
    if (!request.isInflight) return
    request.isInflight = false
    inflight.dec()
    const observe = handleOf(request, reply, isAborted)
    observe.duration(reply.elapsedTime / 1000)
    observe.count()
    const length = Number(reply.raw.getHeader('content-length'))
    if (Number.isFinite(length)) observe.responseBytes(length)
  }

  app.decorateRequest('isInflight', false)
  app.addHook('onRequest', (request, _reply, done) => {
    request.isInflight = true
    inflight.inc()
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    finish(request, reply, reply.raw.destroyed && !reply.raw.writableFinished)
    done()
  })
}
