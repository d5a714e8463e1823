import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { startExpiredServer } from '../../test/support/fault-proxy.ts'
import { exchangeByFetch } from '../http/exchange.ts'
import { createOutgoing } from '../http/outgoing.ts'
import { askScan, publicAddress, SCAN_LIMITS, scanBase } from './client.ts'

const LIMITS = { headMs: 600, wholeMs: 1200, bytesMax: 100_000 }
const REQUEST = { method: 'POST', path: '/v2/updates', body: '{}' } as const

test('an address is taken with and without the path of the scan API', () => {
  for (const address of [
    'https://a.example',
    'https://a.example/',
    'https://a.example/api/scan/',
  ]) {
    assert.equal(scanBase(address), 'https://a.example/api/scan')
  }
  assert.equal(publicAddress('https://a.example/api/scan'), 'https://a.example')
  for (const address of ['a.example', 'ftp://a.example', 'https://user:secret@a.example', '']) {
    assert.equal(scanBase(address), undefined, address)
  }
})

for (const way of ['exchange', 'fetch'] as const) {
  suite(`by ${way}`, () => {
    test('an answer comes whole, packed or not, with its length or without', async (t) => {
      const text = JSON.stringify({ transactions: [], filler: 'x'.repeat(50_000) })
      const bodies: RequestListener[] = [
        (_, response) => void response.end(text),
        (_, response) => {
          response.write(text.slice(0, 9))
          response.end(text.slice(9))
        },
        (_, response) => void response.setHeader('content-encoding', 'gzip').end(gzipSync(text)),
        (_, response) =>
          void response.setHeader('content-encoding', 'zstd').end(zstdCompressSync(text)),
      ]
      for (const body of bodies) {
        const answer = await ask(t, way, body)
        assert.equal(answer.kind, 'answer')
        assert.equal(answer.kind === 'answer' && answer.bytes.toString(), text)
      }
    })

    test('a refusal is an answer, with what it says about when to come again', async (t) => {
      const answer = await ask(t, way, (_, response) =>
        response.writeHead(429, { 'retry-after': '7' }).end('busy'),
      )
      assert.deepEqual(
        { ...answer, ms: 0, bytes: '' },
        { kind: 'answer', status: 429, retryAfterMs: 7000, bytes: '', ms: 0 },
      )
    })

    const broken: [string, string, RequestListener][] = [
      ['says nothing', 'slow', () => {}],
      ['drips', 'slow', (_, response) => drip(response)],
      ['redirects', 'redirect', (_, r) => r.writeHead(302, { location: 'http://b.test' }).end()],
      [
        'announces too much',
        'tooLarge',
        (_, r) => r.writeHead(200, { 'content-length': 1e9 }).end(),
      ],
      ['sends too much', 'tooLarge', (_, response) => flood(response)],
      [
        'packs too much',
        'tooLarge',
        (_, r) => r.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(1e7))),
      ],
      [
        'packs too much in zstd',
        'tooLarge',
        (_, r) =>
          r.writeHead(200, { 'content-encoding': 'zstd' }).end(zstdCompressSync(Buffer.alloc(1e7))),
      ],
      [
        'packs badly',
        'cutOff',
        (_, r) => r.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip'),
      ],
      [
        'breaks off',
        'cutOff',
        (_, r) => void r.writeHead(200, { 'content-length': 9 }).write('{', () => r.destroy()),
      ],
      ['hangs up', 'unreachable', (request) => request.destroy()],
    ]
    for (const [what, fault, listener] of broken) {
      test(`a server that ${what} is a fault, in time`, async (t) => {
        const startedAt = performance.now()
        const answer = await ask(t, way, listener)
        assert.equal(answer.kind === 'fault' && answer.fault, fault, JSON.stringify(answer))
        assert.ok(performance.now() - startedAt < 5_000)
      })
    }

    test('nobody there, or one whose certificate has expired, cannot be reached', async (t) => {
      for (const base of ['http://127.0.0.1:1', await startExpiredServer(t)]) {
        const answer = await askAt(t, way, base)
        assert.equal(answer.kind === 'fault' && answer.fault, 'unreachable')
      }
    })

    test('who no longer wants an answer does not wait for it', async (t) => {
      const stop = new AbortController()
      const asked = ask(t, way, () => stop.abort(), { signal: stop.signal, limits: SCAN_LIMITS })
      assert.equal((await asked).kind, 'fault')
    })
  })
}

async function ask(
  t: TestContext,
  way: 'exchange' | 'fetch',
  listener: RequestListener,
  options: Parameters<typeof askAt>[3] = {},
) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return askAt(t, way, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, options)
}

function askAt(
  t: TestContext,
  way: 'exchange' | 'fetch',
  base: string,
  options: { signal?: AbortSignal; limits?: typeof SCAN_LIMITS } = {},
) {
  const outgoing = createOutgoing(undefined)
  t.after(() => outgoing.close())
  const exchange = way === 'fetch' ? exchangeByFetch(outgoing.fetch) : outgoing.exchange
  return askScan({ exchange, base, request: REQUEST, limits: LIMITS, ...options })
}

function drip(response: Parameters<RequestListener>[1]): void {
  const timer = setInterval(() => response.write('{'), 50)
  response.on('close', () => clearInterval(timer))
}

function flood(response: Parameters<RequestListener>[1]): void {
  const much = Buffer.alloc(65_536, ' ')
  const pour = () => {
    while (!response.destroyed && response.write(much));
  }
  response.on('drain', pour)
  pour()
}
