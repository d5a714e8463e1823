import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { SignJWT } from 'jose'
import type { NodeConfig } from '../src/config/node-config.ts'
import { appLabels } from '../src/metrics/app-labels.ts'
import type { RunningNode } from '../src/node.ts'
import { type Cleanup, forEachEngine } from './support/engines.ts'
import { startKeySetServer } from './support/key-set-server.ts'
import { makeKey } from './support/ledger-tokens.ts'
import {
  type Metric,
  metricsOf,
  readDashboard,
  readManual,
  readRules,
} from './support/metrics-manual.ts'
import { newDirectory, startTestNode, testConfig } from './support/node.ts'
import { startCommand } from './support/node-process.ts'
import {
  hasPrometheus,
  hasPromtool,
  NATIVE_HISTOGRAMS,
  type Prometheus,
  queryUntilFound,
  startPrometheus,
} from './support/prometheus.ts'
import { plainLines } from './support/sample-items.ts'

const AUDIENCE = 'https://ledger.acme.example'
const PROTOBUF =
  'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'
const TOPOLOGY = /^splice_synchronizer_topology_/
/** Families that a node has only with PostgreSQL, a provider, or a polling interval. */
const CONDITIONAL = new RegExp(
  `${TOPOLOGY.source}|^db_client_connections_|^annals_key_set_age_seconds$`,
)
/** Families of a node that copies a network; test/mirror-copies.test.ts has one. */
const MIRROR = /^annals_mirror_/
/** Nothing went wrong in these, and nothing was due, so they have no series. */
const UNTOUCHED = new Set([
  'annals_metrics_overflow_total',
  'annals_db_errors_total',
  'annals_wallet_tokens_total',
  'splice_trigger_completed_total',
  'splice_trigger_attempted_total',
])

type Urls = RunningNode['urls']
type Family = Metric & { series: Record<string, string>[] }

/** The text page by families. */
function readPage(page: string): Map<string, Family> {
  const families = new Map<string, Family>()
  for (const [, name, type] of page.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    families.set(name as string, { type: type as string, labels: [], series: [] })
  }
  for (const [, name = '', labels = ''] of page.matchAll(/^([a-z]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''))
    assert.ok(family, `${name} belongs to a family`)
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, k, v]) => [k, v])
    family.series.push(Object.fromEntries(pairs))
  }
  return families
}

async function fetchText(url: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(url, init)
  return response.text()
}

/** Something of everything: pages, lookups, refusals, users. */
async function makeTraffic(urls: Urls, token: string): Promise<void> {
  const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
    fetchText(url, { method: 'POST', body: JSON.stringify(body), headers })
  for (const version of ['v0', 'v1', 'v2']) {
    await post(`${urls.scan}/${version}/updates`, { page_size: 7 })
    await post(`${urls.scan}/${version}/updates`, {
      page_size: 7,
      ...(version === 'v0' ? { lossless: true } : { ledger_value_encoding: 'protobuf_json' }),
    })
    await fetchText(`${urls.scan}/${version}/updates/none`)
  }
  await post(`${urls.scan}/v1/updates`, { page_size: 0 })
  await fetchText(`${urls.scan}/v1/updates`)
  await fetchText(`${urls.scan}/no/such/path`)
  await fetch(`${urls.scan}/livez`, { method: 'HEAD' })
  await fetchText(`${urls.ledger}/v2/version`)
  await fetchText(`${urls.ledger}/v2/users/alice`)
  const authorization = `Bearer ${token}`
  const user = { user: { id: 'alice' } }
  await post(`${urls.ledger}/v2/users`, user, { authorization })
  await post(`${urls.ledger}/v2/users`, user, { authorization })
  await fetchText(`${urls.ledger}/v2/users/alice`, { headers: { authorization } })
  await fetchText(`${urls.validator}/readyz`)
  await fetchText(`${urls.validator}/v0/scan-proxy/scans`)
}

/** A provider with one key, and an administrator's token of it. */
async function startProvider(t: Cleanup): Promise<{ auth: NodeConfig['auth']; token: string }> {
  const key = await makeKey('k', 'RS256')
  const urlOf = await startKeySetServer(t, { jwks: [key.jwk] })
  const token = await new SignJWT({ sub: 'participant_admin', aud: AUDIENCE })
    .setProtectedHeader({ alg: 'RS256', kid: 'k' })
    .setExpirationTime('1h')
    .sign(key.privateKey)
  const participant = { jwksUrl: urlOf('jwks'), targetAudience: AUDIENCE }
  // With a token of its own the node opens its wallets.
  const { auth } = testConfig(t)
  const ledgerApi = {
    user: 'participant_admin',
    url: undefined,
    clientId: undefined,
    clientSecret: undefined,
    audience: undefined,
    scope: undefined,
    token: { reveal: () => token, toString: () => '', toJSON: () => '' },
  }
  return { auth: { ...auth, participant, ledgerApi }, token }
}

forEachEngine((engine) => {
  test(`${engine.name}: a node exposes what the manual lists, and nothing else`, async (t) => {
    const isFull = engine.name === 'postgres'
    const { auth, token } = await startProvider(t)
    const { urls } = await startTestNode(t, {
      target: await engine.newTarget(t),
      empty: false,
      config: isFull
        ? { auth, metrics: { ...testConfig(t).metrics, topologyIntervalMs: 60_000 } }
        : {},
    })
    await makeTraffic(urls, token)
    const manual = readManual()
    const families = readPage(await fetchText(urls.metrics))
    const expected = [...manual.keys()].filter(
      (name) => !MIRROR.test(name) && (isFull || !CONDITIONAL.test(name)),
    )
    assert.deepEqual([...families.keys()], expected.sort())
    const known = new Set(Object.values(appLabels).flatMap((labels) => Object.keys(labels)))
    for (const [name, { type, series }] of families) {
      const { type: manualType, labels } = manual.get(name) as Metric
      assert.equal(type, manualType, name)
      if (isFull && !UNTOUCHED.has(name)) assert.ok(series.length > 0, `${name} has a series`)
      for (const own of series) {
        const names = Object.keys(own).filter((label) => label !== 'le')
        const left = names.filter((label) => labels.includes(label) || !known.has(label))
        assert.deepEqual(left, labels, name)
      }
    }
    if (!isFull) return
    for (const expression of [...readRules().map(({ expr }) => expr), ...readDashboard()]) {
      for (const name of metricsOf(expression)) {
        const family = name.replace(/_(bucket|sum|count)$/, '')
        assert.ok(families.has(name) || families.get(family)?.type === 'histogram', name)
      }
    }
  })
})

test('requests are measured by operation and outcome, also those that a client breaks off', async (t) => {
  const { auth, token } = await startProvider(t)
  const { urls } = await startTestNode(t, { config: { auth }, lines: plainLines(60) })
  await makeTraffic(urls, token)
  const { hostname, port } = new URL(urls.scan)
  const socket = connect(Number(port), hostname)
  const head = 'POST /api/scan/v1/updates HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{'
  await new Promise<void>((resolve) => socket.write(head, () => resolve()))
  const inflight = (count: number) => waitForLine(urls.metrics, `getUpdateHistoryV1"} ${count}`)
  await inflight(1)
  socket.destroy()
  await inflight(0)
  const series = readPage(await fetchText(urls.metrics)).get('daml_http_requests_duration_seconds')
  const outcomes = new Set(
    series?.series.map((own) =>
      [own.http_service, own.operation, own.http_verb, own.status, own.status_code].join(' '),
    ),
  )
  for (const outcome of [
    'scan getUpdateHistoryV1 POST completed 200',
    'scan getUpdateHistoryV1 POST completed 400',
    'scan getUpdateHistoryV1 POST failure 200',
    'scan getUpdateByIdV2 GET completed 404',
    'scan GET /api/scan/v1/updates GET rejected 405',
    'scan isLive HEAD completed 200',
    'scan unknown GET rejected 404',
    'json_api get-v2-users-user-id GET completed 401',
    'json_api get-v2-users-user-id GET completed 200',
    'json_api post-v2-users POST completed 409',
    'validator GET /api/validator/readyz GET completed 200',
  ]) {
    assert.ok(outcomes.has(outcome), `${outcome} is among\n${[...outcomes].join('\n')}`)
  }
  const sizes = await fetchText(urls.metrics)
  assert.match(sizes, /requests_payload_bytes_sum\{.*operation="getUpdateHistoryV2"\} \d{2}/m)
})

test('a page that is streamed is measured with its size', async (t) => {
  const { urls } = await startTestNode(t, { lines: plainLines(1000) })
  const page = await fetchText(`${urls.scan}/v2/updates`, {
    method: 'POST',
    body: '{"page_size":1000}',
    headers: { 'accept-encoding': 'identity' },
  })
  const line = await waitForLine(
    urls.metrics,
    /^daml_http_responses_payload_bytes_sum\{.*"getUpdateHistoryV2"\} (\d+)$/m,
  )
  const size = Number(line[1])
  assert.ok(size >= page.length && size < page.length * 1.01, `${size} is about ${page.length}`)
  assert.match(
    await fetchText(urls.metrics),
    new RegExp(`^annals_page_bytes_total\\{.*version="v2".*\\} ${page.length}$`, 'm'),
  )
})

async function waitForLine(url: string, line: string | RegExp): Promise<RegExpExecArray> {
  const pattern = typeof line === 'string' ? new RegExp(RegExp.escape(line), 'm') : line
  for (let attempt = 0; attempt < 500; attempt += 1) {
    const found = pattern.exec(await fetchText(url))
    if (found !== null) return found
    await delay(20)
  }
  assert.fail(`The metrics never say ${line}.`)
}

test('the metrics are on the ports of the metrics, the validator and the participant, in all formats', async (t) => {
  const { urls } = await startTestNode(t)
  for (const url of [urls.metrics, new URL('/metrics', urls.validator), `${urls.ledger}/metrics`]) {
    for (const [accept, type] of [
      ['*/*', /^text\/plain; version=0\.0\.4/],
      ['application/openmetrics-text;version=1.0.0', /^application\/openmetrics-text/],
      [PROTOBUF, /^application\/vnd\.google\.protobuf/],
    ] as const) {
      const response = await fetch(url, { headers: { accept } })
      assert.match(response.headers.get('content-type') ?? '', type)
      assert.match(await response.text(), /annals_build_info/)
    }
  }
})

if (hasPromtool) {
  test('promtool reads what a node exposes', async (t) => {
    const { urls } = await startTestNode(t, { lines: plainLines(5) })
    const input = await fetchText(urls.metrics)
    const { status, stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], { input })
    // Names of deployed nodes do not all follow its taste (status 3); it must be able to read them (1).
    assert.notEqual(status, 1, String(stderr))
    for (const complaint of `${stdout}${stderr}`.split('\n').filter((line) => line !== '')) {
      assert.match(complaint, /^(splice|daml|db_client)_/)
    }
  })
}

/** A node by the command line, as an operator configures it by the environment. */
async function startConfigured(t: Cleanup, env: Record<string, string>): Promise<Urls> {
  const node = await startCommand(t, [], { cwd: newDirectory(t), env })
  await makeTraffic(node.urls, 'no-token')
  return node.urls
}

async function checkFamilies(prometheus: Prometheus, page: string): Promise<void> {
  for (const [name, { type, series }] of readPage(page)) {
    if (series.length === 0) continue
    const results = await queryUntilFound(prometheus, `{__name__=~"${name}(_count)?"}`)
    const isNative = results.some(({ histogram }) => histogram !== undefined)
    assert.equal(isNative, type === 'histogram', name)
  }
}

if (hasPrometheus) {
  suite('a whole node scraped by a real Prometheus server', { concurrency: true }, () => {
    test('every family is there by query, and quantiles of requests come from native histograms', async (t) => {
      const urls = await startConfigured(t, {
        ADDITIONAL_CONFIG_TOPOLOGY_METRICS_EXPORT:
          'canton.validator-apps.validator_backend.automation.topology-metrics-polling-interval = 5m',
      })
      const prometheus = await startPrometheus(new URL(urls.metrics).host, [NATIVE_HISTOGRAMS])
      t.after(() => prometheus.close())
      await queryUntilFound(prometheus, 'annals_build_info')
      const page = await fetchText(urls.metrics)
      await checkFamilies(prometheus, page)
      const series = 'daml_http_requests_duration_seconds{operation="getUpdateHistoryV1"}'
      const [median] = await queryUntilFound(
        prometheus,
        `histogram_quantile(0.5, sum(${series})) > 0`,
      )
      const seconds = Number(median?.value?.[1])
      assert.ok(seconds > 0 && seconds < 10, `a page took ${seconds} s`)
      const [count] = await prometheus.query(
        'sum(histogram_count(daml_http_requests_duration_seconds{operation="getUpdateHistoryV1",status_code="200"}))',
      )
      assert.equal(count?.value?.[1], '2')
      const [parties] = await queryUntilFound(
        prometheus,
        'splice_synchronizer_topology_num_parties{node_type="validator"}',
      )
      assert.equal(parties?.value?.[1], '0')
    })

    test('histograms are regular when the configuration says so, and there is no topology unless asked for', async (t) => {
      const urls = await startConfigured(t, {
        ADDITIONAL_CONFIG_DISABLE_NATIVE_HISTOGRAMS: 'canton.monitoring.metrics.histograms=[]',
      })
      const prometheus = await startPrometheus(new URL(urls.metrics).host, [NATIVE_HISTOGRAMS])
      t.after(() => prometheus.close())
      const series = 'daml_http_requests_duration_seconds'
      const buckets = await queryUntilFound(
        prometheus,
        `${series}_bucket{operation="getUpdateHistoryV1",status_code="200"}`,
      )
      assert.equal(buckets.length, 16)
      assert.deepEqual(await prometheus.query(series), [])
      const [median] = await prometheus.query(
        `histogram_quantile(0.5, ${series}_bucket{operation="getUpdateHistoryV1",status_code="200"})`,
      )
      assert.ok(Number(median?.value?.[1]) > 0)
      assert.doesNotMatch(await fetchText(urls.metrics), /topology/)
    })
  })
} else {
  test('no Prometheus server is on this machine, so none has scraped a node; install the package prometheus', (t) => {
    t.diagnostic('The scrape of a whole node by a real Prometheus server did NOT run.')
  })
}
