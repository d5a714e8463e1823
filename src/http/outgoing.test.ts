import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server } from 'node:net'
import { test } from 'node:test'
import { makeCertificate } from '../../test/support/certificates.ts'
import type { Cleanup } from '../../test/support/engines.ts'
import { createOutgoing } from './outgoing.ts'

async function listenOn(t: Cleanup, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** A forward proxy that tunnels with CONNECT and tells where to. */
async function startProxy(t: Cleanup): Promise<{ port: number; tunnels: string[] }> {
  const tunnels: string[] = []
  const proxy = createServer((_request, response) => response.writeHead(405).end())
  proxy.on('connect', (request, client) => {
    tunnels.push(request.url ?? '')
    const [host, port] = (request.url ?? '').split(':')
    const target = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.pipe(client).pipe(target)
    })
    target.on('error', () => client.destroy())
    client.on('error', () => target.destroy())
  })
  return { port: await listenOn(t, proxy), tunnels }
}

async function startTarget(t: Cleanup): Promise<number> {
  return listenOn(
    t,
    createServer((_request, response) => response.end('reached')),
  )
}

function outgoingOf(t: Cleanup, port: number, bypass: string[]) {
  const outgoing = createOutgoing({ host: '127.0.0.1', port, bypass })
  t.after(() => outgoing.close())
  return outgoing
}

test('calls go through the proxy with CONNECT', async (t) => {
  const proxy = await startProxy(t)
  const target = await startTarget(t)
  const { fetch } = outgoingOf(t, proxy.port, [])
  assert.equal(await (await fetch(`http://127.0.0.1:${target}/`)).text(), 'reached')
  assert.deepEqual(proxy.tunnels, [`127.0.0.1:${target}`])
})

test('TLS is spoken with the target through the tunnel, and its certificate checked', async (t) => {
  const proxy = await startProxy(t)
  const { cert, key } = makeCertificate({ name: 'target' })
  const target = await listenOn(
    t,
    createTlsServer({ cert, key }, (_request, response) => response.end('x')),
  )
  const { fetch } = outgoingOf(t, proxy.port, [])
  await assert.rejects(fetch(`https://127.0.0.1:${target}/`), /fetch failed/)
  assert.deepEqual(proxy.tunnels, [`127.0.0.1:${target}`])
})

const patterns: [pattern: string, isDirect: boolean][] = [
  ['127.0.0.1', true],
  ['127.*', true],
  ['*.0.0.1', true],
  ['*', true],
  ['LOCALHOST', false],
  ['27.0.0.1', false],
  ['127.0.0', false],
  ['127x0x0x1', false],
]

for (const [pattern, isDirect] of patterns) {
  test(`127.0.0.1 ${isDirect ? 'bypasses' : 'does not bypass'} the proxy with ${pattern}`, async (t) => {
    const proxy = await startProxy(t)
    const target = await startTarget(t)
    const { fetch } = outgoingOf(t, proxy.port, ['example.org', pattern])
    await (await fetch(`http://127.0.0.1:${target}/`)).text()
    assert.equal(proxy.tunnels.length, isDirect ? 0 : 1)
  })
}

test('without a proxy calls go out directly', async (t) => {
  const target = await startTarget(t)
  const outgoing = createOutgoing(undefined)
  t.after(() => outgoing.close())
  assert.equal(await (await outgoing.fetch(`http://127.0.0.1:${target}/`)).text(), 'reached')
})

test('a proxy that is away is an error, not a direct call', async (t) => {
  const target = await startTarget(t)
  const { fetch } = outgoingOf(t, 1, [])
  await assert.rejects(fetch(`http://127.0.0.1:${target}/`))
})
