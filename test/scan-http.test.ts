import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { History } from '../src/history/history.ts'
import { forEachEngine } from './support/engines.ts'
import { openTestHistory } from './support/histories.ts'
import { startTestNode } from './support/node.ts'
import type { OpenApiDocument } from './support/openapi.ts'
import { plainLines, transaction } from './support/sample-items.ts'
import { createScanApp } from './support/scan-app.ts'
import { createScanClient } from './support/scan-client.ts'

const UPDATES = 1013
const CURL = '/usr/bin/curl'
const run = promisify(execFile)

/** The body as it came over the wire. */
function rawPost(
  url: string,
  options: { body: string; headers?: Record<string, string>; agent?: Agent },
): Promise<{ response: IncomingMessage; port: number | undefined; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const { body, headers = {}, agent } = options
    const asked = httpRequest(
      url,
      { method: 'POST', headers, ...(agent ? { agent } : {}) },
      async (response) => {
        try {
          const port = response.socket.localPort
          resolve({ response, port, bytes: Buffer.concat(await response.toArray()) })
        } catch (error) {
          reject(error)
        }
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })
}

async function startFilled(t: TestContext) {
  const large = JSON.stringify(
    transaction({ update_id: 'large', migration_id: 2, workflow_id: 'w'.repeat(3_000_000) }),
  )
  const node = await startTestNode(t, { lines: [...plainLines(UPDATES), large] })
  return { node, url: `${node.urls.scan}/v1/updates` }
}

test('compressed pages of every size hold what the plain ones do, for every client', async (t) => {
  const { url } = await startFilled(t)
  for (const pageSize of [1, 24, 25, 30, 250, 1000, 5000]) {
    const body = JSON.stringify({ page_size: pageSize })
    const plain = await rawPost(url, { body })
    assert.equal(plain.response.headers['content-encoding'], undefined)
    const items = JSON.parse(plain.bytes.toString())
    assert.equal(items.transactions.length, Math.min(pageSize, UPDATES + 1))
    // Twice: the second time, compressed frames come from the cache.
    for (let round = 0; round < 2; round += 1) {
      const zipped = await rawPost(url, { body, headers: { 'accept-encoding': 'gzip' } })
      assert.equal(zipped.response.headers['content-encoding'], 'gzip')
      assert.ok(zlib.gunzipSync(zipped.bytes).equals(plain.bytes))
      const zstd = await rawPost(url, { body, headers: { 'accept-encoding': 'zstd' } })
      assert.equal(zstd.response.headers['content-encoding'], 'zstd')
      assert.deepEqual(JSON.parse(zlib.zstdDecompressSync(zstd.bytes).toString()), items)
    }
    for (const coding of ['gzip', 'zstd', 'gzip, deflate, br, zstd', 'identity']) {
      const fetched = await fetch(url, {
        method: 'POST',
        body,
        headers: { 'accept-encoding': coding },
      })
      assert.deepEqual(await fetched.json(), items, `fetch with ${coding}`)
    }
    if (existsSync(CURL)) {
      const { stdout } = await run(CURL, ['-sS', '--compressed', url, '-d', body], {
        maxBuffer: 2 ** 28,
      })
      assert.deepEqual(JSON.parse(stdout), items)
    }
  }
})

test('a page in one step tells its length, a larger one is sent in chunks', async (t) => {
  const { url } = await startFilled(t)
  const small = await rawPost(url, { body: '{"page_size":100}' })
  assert.equal(Number(small.response.headers['content-length']), small.bytes.length)
  const large = await rawPost(url, { body: '{"page_size":1000}' })
  assert.equal(large.response.headers['transfer-encoding'], 'chunked')
})

test('pages at the same time do not mix, and a connection is used again', async (t) => {
  const { url } = await startFilled(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  t.after(() => agent.destroy())
  const ask = (n: number) => ({
    body: JSON.stringify({
      page_size: 1 + ((n * 37) % 400),
      ledger_value_encoding: n % 2 ? 'compact_json' : 'protobuf_json',
    }),
    headers: { 'accept-encoding': ['identity', 'gzip', 'zstd'][n % 3] as string },
  })
  const alone = new Map<number, Buffer>()
  for (let n = 0; n < 24; n += 1) alone.set(n, (await rawPost(url, ask(n))).bytes)
  const ports = new Set<number | undefined>()
  await Promise.all(
    Array.from({ length: 120 }, async (_, n) => {
      const { port, bytes } = await rawPost(url, { ...ask(n % 24), agent })
      ports.add(port)
      assert.ok(bytes.equals(alone.get(n % 24) as Buffer))
    }),
  )
  assert.ok(ports.size <= 4)
})

test('requests that stand one behind the other on a connection are answered in order', async (t) => {
  const { url } = await startFilled(t)
  const { port, pathname } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  const ask = (size: number, close: boolean) => {
    const body = JSON.stringify({ page_size: size })
    return `POST ${pathname} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\nConnection: ${close ? 'close' : 'keep-alive'}\r\n\r\n${body}`
  }
  socket.write(ask(1000, false) + ask(1, false) + ask(2, true))
  let text = ''
  for await (const chunk of socket) text += chunk
  const counts = text
    .split('HTTP/1.1 200')
    .slice(1)
    .map((answer) => answer.match(/"update_id"/g)?.length)
  assert.deepEqual(counts, [1000, 1, 2])
})

test('deprecated operations say so and name their successor, the others do not', async (t) => {
  const { node } = await startFilled(t)
  const scan = createScanClient(node.urls.scan)
  for (const version of [0, 1, 2]) {
    const page = await scan.post(`/v${version}/updates`, { page_size: 1 })
    const one = await scan.get(`/v${version}/updates/122000000001`)
    const isDeprecated = version < 2
    for (const [answer, link] of [
      [page, '/api/scan/v2/updates'],
      [one, '/api/scan/v2/updates/122000000001'],
    ] as const) {
      assert.equal(answer.headers.get('deprecation'), isDeprecated ? '@1750809600' : null)
      assert.equal(
        answer.headers.get('link'),
        isDeprecated ? `<${link}>; rel="successor-version"` : null,
      )
    }
  }
})

test('every path of the document refuses other methods, answers OPTIONS, and may be read from anywhere', async (t) => {
  const { node } = await startFilled(t)
  const scan = createScanClient(node.urls.scan)
  const document = (await scan.get('/openapi.json')).body as OpenApiDocument
  for (const [template, operations] of Object.entries(document.paths)) {
    const path = template
      .replace('{update_id}', '122000000001')
      .replace('{hash}', 'ab')
      .replace('{party}', 'alice::1220aa')
      .replace('{domain_id}', 'global-domain::1220aa')
      .replace('{member_id}', 'PAR::participant::1220aa')
    const allowed = Object.keys(operations).flatMap((method) =>
      method === 'get' ? ['GET', 'HEAD'] : ['POST'],
    )
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const body = method === 'POST' ? { body: '{}' } : {}
      const answer = await scan.request(method, path, body)
      if (allowed.includes(method)) {
        assert.ok([200, 400, 404].includes(answer.status), `${method} ${path} ${answer.status}`)
      } else {
        assert.equal(answer.status, 405, `${method} ${path}`)
        assert.deepEqual(answer.headers.get('allow')?.split(', ').toSorted(), allowed.toSorted())
      }
      assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    }
    const preflight = await scan.request('OPTIONS', path, {
      headers: { origin: 'https://explorer.example', 'access-control-request-method': 'POST' },
    })
    assert.equal(preflight.status, 204)
    assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /GET, POST/)
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /content-type/)
  }
})

test('the document lists every operation of the specification with its tags', async (t) => {
  const { node } = await startFilled(t)
  const scan = createScanClient(node.urls.scan)
  const document = (await scan.get('/openapi.json')).body as OpenApiDocument
  assert.equal(document.info.version, '0.0.1')
  assert.match(document.openapi, /^3\.1/)
  assert.deepEqual(document.tags.map((tag) => tag.name).toSorted(), [
    'deprecated',
    'external',
    'internal',
    'pre-alpha',
  ])
  const tags = Object.fromEntries(
    Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => {
        assert.equal(operation.deprecated === true, operation.tags.includes('deprecated'))
        return [`${method.toUpperCase()} ${path}`, operation.tags.join()]
      }),
    ),
  )
  assert.deepEqual(tags, {
    'POST /v0/updates': 'deprecated',
    'POST /v1/updates': 'deprecated',
    'POST /v2/updates': 'external',
    'GET /v0/updates/{update_id}': 'deprecated',
    'GET /v1/updates/{update_id}': 'deprecated',
    'GET /v2/updates/{update_id}': 'external',
    'GET /v2/updates/hash/{hash}': 'external',
    'POST /v0/backfilling/migration-info': 'internal',
    'POST /v0/backfilling/updates-before': 'internal',
    'POST /v0/backfilling/import-updates': 'internal',
    'GET /v0/backfilling/status': 'internal',
    'GET /v0/scans': 'external',
    'GET /v0/dso-party-id': 'external',
    'POST /v0/amulet-rules': 'internal',
    'POST /v0/open-and-issuing-mining-rounds': 'external',
    'GET /v0/transfer-preapprovals/by-party/{party}': 'internal',
    'GET /v0/domains/{domain_id}/members/{member_id}/traffic-status': 'external',
    'GET /version': 'external',
    'GET /status': 'external',
    'GET /readyz': 'external',
    'GET /livez': 'external',
    'GET /openapi.json': 'external',
  })
  assert.equal(document.paths['/v1/updates']?.post?.operationId, 'getUpdateHistoryV1')
})

test('a body over a megabyte is refused with 413', async (t) => {
  const { node } = await startFilled(t)
  const scan = createScanClient(node.urls.scan)
  const answer = await scan.post('/v1/updates', `{"page_size":1,"x":"${'x'.repeat(1024 * 1024)}"}`)
  assert.equal(answer.status, 413)
  assert.deepEqual(answer.body, { error: 'The request body is too large.' })
})

test('health is told on the scan port and on the validator port', async (t) => {
  const { node } = await startFilled(t)
  const validator = new URL(node.urls.validator)
  for (const base of [node.urls.scan, node.urls.validator, validator.origin]) {
    for (const probe of ['/readyz', '/livez']) {
      const answer = await fetch(`${base}${probe}`)
      assert.equal(answer.status, 200, `${base}${probe}`)
      await answer.text()
    }
  }
})

/** A history that tells how many steps of pages were made, and how many pages ended. */
function watch(history: History) {
  const seen = { steps: 0, ended: 0 }
  const watched: History = {
    ...history,
    view: history.view,
    async *readPage(request) {
      try {
        for await (const step of history.readPage(request)) {
          seen.steps += 1
          yield step
        }
      } finally {
        seen.ended += 1
      }
    },
  }
  return { watched, seen }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < deadline, what)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

forEachEngine((engine) => {
  test(`a client that goes away stops the work, and one that pauses holds it, on ${engine.name}`, async (t) => {
    // More than the buffers between us and the client hold, also when compressed.
    const lines = plainLines(6000).map((line) =>
      line.replace('"workflow_id":"', `"workflow_id":"${randomBytes(2000).toString('hex')}`),
    )
    const history = await openTestHistory(t, engine, lines, { cacheBytes: 100_000 })
    for (const coding of ['identity', 'gzip', 'zstd']) {
      const { watched, seen } = watch(history)
      const app = await createScanApp(t, watched)
      await app.listen({ host: '127.0.0.1', port: 0 })
      const { port } = app.server.address() as { port: number }
      const body = '{"page_size":100000}'
      const socket = connect(port, '127.0.0.1')
      socket.write(
        `POST /api/scan/v1/updates HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      if (coding === 'identity') {
        await until(() => seen.steps > 2, 'the page starts')
        const steps = await settled(() => seen.steps)
        assert.ok(steps < 25, `${steps} of 30 steps for a reader that reads nothing`)
      } else {
        await until(() => seen.steps > 0, 'the page starts')
      }
      socket.destroy()
      await until(() => seen.ended === 1, 'the work ends')
      assert.ok(seen.steps < 30, `${seen.steps} of 30 steps`)
    }
  })
})

/** The number when it has stopped to change. */
async function settled(read: () => number): Promise<number> {
  for (let last = -1, same = 0; ; ) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    const now = read()
    same = now === last ? same + 1 : 0
    last = now
    if (same === 10) return now
  }
}
