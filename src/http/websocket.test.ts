import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { serveWebSockets, type UpgradeDoor, type WebSocketRoutes } from './websocket.ts'

const MESSAGE_BYTES = 256 * 1024
const MESSAGES = 400
/** What kernels hold for a connection over loopback, generously. */
const UNREAD_BYTES_MAX = 32 * 1024 * 1024
/** So many turns of the event loop without a message mean that the sender waits. */
const QUIET_TURNS = 200

test('a client that does not read holds the sender up, and gets everything when it reads', async (t) => {
  const server = createServer()
  let sent = 0
  serveWebSockets(
    server,
    {
      '/all': async (socket) => {
        for (let n = 0; n < MESSAGES; n += 1) {
          await socket.send('x'.repeat(MESSAGE_BYTES))
          sent += 1
        }
      },
    },
    { authorize: async () => undefined },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.pause()
  client.write(
    'GET /all HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  )
  let quiet = 0
  for (let last = -1; quiet < QUIET_TURNS; ) {
    await new Promise((resolve) => setImmediate(resolve))
    quiet = sent === last && sent > 0 ? quiet + 1 : 0
    last = sent
  }
  assert.ok(sent * MESSAGE_BYTES < UNREAD_BYTES_MAX, `${sent} messages were sent unread`)
  let received = 0
  client.on('data', (chunk: Buffer) => {
    received += chunk.length
  })
  client.resume()
  await once(client, 'end')
  assert.ok(received > MESSAGES * MESSAGE_BYTES)
  client.destroy()
})

test('a client that talks instead of listening is cut off', async (t) => {
  const server = createServer()
  serveWebSockets(
    server,
    {
      '/deaf': async (socket) => {
        await socket.next()
        await new Promise<void>((resolve) =>
          socket.closed.addEventListener('abort', () => resolve()),
        )
      },
    },
    { authorize: async () => undefined },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const client = new WebSocket(`ws://127.0.0.1:${port}/deaf`)
  await once(client, 'open')
  for (let n = 0; n < 100; n += 1) client.send('hello')
  const [event] = (await once(client, 'close')) as [CloseEvent]
  assert.equal(event.code, 1008)
})

const KEY_AND_VERSION = 'Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13'

/** Says back what it hears. */
const ECHO: WebSocketRoutes = {
  '/echo': async (socket) => {
    for (let text = await socket.next(); text !== undefined; text = await socket.next()) {
      await socket.send(text)
    }
  },
}

async function serve(t: TestContext, routes: WebSocketRoutes, door: Partial<UpgradeDoor> = {}) {
  const server = createServer((_request, response) => response.end('plain'))
  const sockets = serveWebSockets(server, routes, { authorize: async () => undefined, ...door })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { sockets, port: (server.address() as AddressInfo).port }
}

/** A client that writes its frames itself; resolves with what came until the server hung up. */
async function dial(t: TestContext, port: number, headers = KEY_AND_VERSION) {
  const client = connect(port, '127.0.0.1')
  t.after(() => client.destroy())
  let bytes = Buffer.alloc(0)
  const ended = once(client, 'end').then(() => bytes)
  client.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
  })
  client.write(
    `GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n\r\n`,
  )
  await once(client, 'data')
  return { client, ended }
}

function frameOf(first: number, payload: Buffer | string = '', isMasked = true): Buffer {
  const body = Buffer.from(payload)
  const length = body.length < 126 ? [body.length] : [126, body.length >> 8, body.length & 255]
  const [short = 0, ...long] = length
  const mask = isMasked ? [0, 0, 0, 0] : []
  return Buffer.concat([
    Buffer.from([first, (isMasked ? 0x80 : 0) | short, ...long, ...mask]),
    body,
  ])
}

/** The code of the close frame that ends what the server sent. */
const codeIn = (bytes: Buffer) => bytes.readUInt16BE(bytes.length - 2)

const WRONG: [what: string, frames: Buffer[], code: number][] = [
  ['unmasked frames', [frameOf(0x81, '{}', false)], 1002],
  ['extensions', [frameOf(0xc1, '{}')], 1002],
  ['unknown frames', [frameOf(0x83, '{}')], 1002],
  ['long pings', [frameOf(0x89, Buffer.alloc(126))], 1002],
  ['pings in pieces', [frameOf(0x09)], 1002],
  ['a piece without a beginning', [frameOf(0x80, '{}')], 1002],
  ['a beginning within a message', [frameOf(0x01, '{'), frameOf(0x81, '}')], 1002],
  ['bytes', [frameOf(0x82, '{}')], 1003],
  ['what is not UTF-8', [frameOf(0x81, Buffer.from([0xff, 0xfe]))], 1007],
  ['a message of too many pieces', [frameOf(0x01), ...Array(2000).fill(frameOf(0x00))], 1009],
  ['a message that is too long', Array(20).fill(frameOf(0x00, 'x'.repeat(65_535))), 1009],
]

for (const [what, frames, code] of WRONG) {
  test(`a client that sends ${what} is told ${code}`, async (t) => {
    const { port } = await serve(t, ECHO)
    const { client, ended } = await dial(t, port)
    const [first] = frames
    const isLong = code === 1009 && first?.[0] === 0
    client.write(Buffer.concat(isLong ? [frameOf(0x01), ...frames] : frames))
    assert.equal(codeIn(await ended), code)
  })
}

test('a message may come byte by byte and in pieces', async (t) => {
  const { port } = await serve(t, ECHO)
  const { client, ended } = await dial(t, port)
  const text = 'words '.repeat(50)
  const [a, b] = [text.slice(0, 7), text.slice(7)]
  const answered = once(client, 'data')
  for (const byte of Buffer.concat([frameOf(0x01, a), frameOf(0x00), frameOf(0x80, b)])) {
    await written(client, Buffer.from([byte]))
  }
  await answered
  client.write(frameOf(0x88))
  assert.ok((await ended).includes(text))
})

const written = (client: Socket, bytes: Buffer) =>
  new Promise<void>((resolve) => client.write(bytes, () => setImmediate(resolve)))

test('a client that asks for nothing in time is cut off', async (t) => {
  const { port } = await serve(t, {
    '/echo': async (socket) => assert.equal(await socket.next(20), undefined),
  })
  const { ended } = await dial(t, port)
  assert.equal(codeIn(await ended), 1008)
})

test('clients are told when the server goes away, and those who do not hang up are left behind', async (t) => {
  const { port, sockets } = await serve(t, ECHO)
  const polite = new WebSocket(`ws://127.0.0.1:${port}/echo`)
  await once(polite, 'open')
  const deaf = await dial(t, port)
  deaf.client.pause()
  const told = once(polite, 'close') as Promise<[CloseEvent]>
  await sockets.close()
  const [{ code }] = await told
  assert.equal(code, 1001)
})

test('a door that is full lets nobody in until somebody has left', async (t) => {
  const { port } = await serve(t, ECHO, {
    admit: (open) => (open < 1 ? undefined : { status: 409, body: '{"full":true}' }),
  })
  const first = await dial(t, port)
  const second = await dial(t, port)
  assert.match(String(await second.ended), /^HTTP\/1.1 409 .*\{"full":true\}$/s)
  first.client.end(frameOf(0x88))
  await first.ended
  for (;;) {
    const again = await dial(t, port)
    again.client.write(frameOf(0x88))
    if (String(await again.ended).startsWith('HTTP/1.1 101')) return
  }
})

test('another version of the protocol is told which one is spoken', async (t) => {
  const { port } = await serve(t, ECHO)
  const { ended } = await dial(t, port, 'Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 8')
  assert.match(String(await ended), /^HTTP\/1.1 426 .*Sec-WebSocket-Version: 13\r\n/s)
})

test('a client that offers another protocol than WebSocket gets a plain answer', async (t) => {
  const { port } = await serve(t, ECHO)
  const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AA' }
  const asked = request({ port, host: '127.0.0.1', path: '/v2/version', headers }).end()
  const [response] = await once(asked, 'response')
  assert.equal(response.statusCode, 200)
  response.resume()
})

test('slashes too many and a query do not matter', async (t) => {
  const { port } = await serve(t, ECHO)
  for (const path of ['//echo', '/echo/', '/echo?x=1', '//echo//?x']) {
    const client = new WebSocket(`ws://127.0.0.1:${port}${path}`)
    await once(client, 'open')
    client.close()
  }
})
