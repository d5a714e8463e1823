import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { serveWebSockets } from './websocket.ts'

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
    async () => undefined,
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
    async () => undefined,
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
