import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import fastify from 'fastify'
import { contentTypes } from './negotiation.ts'
import { createRegistry, type Registry } from './registry.ts'
import { createExposer, metricsHandler, metricsRoutes } from './routes.ts'

/** Milliseconds of the event loop that a scrape of a busy node may take. */
const scrapeBudgetMs = 10

function busyRegistry(series: number): Registry {
  const registry = createRegistry({ nativeHistograms: true })
  const labels = ['operation', 'status_code'] as const
  const requests = registry.counter({
    ...{ name: 'requests_total', help: 'Requests.', labels, seriesMax: series },
  })
  const durations = registry.histogram({ name: 'duration_seconds', help: 'Durations.', labels })
  for (let i = 0; i < series; i++) {
    const values = { operation: `operation${i}`, status_code: 200 }
    requests.labels(values).inc(i)
    if (i % 20 !== 0) continue
    const { observe } = durations.labels(values)
    for (let k = 0; k < 300; k++) observe(0.0005 * 1.02 ** k)
  }
  return registry
}

test('the plugin answers each format with its content type', async () => {
  const registry = createRegistry({ nativeHistograms: true })
  registry.counter({ name: 'x_total', help: 'X.' }).inc(3)
  await using app = fastify()
  await app.register(metricsRoutes(registry))
  for (const contentType of Object.values(contentTypes)) {
    const response = await app.inject({ url: '/metrics', headers: { accept: contentType } })
    assert.equal(response.statusCode, 200)
    assert.equal(response.headers['content-type'], contentType)
    assert.equal(response.headers.vary, 'accept')
    assert(response.rawPayload.includes('x_total'))
  }
  const plain = await app.inject({ url: '/metrics' })
  assert.match(plain.body, /^x_total 3$/m)
})

test('a scrape is measured, and the next one tells', async () => {
  const expose = createExposer(createRegistry({ nativeHistograms: true }))
  expose(undefined)
  assert.match(
    expose(undefined).body.toString(),
    /^annals_metrics_scrape_duration_seconds_count 1$/m,
  )
})

test('the plain handler serves the path alone, by GET and HEAD', async () => {
  const registry = createRegistry({ nativeHistograms: true })
  const server = createServer(metricsHandler(registry))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    const got = await fetch(`${url}/metrics?x=1`)
    assert.equal(got.status, 200)
    assert.match(await got.text(), /^# TYPE annals_metrics_overflow_total counter$/m)
    const head = await fetch(`${url}/metrics`, { method: 'HEAD' })
    assert.equal(head.status, 200)
    assert.equal(await head.text(), '')
    const posted = await fetch(`${url}/metrics`, { method: 'POST' })
    assert.equal(posted.status, 405)
    assert.equal(posted.headers.get('allow'), 'GET, HEAD')
    await posted.text()
    const other = await fetch(`${url}/`)
    assert.equal(other.status, 404)
    assert.match(await other.text(), /\/metrics/)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('a scrape of 2,000 series stays within its budget in every format', () => {
  const expose = createExposer(busyRegistry(2000))
  for (const contentType of Object.values(contentTypes)) {
    const times = Array.from({ length: 20 }, () => {
      const start = performance.now()
      expose(contentType)
      return performance.now() - start
    })
    // The best of twenty: a busy machine makes a scrape slower, never faster.
    assert(Math.min(...times) < scrapeBudgetMs, `${contentType}: ${Math.min(...times)} ms`)
  }
})
