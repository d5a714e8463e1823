import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { openConnection, type WebSocketConnection } from './websocket-connection.ts'
import { CLOSE } from './websocket-frame.ts'

// The server's side of RFC 6455, as far as streams of JSON need it: text messages both ways, ping,
// pong and close. There are no extensions.

export type WebSocketRoutes = Record<
  string,
  (connection: WebSocketConnection, request: IncomingMessage) => Promise<void>
>

/** What a client gets instead of a stream; the body is JSON. */
export type UpgradeRefusal = { status: number; body: string }

export type UpgradeDoor = {
  authorize(request: IncomingMessage): Promise<UpgradeRefusal | undefined>
  /** Asked last, with the number of open connections. */
  admit?(open: number, request: IncomingMessage): UpgradeRefusal | undefined
}

export type WebSockets = {
  /** Tells every client that the server goes away, and waits a moment until they have hung up. */
  close(): Promise<void>
}

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const VERSION = '13'

/** Answers upgrades of the paths; other upgrades are refused. */
export function serveWebSockets(
  server: Server,
  routes: WebSocketRoutes,
  { authorize, admit }: UpgradeDoor,
): WebSockets {
  const open = new Map<Duplex, WebSocketConnection>()
  let isClosing = false

  async function refusalOf(request: IncomingMessage): Promise<UpgradeRefusal | undefined> {
    return (await authorize(request)) ?? admit?.(open.size, request)
  }

  // Clients that offer another protocol, such as h2c, are answered as if they had not.
  Object.assign(server, { shouldUpgradeCallback: isWebSocket })
  server.on('upgrade', async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const path = pathOf(request)
    const serve = Object.hasOwn(routes, path) ? routes[path] : undefined
    const key = request.headers['sec-websocket-key']
    if (serve === undefined) return refuse(socket, { status: 404, body: '' })
    if (key === undefined || !isWebSocket(request)) return refuse(socket, { status: 400, body: '' })
    if (request.headers['sec-websocket-version'] !== VERSION) {
      return refuse(socket, { status: 426, body: '' }, [`Sec-WebSocket-Version: ${VERSION}`])
    }
    const refusal = await refusalOf(request)
    if (refusal !== undefined) return refuse(socket, refusal)
    if (isClosing || socket.destroyed) {
      socket.destroy()
      return
    }
    socket.write(handshake(key, request.headers['sec-websocket-protocol']))
    const connection = openConnection(socket, head)
    open.set(socket, connection)
    socket.on('close', () => open.delete(socket))
    try {
      await serve(connection, request)
      connection.close()
    } catch {
      connection.close(CLOSE.internal)
    }
  })

  return {
    async close() {
      isClosing = true
      const hungUp = [...open.keys()].map((socket) => once(socket, 'close'))
      for (const connection of open.values()) connection.close(CLOSE.goingAway)
      await Promise.allSettled(hungUp)
    },
  }
}

/** Clients put a base address that ends in a slash before a path that begins with one. */
function pathOf({ url = '' }: IncomingMessage): string {
  return (url.split('?')[0] ?? '').replace(/\/+/g, '/').replace(/\/$/, '')
}

function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

function handshake(key: string, offered: string | undefined): string {
  const accept = createHash('sha1').update(`${key}${ACCEPT_SUFFIX}`).digest('base64')
  const protocols = (offered ?? '').split(',').map((name) => name.trim())
  // A client that offers protocols wants one of them back; the token travels as one of them.
  const chosen = protocols.find((name) => name === 'daml.ws.auth') ?? protocols[0]
  return [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
    ...(chosen ? [`Sec-WebSocket-Protocol: ${chosen}`] : []),
    '\r\n',
  ].join('\r\n')
}

function refuse(
  socket: Duplex,
  { status, body }: UpgradeRefusal,
  headers: readonly string[] = [],
): void {
  const head = [
    `HTTP/1.1 ${status} Refused`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
