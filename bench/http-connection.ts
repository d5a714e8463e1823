// One keep-alive connection that sends ready-made requests and only counts what comes back. A full
// HTTP client would cost more than the servers that are measured.

import { connect, type Socket } from 'node:net'

export type Connection = {
  /** Sends a request and resolves with the length of the answer's body when all of it is there. */
  request(bytes: Buffer): Promise<number>
  close(): void
}

const READ_BYTES = 1024 * 1024
const OK = 'HTTP/1.1 200 '

/** What of the answer comes next: its headers, so many bytes, a line with the size of a chunk, … */
type State = 'headers' | 'body' | 'chunk size' | 'chunk' | 'trailer'

export async function openConnection(port: number): Promise<Connection> {
  let state: State = 'headers'
  let isChunked = false
  let text = ''
  let remaining = 0
  let length = 0
  let answer: { resolve(length: number): void; reject(error: Error): void } | undefined

  function finish(): void {
    state = 'headers'
    text = ''
    const waiting = answer
    answer = undefined
    waiting?.resolve(length)
  }

  /** Takes bytes up to the end of the headers, or of a line; undefined while it has not come. */
  function takeUntil(bytes: Buffer, at: number, end: string) {
    const found = bytes.indexOf(end, at, 'latin1')
    if (text === '' && found >= 0) {
      return { text: bytes.toString('latin1', at, found), next: found + end.length }
    }
    // Rare: the end, or a part of it, comes with the next bytes.
    const before = text.length
    text += bytes.toString('latin1', at)
    const foundInText = text.indexOf(end)
    if (foundInText < 0) return undefined
    const taken = text.slice(0, foundInText)
    text = ''
    return { text: taken, next: at + foundInText + end.length - before }
  }

  function readHeaders(headers: string): void {
    if (!headers.startsWith(OK)) throw new Error(`An answer was ${headers.split('\r\n')[0]}.`)
    isChunked = /\r\ntransfer-encoding: *chunked/i.test(headers)
    remaining = Number(/\r\ncontent-length: *(\d+)/i.exec(headers)?.[1] ?? 0)
    length = remaining
    state = isChunked ? 'chunk size' : 'body'
    if (state === 'body' && remaining === 0) finish()
  }

  function read(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      if (state === 'body' || state === 'chunk') {
        const taken = Math.min(remaining, bytes.length - at)
        remaining -= taken
        at += taken
        if (remaining > 0) return
        if (state === 'body') finish()
        else state = 'chunk size'
        continue
      }
      const line = takeUntil(bytes, at, state === 'headers' ? '\r\n\r\n' : '\r\n')
      if (line === undefined) return
      at = line.next
      if (state === 'headers') readHeaders(line.text)
      else if (state === 'trailer') finish()
      else {
        const size = Number.parseInt(line.text, 16)
        length += size
        // The line end behind a chunk's bytes counts as part of it.
        remaining = size + 2
        state = size === 0 ? 'trailer' : 'chunk'
      }
    }
  }

  const buffer = Buffer.allocUnsafe(READ_BYTES)
  const socket: Socket = await new Promise((resolve, reject) => {
    const opening = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback(count: number) {
          try {
            read(buffer.subarray(0, count))
          } catch (error) {
            opening.destroy(error as Error)
          }
          return true
        },
      },
    })
    opening.once('error', reject)
    opening.once('connect', () => resolve(opening))
  })
  const fail = (error: Error) => answer?.reject(error)
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('The server closed the connection.')))
  return {
    request(bytes) {
      return new Promise((resolve, reject) => {
        answer = { resolve, reject }
        socket.write(bytes)
      })
    },
    close: () => socket.destroy(),
  }
}
