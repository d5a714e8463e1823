import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import {
  CLOSE,
  type Frame,
  MESSAGE_BYTES_MAX,
  makeClose,
  makeFrame,
  OPCODE,
  parseFrame,
} from './websocket-frame.ts'

/** One client of a stream: text messages both ways. */
export type WebSocketConnection = {
  /** The next text message; undefined when the client has closed, or did not send one in time. */
  next(withinMs?: number): Promise<string | undefined>
  /** Resolves when the client can take more. */
  send(text: string): Promise<void>
  close(code?: number): void
  /** Aborts when the connection is gone. */
  readonly closed: AbortSignal
}

/** Messages that nobody has asked for yet: a client of ours sends one and listens. */
const WAITING_MAX = 16
/** Pieces of one message: clients send a request in one or a few. */
const FRAGMENTS_MAX = 1024
/** Chunks that are kept apart until they make a frame: each costs more than the bytes in it. */
const CHUNKS_MAX = 1024
/** A client is asked so often whether it is still there, which also keeps proxies from hanging up. */
const PING_MS = 30_000
/** Neither a sign of life nor a byte taken between so many questions: the client is gone. */
const SILENT_PINGS_MAX = 4
/** After a close the client has this long to hang up. */
const HANG_UP_MS = 2000

export function openConnection(socket: Duplex, head: Buffer): WebSocketConnection {
  const messages: string[] = []
  const gone = new AbortController()
  let chunks: Buffer[] = []
  let held = 0
  let needed = 0
  let parts: Buffer[] | undefined
  let partBytes = 0
  let silentPings = 0
  let wake: (() => void) | undefined

  const pings = setInterval(() => {
    if (silentPings >= SILENT_PINGS_MAX) {
      socket.destroy()
      return
    }
    silentPings += 1
    if (!socket.writableNeedDrain) write(makeFrame(OPCODE.ping, Buffer.alloc(0)))
  }, PING_MS)
  pings.unref()

  function write(bytes: Buffer): boolean {
    if (socket.destroyed || socket.writableEnded) return true
    return socket.write(bytes)
  }

  function close(code: number = CLOSE.normal): void {
    if (gone.signal.aborted) return
    write(makeClose(code))
    socket.end()
    setTimeout(() => socket.destroy(), HANG_UP_MS).unref()
    end()
  }

  function end(): void {
    clearInterval(pings)
    chunks = []
    parts = undefined
    gone.abort()
    wake?.()
  }

  /** Bytes are put together only when they make a frame, however small the pieces in which they come. */
  function read(chunk: Buffer): void {
    silentPings = 0
    if (gone.signal.aborted) return
    chunks.push(chunk)
    held += chunk.length
    if (held < needed && chunks.length < CHUNKS_MAX) return
    let bytes = chunks.length === 1 ? chunk : Buffer.concat(chunks)
    while (!gone.signal.aborted) {
      const parsed = parseFrame(bytes)
      if ('refused' in parsed) {
        close(parsed.refused)
        return
      }
      if ('needed' in parsed) {
        needed = parsed.needed
        break
      }
      bytes = bytes.subarray(parsed.frame.bytes)
      take(parsed.frame)
    }
    chunks = [bytes]
    held = bytes.length
  }

  function take(frame: Frame): void {
    const { opcode, payload } = frame
    if (opcode === OPCODE.close) close()
    else if (opcode === OPCODE.ping) {
      // Who does not read gets no answers either, or they would pile up.
      if (!socket.writableNeedDrain) write(makeFrame(OPCODE.pong, payload))
    } else if (opcode === OPCODE.binary) close(CLOSE.unsupported)
    else if (opcode !== OPCODE.pong) takePart(frame)
  }

  function takePart({ opcode, isFinal, payload }: Frame): void {
    // A message begins with its kind and goes on without it.
    if ((opcode === OPCODE.text) !== (parts === undefined)) {
      close(CLOSE.protocol)
      return
    }
    parts ??= []
    parts.push(payload)
    partBytes += payload.length
    if (partBytes > MESSAGE_BYTES_MAX || parts.length > FRAGMENTS_MAX) {
      close(CLOSE.tooBig)
      return
    }
    if (!isFinal) return
    const text = textOf(Buffer.concat(parts))
    parts = undefined
    partBytes = 0
    if (text === undefined) close(CLOSE.notText)
    else if (messages.length >= WAITING_MAX) close(CLOSE.policy)
    else {
      messages.push(text)
      wake?.()
    }
  }

  socket.on('data', read)
  socket.on('drain', () => {
    silentPings = 0
  })
  socket.on('close', end)
  socket.on('end', () => socket.end())
  if (head.length > 0) read(head)
  return {
    async next(withinMs) {
      const timer =
        withinMs === undefined ? undefined : setTimeout(() => close(CLOSE.policy), withinMs)
      while (messages.length === 0 && !gone.signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      clearTimeout(timer)
      return messages.shift()
    },
    async send(text) {
      if (write(makeFrame(OPCODE.text, Buffer.from(text))) || gone.signal.aborted) return
      await once(socket, 'drain', { signal: gone.signal }).catch(() => {})
    },
    close,
    closed: gone.signal,
  }
}

function textOf(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
