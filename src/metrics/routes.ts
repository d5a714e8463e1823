import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyPluginCallback } from 'fastify'
import { renderText } from './exposition.ts'
import { contentTypes, negotiateFormat } from './negotiation.ts'
import { encodeFamilies } from './protobuf.ts'
import type { Registry } from './registry.ts'

const metricsPath = '/metrics'

type Exposition = { contentType: string; body: Buffer }

/** Every metric of the registry, in the format that the Accept header prefers. */
export function createExposer(registry: Registry): (accept: string | undefined) => Exposition {
  const duration = registry.histogram({
    name: 'annals_metrics_scrape_duration_seconds',
    help: 'Time to collect and write the metrics, all of it on the event loop.',
  })
  return (accept) => {
    const start = performance.now()
    const format = negotiateFormat(accept)
    const families = registry.scrape()
    const body =
      format === 'protobuf' ? encodeFamilies(families) : Buffer.from(renderText(families, format))
    duration.observe((performance.now() - start) / 1000)
    return { contentType: contentTypes[format], body }
  }
}

/** GET /metrics of a Fastify instance; it needs no token, as scrapers send none. */
export function metricsRoutes(registry: Registry): FastifyPluginCallback {
  const expose = createExposer(registry)
  return (app, _options, done) => {
    app.get(metricsPath, (request, reply) => {
      const { contentType, body } = expose(request.headers.accept)
      return reply.header('content-type', contentType).header('vary', 'accept').send(body)
    })
    done()
  }
}

/** The same for a plain server of node:http. */
export function metricsHandler(
  registry: Registry,
): (request: IncomingMessage, response: ServerResponse) => void {
  const expose = createExposer(registry)
  return (request, response) => {
    const path = (request.url ?? '').split('?', 1)[0]
    if (path !== metricsPath) {
      endWithText(response, 404, `There is nothing here. The metrics are at ${metricsPath}.\n`)
      return
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      endWithText(response, 405, 'Use GET to read the metrics.\n')
      return
    }
    const { contentType, body } = expose(request.headers.accept)
    response.setHeader('content-type', contentType)
    response.setHeader('vary', 'accept')
    response.setHeader('content-length', body.length)
    response.end(request.method === 'HEAD' ? undefined : body)
  }
}

function endWithText(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status
  response.setHeader('content-type', 'text/plain; charset=utf-8')
  response.end(text)
}
