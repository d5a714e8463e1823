import { isIPv4 } from 'node:net'
import type { Transform } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import type { Exchange } from '../http/exchange.ts'
import { readRetryAfter } from '../http/retry-after.ts'

/** The asking end of the Scan protocol: one question to one scan, within limits of time and size. */
export type ScanRequest = {
  method: 'GET' | 'POST'
  /** Below the base of the scan API, such as `/v2/updates`. */
  path: string
  /** JSON text. */
  body?: string
}

export type ScanLimits = {
  /** Until the head of the answer is there. */
  headMs: number
  /** Until its last byte is there. */
  wholeMs: number
  /** Of the body, unpacked. */
  bytesMax: number
  /** About how large it will be, where somebody knows. */
  bytesExpected?: number | undefined
  /** Memory for the body, if it fits; fresh memory costs as much as the copy into it. */
  into?: Buffer | undefined
}

/** What came back whole, whatever its status; or why nothing usable did. */
export type ScanAnswer =
  | { kind: 'answer'; status: number; bytes: Buffer; retryAfterMs: number | undefined; ms: number }
  | { kind: 'fault'; fault: FaultKind; reason: string; ms: number }

export type FaultKind = 'unreachable' | 'slow' | 'tooLarge' | 'redirect' | 'cutOff' | 'resting'

export const SCAN_LIMITS: ScanLimits = {
  // Deployed scans give up on a request after 38 seconds.
  headMs: 40_000,
  wholeMs: 60_000,
  bytesMax: 4 * 1024 * 1024,
}

/** A body may arrive at this pace and not slower, once it has had time to begin. */
const BYTES_PER_SECOND_MIN = 8 * 1024
const PACE_GRACE_MS = 5_000
const PACE_CHECK_MS = 500
/** Whoever wants us away for longer is asked again all the same. */
const RETRY_AFTER_MS_MAX = 5 * 60_000

/** The base of the scan API at an address that was given with or without it. */
export function scanBase(address: string): string | undefined {
  try {
    const url = new URL(address)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
    url.hash = ''
    url.search = ''
    // A name and password in an address would end up in logs and lists.
    if (url.username !== '' || url.password !== '') return undefined
    const path = url.pathname.replace(/\/+$/, '')
    url.pathname = path.endsWith(SCAN_PATH) ? path : path + SCAN_PATH
    return url.toString()
  } catch {
    return undefined
  }
}

const SCAN_PATH = '/api/scan'

/** The public address of a scan, as `/v0/scans` lists it: without the path. */
export function publicAddress(base: string): string {
  return base.slice(0, -SCAN_PATH.length)
}

/** Ends the reading of an answer that has become too large. */
class TooLarge extends Error {
  override name = 'TooLarge'
}

export async function askScan(options: {
  exchange: Exchange
  base: string
  request: ScanRequest
  limits: ScanLimits
  signal?: AbortSignal | undefined
}): Promise<ScanAnswer> {
  const { base, request, limits } = options
  const startedAt = performance.now()
  const elapsed = () => performance.now() - startedAt
  const stop = new AbortController()
  let why: { fault: FaultKind; reason: string } | undefined
  const end = (fault: FaultKind, reason: string) => {
    why ??= { fault, reason }
    stop.abort()
  }
  const body = createBody(limits)
  let head: { status: number; retryAfterMs: number | undefined; ms: number } | undefined
  const pace = setInterval(() => {
    const ms = elapsed()
    if (ms > limits.wholeMs) end('slow', `The answer was not whole after ${limits.wholeMs} ms.`)
    else if (head === undefined) {
      if (ms > limits.headMs) end('slow', `No answer within ${limits.headMs} ms.`)
    } else {
      const bodyMs = ms - head.ms
      if (bodyMs > PACE_GRACE_MS && (body.received * 1000) / bodyMs < BYTES_PER_SECOND_MIN) {
        end('slow', `The answer came slower than ${BYTES_PER_SECOND_MIN} bytes a second.`)
      }
    }
  }, PACE_CHECK_MS)
  const onAbort = () => end('unreachable', 'No longer asked.')
  options.signal?.addEventListener('abort', onAbort, { once: true })
  try {
    if (options.signal?.aborted) onAbort()
    await options.exchange(base + request.path, {
      method: request.method,
      signal: stop.signal,
      headers: {
        accept: 'application/json',
        'accept-encoding': codingsFor(base),
        ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: request.body,
      onHead(status, header) {
        head = {
          status,
          retryAfterMs: readRetryAfter(header('retry-after'), RETRY_AFTER_MS_MAX),
          ms: elapsed(),
        }
        if (status >= 300 && status < 400) {
          end('redirect', `It redirects (${status}); a scan is asked under its own address only.`)
        }
        body.begin(header('content-encoding'), header('content-length'))
      },
      onChunk: (chunk) => body.add(chunk),
    })
    const bytes = await body.end()
    if (why !== undefined || head === undefined) throw new Error('The answer ended early.')
    return { kind: 'answer', bytes, ...head, ms: elapsed() }
  } catch (error) {
    if (error instanceof TooLarge) why = { fault: 'tooLarge', reason: error.message }
    const fault = head === undefined ? 'unreachable' : 'cutOff'
    return { kind: 'fault', fault, reason: explain(error), ...why, ms: elapsed() }
  } finally {
    clearInterval(pace)
    body.drop()
    options.signal?.removeEventListener('abort', onAbort)
  }
}

type Body = {
  /** Bytes as they were sent. */
  readonly received: number
  begin(coding: string | undefined, length: string | undefined): void
  add(chunk: Buffer): void
  end(): Promise<Buffer>
  drop(): void
}

const FIRST_BYTES = 16 * 1024
const EMPTY = Buffer.alloc(0)

/**
 * Collects a body; every piece is copied once, to its place. Its size is counted unpacked, so that a
 * bomb does not go off.
 */
function createBody({ bytesMax, bytesExpected = FIRST_BYTES, into = EMPTY }: ScanLimits): Body {
  let whole = into
  let received = 0
  let length = 0
  let unpacking: { stream: Transform; done: Promise<void> } | undefined
  const tooLarge = () => new TooLarge(`The answer is larger than ${bytesMax} bytes.`)
  const keep = (chunk: Buffer) => {
    const needed = length + chunk.length
    if (needed > bytesMax) throw tooLarge()
    if (needed > whole.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, bytesExpected, whole.length * 2))
      whole.copy(larger, 0, 0, length)
      whole = larger
    }
    chunk.copy(whole, length)
    length = needed
  }
  return {
    get received() {
      return received
    },
    begin(coding, lengthText) {
      if (coding !== undefined && coding !== 'identity') {
        unpacking = startUnpacking(coding, keep)
        return
      }
      const announced = Number(lengthText ?? Number.NaN)
      if (announced > bytesMax) throw tooLarge()
      if (announced > whole.length) whole = Buffer.allocUnsafeSlow(announced)
    },
    add(chunk) {
      received += chunk.length
      if (unpacking === undefined) keep(chunk)
      else unpacking.stream.write(chunk)
    },
    async end() {
      if (unpacking !== undefined) {
        unpacking.stream.end()
        await unpacking.done
      }
      return whole.subarray(0, length)
    },
    drop() {
      unpacking?.stream.destroy()
    },
  }
}

function startUnpacking(coding: string, keep: (chunk: Buffer) => void) {
  const stream =
    coding === 'gzip' ? createGunzip() : coding === 'zstd' ? createZstdDecompress() : undefined
  if (stream === undefined) throw new Error(`It answers in the coding ${coding}, unasked.`)
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  // Whoever waits for the end sees the failure.
  done.catch(() => {})
  stream.on('data', (chunk: Buffer) => {
    try {
      keep(chunk)
    } catch (error) {
      stream.destroy(error as Error)
    }
  })
  stream.on('end', resolve).on('error', reject)
  return { stream: stream as Transform, done }
}

/** Between two programs on one machine packing costs more than it saves. */
function codingsFor(base: string): string {
  const { hostname } = new URL(base)
  const isHere = hostname === 'localhost' || hostname === '[::1]'
  return isHere || (isIPv4(hostname) && hostname.startsWith('127.')) ? 'identity' : 'zstd, gzip'
}

/** The innermost reason: what `fetch failed` hides. */
function explain(error: unknown): string {
  let inner = error as Error & { code?: string }
  for (let depth = 0; depth < 5 && inner.cause instanceof Error; depth += 1) inner = inner.cause
  const { code, message } = inner
  return code === undefined || message.includes(code) ? message : `${message} (${code})`
}
