import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'

// The server's side of RFC 6455, as far as streams of JSON need it: text messages both ways, ping,
// pong and close. There are no extensions.

export type WebSocketConnection = {
  /** The next text message; undefined when the client has closed. */
  next(): Promise<string | undefined>
  /** Resolves when the client can take more. */
  send(text: string): Promise<void>
  close(code?: number): void
  /** Aborts when the connection is gone. */
  readonly closed: AbortSignal
}

export type WebSocketRoutes = Record<
  string,
  (connection: WebSocketConnection, request: IncomingMessage) => Promise<void>
>

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** Requests are small; a client that sends more is not one of ours. */
const MESSAGE_BYTES_MAX = 1024 * 1024
/** Messages that nobody has asked for yet: a client of ours sends one and listens. */
const WAITING_MAX = 16
const OPCODE = { continuation: 0, text: 1, close: 8, ping: 9, pong: 10 } as const
const CLOSE = { normal: 1000, protocol: 1002, policy: 1008, tooBig: 1009, internal: 1011 } as const

/** Answers upgrades of the paths; other upgrades are refused. */
export function serveWebSockets(
  server: Server,
  routes: WebSocketRoutes,
  authorize: (request: IncomingMessage) => Promise<{ status: number; body: string } | undefined>,
): void {
  server.on('upgrade', async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const path = (request.url ?? '').split('?')[0]?.replace(/\/+$/, '') ?? ''
    const serve = routes[path]
    const key = request.headers['sec-websocket-key']
    if (serve === undefined || key === undefined) {
      refuse(socket, 404, '')
      return
    }
    const refusal = await authorize(request)
    if (refusal !== undefined) {
      refuse(socket, refusal.status, refusal.body)
      return
    }
    socket.write(handshake(key, request.headers['sec-websocket-protocol']))
    const connection = openConnection(socket, head)
    try {
      await serve(connection, request)
      connection.close()
    } catch {
      connection.close(CLOSE.internal)
    }
  })
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

function refuse(socket: Duplex, status: number, body: string): void {
  const length = Buffer.byteLength(body)
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
  )
}

function openConnection(socket: Duplex, head: Buffer): WebSocketConnection {
  const messages: string[] = []
  const gone = new AbortController()
  let held = head
  let parts: Buffer[] = []
  let wake: (() => void) | undefined

  function write(opcode: number, payload: Buffer): boolean {
    if (socket.destroyed || socket.writableEnded) return true
    return socket.write(frame(opcode, payload))
  }

  function close(code: number = CLOSE.normal): void {
    if (gone.signal.aborted) return
    const payload = Buffer.alloc(2)
    payload.writeUInt16BE(code)
    write(OPCODE.close, payload)
    socket.end()
    end()
  }

  function end(): void {
    gone.abort()
    wake?.()
  }

  function read(): void {
    for (;;) {
      const parsed = parseFrame(held)
      if (parsed === undefined) return
      if (parsed === 'refused') {
        close(CLOSE.protocol)
        return
      }
      held = parsed.rest
      take(parsed)
    }
  }

  function take({ opcode, isFinal, payload }: Frame): void {
    if (opcode === OPCODE.close) close()
    else if (opcode === OPCODE.ping) {
      // Who does not read gets no answers either, or they would pile up.
      if (!socket.writableNeedDrain) write(OPCODE.pong, payload)
    } else if (opcode === OPCODE.text || opcode === OPCODE.continuation) {
      parts.push(payload)
      if (parts.reduce((sum, { length }) => sum + length, 0) > MESSAGE_BYTES_MAX) {
        close(CLOSE.tooBig)
        return
      }
      if (!isFinal) return
      if (messages.length >= WAITING_MAX) {
        close(CLOSE.policy)
        return
      }
      messages.push(Buffer.concat(parts).toString('utf8'))
      parts = []
      wake?.()
    }
  }

  socket.on('data', (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    read()
  })
  socket.on('close', end)
  socket.on('end', () => socket.end())
  read()
  return {
    async next() {
      while (messages.length === 0 && !gone.signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return messages.shift()
    },
    async send(text) {
      if (write(OPCODE.text, Buffer.from(text)) || gone.signal.aborted) return
      await once(socket, 'drain', { signal: gone.signal }).catch(() => {})
    },
    close,
    closed: gone.signal,
  }
}

type Frame = { opcode: number; isFinal: boolean; payload: Buffer; rest: Buffer }

/** Undefined while the frame is not whole; clients must mask what they send. */
function parseFrame(bytes: Buffer): Frame | 'refused' | undefined {
  if (bytes.length < 2) return undefined
  const first = bytes[0] as number
  const second = bytes[1] as number
  if ((second & 0x80) === 0) return 'refused'
  let length = second & 0x7f
  let at = 2
  if (length === 126) {
    if (bytes.length < 4) return undefined
    length = bytes.readUInt16BE(2)
    at = 4
  } else if (length === 127) {
    if (bytes.length < 10) return undefined
    const long = bytes.readBigUInt64BE(2)
    if (long > BigInt(MESSAGE_BYTES_MAX)) return 'refused'
    length = Number(long)
    at = 10
  }
  if (length > MESSAGE_BYTES_MAX) return 'refused'
  if (bytes.length < at + 4 + length) return undefined
  const mask = bytes.subarray(at, at + 4)
  const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length))
  for (let i = 0; i < payload.length; i += 1) {
    payload[i] = (payload[i] as number) ^ (mask[i % 4] as number)
  }
  const rest = bytes.subarray(at + 4 + length)
  return { opcode: first & 0x0f, isFinal: (first & 0x80) !== 0, payload, rest }
}

function frame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const size = length < 126 ? 2 : length < 65_536 ? 4 : 10
  const head = Buffer.alloc(size)
  head[0] = 0x80 | opcode
  if (size === 2) head[1] = length
  else if (size === 4) {
    head[1] = 126
    head.writeUInt16BE(length, 2)
  } else {
    head[1] = 127
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  return Buffer.concat([head, payload])
}
