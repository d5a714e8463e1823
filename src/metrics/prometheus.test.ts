import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import {
  hasPrometheus,
  hasPromtool,
  NATIVE_HISTOGRAMS,
  type Prometheus,
  queryUntilFound,
  startPrometheus,
} from '../../test/support/prometheus.ts'
import { renderText } from './exposition.ts'
import { startProcessMetrics } from './process.ts'
import { createRegistry, type Registry } from './registry.ts'
import { metricsHandler } from './routes.ts'

/*
 * The judgement of the real thing: a Prometheus server scrapes us, and its query API is asked for
 * what it understood. Where there is no such server on the machine, one test says so.
 */

async function serve(registry: Registry) {
  const server = createServer(metricsHandler(registry))
  const accepts = new Set<string | undefined>()
  server.prependListener('request', (request) => accepts.add(request.headers.accept))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    target: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepts,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Metrics of every kind, with values that stay the same from scrape to scrape. */
function fillRegistry(registry: Registry): void {
  const app = registry.with({ node_name: 'scan', node_type: 'scan' })
  const counter = app.counter({ name: 'pages_total', help: 'Pages.', labels: ['route'] })
  counter.labels({ route: '/v1/updates' }).inc(41)
  counter.labels({ route: 'a "quoted"\nline with \\ and ☃' }).inc(2 ** 40)
  registry.gauge({ name: 'level', help: 'A "level" \\ of\nsomething.' }).set(-1.5e-7)
  const odd = registry.gauge({ name: 'odd', help: 'Odd values.', labels: ['v'] })
  for (const v of [Infinity, -Infinity, Number.NaN, 0]) odd.labels({ v }).set(v)
  const took = app.histogram({ name: 'took_seconds', help: 'Took.', labels: ['route'] })
  const { observe } = took.labels({ route: '/v1/updates' })
  for (let i = 1; i <= 1000; i++) observe(i / 1000)
  const signed = registry.histogram({ name: 'signed', help: 'Both signs.', buckets: [-1, 0, 1] })
  for (const value of [-1000, -3, -0.5, 0, 0, 0.5, 2, 2, 2, 1e9]) signed.observe(value)
  registry.histogram({ name: 'untouched_seconds', help: 'Untouched.' })
}

/** What is fixed from the outside, as name, labels and value; scrape's own series vary. */
function expectedSamples(registry: Registry): Map<string, number> {
  const expected = new Map<string, number>()
  for (const family of registry.scrape()) {
    if (family.kind === 'histogram') continue
    for (const { pairs, state } of family.series.values()) {
      expected.set(
        identity({ __name__: family.name, ...Object.fromEntries(pairs) }),
        Number(state[0]),
      )
    }
  }
  return expected
}

function identity(labels: Record<string, string>): string {
  const { instance: _, job: __, ...own } = labels
  return JSON.stringify(Object.entries(own).sort())
}

function readValue(text: string): number {
  return Number(text.replace(/^([+-])Inf$/, '$1Infinity'))
}

async function checkPlainSeries(prometheus: Prometheus, registry: Registry): Promise<void> {
  for (const [series, value] of expectedSamples(registry)) {
    const labels = JSON.parse(series) as [string, string][]
    const selector = labels.map(([name, text]) => `${name}=${JSON.stringify(text)}`).join(',')
    const results = await queryUntilFound(prometheus, `{${selector}}`)
    const found = results.find(({ metric }) => identity(metric) === series)
    assert(found?.value !== undefined, `Prometheus misses ${series}.`)
    assert.equal(readValue(found.value[1]), value, series)
  }
}

async function checkNativeHistograms(prometheus: Prometheus): Promise<void> {
  const [took] = await queryUntilFound(prometheus, 'took_seconds{route="/v1/updates"}')
  assert.equal(took?.histogram?.[1].count, '1000')
  assert.equal(readValue(took.histogram[1].sum), 500.5)
  assert.deepEqual(await prometheus.query('took_seconds_bucket'), [], 'native buckets alone')
  for (const quantile of [0.01, 0.5, 0.9, 0.99, 1]) {
    const [result] = await prometheus.query(`histogram_quantile(${quantile}, took_seconds)`)
    const error = readValue(String(result?.value?.[1])) / quantile
    // Buckets grow by 4.4 %, and Prometheus takes the place inside one from its neighbours' ranks.
    assert(error > 1 / 1.045 && error < 1.045, `quantile ${quantile} is off by ${error}`)
  }
  const [signed] = await prometheus.query('signed')
  assert.equal(signed?.histogram?.[1].count, '10')
  const buckets = signed.histogram[1].buckets ?? []
  const countAround = (value: number) =>
    buckets
      .filter(([, low, high]) => Number(low) <= value && value <= Number(high))
      .reduce((sum, [, , , count]) => sum + Number(count), 0)
  assert.deepEqual([-1000, -3, -0.5, 0, 0.5, 2, 1e9].map(countAround), [1, 1, 1, 2, 1, 3, 1])
  const [untouched] = await prometheus.query('untouched_seconds')
  assert.equal(untouched?.histogram?.[1].count, '0')
  const [metrics] = await prometheus.query(
    'histogram_count(nodejs_gc_duration_seconds{kind="minor"})',
  )
  assert(metrics?.value !== undefined)
}

async function checkRegularHistograms(prometheus: Prometheus): Promise<void> {
  const buckets = await queryUntilFound(prometheus, 'took_seconds_bucket{node_type="scan"}')
  assert.equal(buckets.length, 16)
  const counts = new Map(buckets.map(({ metric, value }) => [Number(metric.le), value?.[1]]))
  assert.deepEqual(
    [0.1, 0.25, 1].map((bound) => counts.get(bound)),
    ['100', '250', '1000'],
  )
  const [median] = await prometheus.query('histogram_quantile(0.5, took_seconds_bucket)')
  assert(Math.abs(readValue(String(median?.value?.[1])) - 0.5) < 0.01)
  const [count] = await prometheus.query('took_seconds_count')
  assert.equal(count?.value?.[1], '1000')
}

function registerServerTest(options: {
  name: string
  nativeHistograms: boolean
  flags: string[]
  asked: RegExp
  check: (prometheus: Prometheus) => Promise<void>
}): void {
  const { name, nativeHistograms, flags, asked, check } = options
  test(name, async () => {
    const registry = createRegistry({ nativeHistograms })
    fillRegistry(registry)
    const running = startProcessMetrics({ registry, build: { version: '1.2.3', commit: 'abc' } })
    const node = await serve(registry)
    try {
      const prometheus = await startPrometheus(node.target, flags)
      try {
        await queryUntilFound(prometheus, 'annals_build_info')
        // What is measured anew at every scrape must stand still to be compared.
        running.close()
        registry.scrape()
        const scrapesBefore = await scrapeCount(prometheus)
        await queryUntilFound(prometheus, `count_over_time(up[1m]) > ${scrapesBefore + 1}`)
        await checkPlainSeries(prometheus, registry)
        await check(prometheus)
        assert([...node.accepts].every((accept) => asked.test(String(accept))))
        const [up] = await prometheus.query('up{job="annals"}')
        assert.equal(up?.value?.[1], '1')
      } finally {
        await prometheus.close()
      }
    } finally {
      running.close()
      node.close()
    }
  })
}

async function scrapeCount(prometheus: Prometheus): Promise<number> {
  const [result] = await queryUntilFound(prometheus, 'count_over_time(up[1m])')
  return readValue(String(result?.value?.[1]))
}

if (hasPrometheus) {
  // Together, because each waits five seconds until the server has made up its list of targets.
  suite('scraped by a real Prometheus server', { concurrency: true }, () => {
    const native = [NATIVE_HISTOGRAMS]
    registerServerTest({
      name: 'a Prometheus server with native histograms reads every series and their quantiles',
      ...{ nativeHistograms: true, flags: native, asked: /^application\/vnd.google.protobuf/ },
      check: checkNativeHistograms,
    })
    registerServerTest({
      name: 'a Prometheus server without native histograms reads every series and regular buckets',
      ...{ nativeHistograms: true, flags: [], asked: /^application\/openmetrics-text/ },
      check: checkRegularHistograms,
    })
    registerServerTest({
      name: 'a Prometheus server with native histograms reads regular ones when native ones are off',
      ...{ nativeHistograms: false, flags: native, asked: /^application\/vnd.google.protobuf/ },
      check: checkRegularHistograms,
    })
  })
} else {
  test('no Prometheus server is on this machine, so none has scraped; install the package prometheus', (t) => {
    t.diagnostic('The scrape by a real Prometheus server did NOT run.')
  })
}

if (hasPromtool) {
  test('promtool finds nothing to object to in our metrics', () => {
    const registry = createRegistry({ nativeHistograms: true })
    fillRegistry(registry)
    const metrics = startProcessMetrics({ registry, build: { version: '1.2.3', commit: 'abc' } })
    const text = renderText(registry.scrape(), 'text')
    metrics.close()
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text })
    assert.equal(`${stdout}${stderr}`, '')
    assert.equal(status, 0)
  })
}
