import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fastify from 'fastify'
import { exchangeByFetch } from '../src/http/exchange.ts'
import { plainErrors } from '../src/http/plain-error.ts'
import { createPeers } from '../src/mirror/peers.ts'
import { withScanProxy } from '../src/proxy/openapi.ts'
import { proxyRoutes } from '../src/proxy/proxy-routes.ts'
import { readNetwork } from '../src/proxy/scan-reader.ts'
import { walletOpenApi } from '../src/wallet/openapi.ts'
import { startTestNode } from './support/node.ts'
import {
  answerChecker,
  documentedOperations,
  type OpenApiDocument,
  registeredOperations,
} from './support/openapi.ts'

// Reads of the network for apps: from the own scan, and from four scans of which some may say anything.

type Break = (text: string, path: string) => Response | string | undefined
type Json = Record<string, unknown>

const document = withScanProxy(walletOpenApi('test')) as unknown as OpenApiDocument

async function startNetwork(t: TestContext) {
  return startTestNode(t, { empty: false, seed: 'proxy', simTime: true })
}

/** The proxy of a node that knows four scans, each of which tells the truth unless it is broken. */
async function openProxy(t: TestContext, scanUrl: string, breaks: (Break | undefined)[] = []) {
  const list = [0, 1, 2, 3].map((n) => ({
    base: `http://scan-${n}.example/api/scan`,
    svName: `sv-${n}`,
  }))
  const asked: string[] = []
  const fetchScan = async (input: string | URL | Request, init?: RequestInit) => {
    const url = new URL(String(input))
    const path = `${url.pathname}${url.search}`.slice('/api/scan'.length)
    asked.push(`${url.hostname}${path}`)
    const answer = await fetch(`${scanUrl}${path}`, init)
    const text = await answer.text()
    const broken = breaks[Number(url.hostname[5])]?.(text, path) ?? text
    return broken instanceof Response ? broken : new Response(broken, { status: answer.status })
  }
  const trust = { mode: 'all', agreement: 'f+1' } as const
  const peers = createPeers({ exchange: exchangeByFetch(fetchScan), trust, list })
  const app = fastify()
  app.setErrorHandler(plainErrors.errorHandler)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  const reads: string[] = []
  await proxyRoutes(app, {
    reader: () => readNetwork(peers),
    onRead: (operation, outcome) => void reads.push(`${operation} ${outcome}`),
  })
  t.after(() => app.close())
  const check = answerChecker(document)
  const ask = async (path: string, body?: object) => {
    const method = body === undefined ? 'GET' : 'POST'
    const url = `/v0/scan-proxy${path}`
    const answer = await app.inject({
      method,
      url,
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
    })
    const { statusCode: status, headers } = answer
    const type = String(headers['content-type'])
    check({ method, path: url, status, body: answer.body, type })
    return { status: answer.statusCode, json: JSON.parse(answer.body) as Json, text: answer.body }
  }
  return { ask, asked, peers, reads }
}

const lie: Break = (text) => text.replaceAll('DSO', 'XSO').replaceAll('0.', '9.')
const away: Break = () => new Response('{"error":"later"}', { status: 503 })
const garbage: Break = () => new Response('<html>', { status: 200 })
const otherLie: Break = (text) => text.replaceAll('DSO', 'YSO').replaceAll('0.', '8.')
/** The same, said in other words. */
const rephrase: Break = (text) => {
  const json = JSON.parse(text) as Json
  return JSON.stringify({ extra: null, ...Object.fromEntries(Object.entries(json).toReversed()) })
}
const behind =
  (count: number): Break =>
  (text) => {
    const { transactions } = JSON.parse(text) as { transactions: unknown[] }
    return JSON.stringify({ transactions: transactions.slice(0, count) })
  }
const otherOffsets: Break = (text) =>
  text.replaceAll(/"offset":"\w+"/g, `"offset":"${'f'.repeat(18)}"`)

async function readScan(scanUrl: string, path: string, body?: object): Promise<Json> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  return (await (await fetch(`${scanUrl}${path}`, init)).json()) as Json
}

test('the validator document has every read of the proxy, each under an id of its own', async (t) => {
  const served = await registeredOperations((app) => proxyRoutes(app, { reader: () => undefined }))
  const documented = documentedOperations(document).filter((name) => name.includes('/scan-proxy/'))
  assert.deepEqual(documented, served)
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  const ids = operations.map(({ operationId }) => operationId)
  assert.deepEqual([...new Set(ids)], ids)
  const named = JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)
  for (const [, name = ''] of named) assert.ok(name in document.components.schemas, name)
  const { urls } = await startNetwork(t)
  const answer = (await (await fetch(`${urls.validator}/openapi.json`)).json()) as OpenApiDocument
  assert.deepEqual(answer.paths, document.paths)
})

test('reads are counted by operation and outcome', async (t) => {
  const { urls } = await startNetwork(t)
  const { ask, reads } = await openProxy(t, urls.scan)
  await ask('/dso-party-id')
  await ask('/v2/updates', { page_size: 2 })
  await ask('/v2/updates', { page_size: 0 })
  await ask('/featured-apps/nobody::1220ab')
  const split = await openProxy(t, urls.scan, [away, away, away])
  await split.ask('/v1/updates', { page_size: 2 })
  await split.ask('/scans')
  assert.deepEqual(reads, [
    'scanProxyGetDsoPartyId agreed',
    'scanProxyGetUpdateHistoryV2 agreed',
    'scanProxyLookupFeaturedAppRight refused',
  ])
  assert.deepEqual(split.reads, [
    'scanProxyGetUpdateHistoryV1 no-agreement',
    'scanProxyListScans no-agreement',
  ])
  await fetch(`${urls.validator}/v0/scan-proxy/scans`).then((answer) => answer.text())
  const metrics = await (await fetch(urls.metrics)).text()
  assert.match(
    metrics,
    /^annals_scan_proxy_reads_total\{.*operation="scanProxyListScans",outcome="agreed".*\} 1$/m,
  )
})

test('on a network of its own a node answers from its own scan', async (t) => {
  const { urls } = await startNetwork(t)
  const check = answerChecker(document)
  const proxied = async (path: string, body?: object) => {
    const method = body === undefined ? 'GET' : 'POST'
    const init = body === undefined ? {} : { method, body: JSON.stringify(body) }
    const url = `/v0/scan-proxy${path}`
    const answer = await fetch(`${urls.validator}${url}`, init)
    const text = await answer.text()
    const type = answer.headers.get('content-type') ?? ''
    check({ method, path: url, status: answer.status, body: text, type })
    return JSON.parse(text) as Json
  }
  const party = await proxied('/dso-party-id')
  assert.deepEqual(party, await readScan(urls.scan, '/v0/dso-party-id'))
  const { amulet_rules: rules } = await proxied('/amulet-rules')
  const { amulet_rules_update: update } = await readScan(urls.scan, '/v0/amulet-rules', {})
  assert.deepEqual(rules, update)
  const rounds = await proxied('/open-and-issuing-mining-rounds')
  assert.deepEqual(Object.keys(rounds), ['open_mining_rounds', 'issuing_mining_rounds'])
  assert.ok((rounds.open_mining_rounds as { contract: object }[])[0]?.contract)
  for (const version of ['v1', 'v2']) {
    const wish = { page_size: 20 }
    const page = await readScan(urls.scan, `/${version}/updates`, wish)
    assert.deepEqual(await proxied(`/${version}/updates`, wish), page)
    const [first] = page.transactions as { update_id: string }[]
    const path = `/${version}/updates/${first?.update_id}`
    assert.deepEqual(await proxied(path), await readScan(urls.scan, path))
  }
  const carol = (party.dso_party_id as string).replace('DSO', 'carol')
  const preapproval = await proxied(`/transfer-preapprovals/by-party/${carol}`)
  assert.ok('transfer_preapproval' in preapproval)
  const missing = await fetch(
    `${urls.validator}/v0/scan-proxy/transfer-preapprovals/by-party/nobody::1220`,
  )
  assert.equal(missing.status, 404)
  assert.match(((await missing.json()) as { error: string }).error, /No transfer preapproval/)
})

const READS: [path: string, body?: object][] = [
  ['/dso-party-id'],
  ['/amulet-rules'],
  ['/open-and-issuing-mining-rounds'],
  ['/scans'],
  ['/v2/updates', { page_size: 30 }],
  ['/v1/updates', { page_size: 30, ledger_value_encoding: 'protobuf_json' }],
]

test('one scan of four may say anything, and the answer is the truth', async (t) => {
  const { urls } = await startNetwork(t)
  const honest = await openProxy(t, urls.scan)
  for (const broken of [lie, away, garbage, rephrase]) {
    const proxy = await openProxy(t, urls.scan, [undefined, broken])
    for (const [path, body] of READS) {
      const truth = await honest.ask(path, body)
      assert.equal(truth.status, 200, `${path}: ${truth.text}`)
      const { extra: _, ...answer } = (await proxy.ask(path, body)).json
      assert.deepEqual(answer, truth.json, path)
    }
  }
})

test('scans that are behind each other agree on what they share', async (t) => {
  const { urls } = await startNetwork(t)
  const truth = await readScan(urls.scan, '/v1/updates', { page_size: 30 })
  const breaks = [behind(20), behind(25), otherOffsets, lie]
  const proxy = await openProxy(t, urls.scan, breaks)
  const { status, json } = await proxy.ask('/v1/updates', { page_size: 30 })
  assert.equal(status, 200)
  const found = json.transactions as Json[]
  assert.ok(found.length >= 20 && found.length <= 25, String(found.length))
  const withoutOffset = ({ offset: _, ...item }: Json) => item
  assert.deepEqual(
    found.map(withoutOffset),
    (truth.transactions as Json[]).slice(0, found.length).map(withoutOffset),
  )
})

test('an empty page needs as many scans as any other', async (t) => {
  const { urls } = await startNetwork(t)
  const nothing = behind(0)
  const wish = { page_size: 5 }
  const one = await openProxy(t, urls.scan, [nothing, garbage])
  assert.equal(((await one.ask('/v2/updates', wish)).json.transactions as []).length, 5)
  const after = { after_migration_id: 0, after_record_time: '9999-01-01T00:00:00Z' }
  const end = await one.ask('/v2/updates', { ...wish, after })
  assert.deepEqual(end.json, { transactions: [] })
})

test('without agreement the answer is 502 in the words of deployed validators', async (t) => {
  const { urls } = await startNetwork(t)
  const none = await openProxy(t, urls.scan, [
    lie,
    otherLie,
    (text) => text.replaceAll('DSO', 'ZSO').replaceAll('0.', '7.'),
    (text) => text.replaceAll('DSO', 'WSO').replaceAll('0.', '6.'),
  ])
  const few = await openProxy(t, urls.scan, [away, garbage, away])
  for (const [path, body] of [['/dso-party-id'], ['/v2/updates', { page_size: 5 }]] as const) {
    const { status, json } = await none.ask(path, body)
    assert.equal(status, 502, path)
    assert.match(
      json.error as string,
      /^Failed to reach consensus from 4 Scan nodes, requiring 2 matching responses\.$/,
    )
  }
  const { status, json } = await few.ask('/dso-party-id')
  assert.equal(status, 502)
  assert.equal(
    json.error,
    'Only 1 scan instances can be used (out of 4 configured ones), which are fewer than the necessary 2 to achieve BFT guarantees.',
  )
})

test('a refusal that the scans agree on is the answer', async (t) => {
  const { urls } = await startNetwork(t)
  const proxy = await openProxy(t, urls.scan, [undefined, lie])
  for (const path of [
    '/transfer-preapprovals/by-party/nobody::1220ab',
    '/v2/updates/1220nothing',
    '/featured-apps/nobody::1220ab',
  ]) {
    const { status, json } = await proxy.ask(path)
    assert.equal(status, 404, path)
    assert.equal(typeof json.error, 'string')
  }
  const bad = await proxy.ask('/v2/updates', { page_size: 5, after: 'yesterday' })
  assert.equal(bad.status, 400)
})

test('what the proxy itself refuses never reaches a scan', async (t) => {
  const { urls } = await startNetwork(t)
  const proxy = await openProxy(t, urls.scan)
  for (const body of [{}, { page_size: 0 }, { page_size: 251 }, { page_size: '5' }]) {
    const { status, json } = await proxy.ask('/v2/updates', body)
    assert.equal(status, 400)
    assert.match(json.error as string, /page_size must be a whole number from 1 to 250/)
  }
  assert.deepEqual(proxy.asked, [])
})

test('a name in a path stays one name', async (t) => {
  const { urls } = await startNetwork(t)
  const proxy = await openProxy(t, urls.scan)
  await proxy.ask('/ans-entries/by-name/..%2F..%2Fv0%2Fscans')
  assert.ok(
    proxy.asked.every((path) => path.endsWith('/v0/ans-entries/by-name/..%2F..%2Fv0%2Fscans')),
  )
  assert.ok(proxy.asked.length > 0)
})
