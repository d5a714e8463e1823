import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { makeCertificate } from './certificates.ts'
import type { Cleanup } from './engines.ts'
import { lieAbout } from './fake-scans.ts'

// A scan behind a proxy that breaks its answers, over real sockets.

export const PROXY_FAULTS = [
  'lie',
  'reorder',
  'drop',
  'duplicate',
  'truncate',
  'garbage',
  'too many requests',
  'incomplete',
  'cut off',
  'bomb',
  'gigabyte',
  'redirect',
  'drip',
  'hang',
] as const
export type ProxyFault = (typeof PROXY_FAULTS)[number]

export type FaultProxy = {
  url: string
  /** What it does with update pages from now on; several are taken in turns. */
  misbehave(...faults: ProxyFault[]): void
  delayMs: number
}

/** Other questions than for pages are passed on as they are. */
export async function startFaultProxy(t: Cleanup, target: string): Promise<FaultProxy> {
  let faults: ProxyFault[] = []
  let turn = 0
  const proxy: FaultProxy = {
    url: '',
    delayMs: 0,
    misbehave(...next) {
      faults = next
    },
  }
  const server = createServer(async (request, response) => {
    try {
      const isPage = /^\/api\/scan\/v[12]\/updates$/.test(request.url ?? '')
      const fault = isPage ? faults[turn++ % faults.length] : undefined
      if (isPage && proxy.delayMs > 0) await wait(proxy.delayMs)
      if (!(await breakEarly(fault, response))) await passOn(target, request, response, fault)
    } catch {
      response.destroy()
    }
  })
  await listening(t, server)
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return proxy
}

/** A server whose certificate has expired. */
export async function startExpiredServer(t: Cleanup): Promise<string> {
  const { cert, key } = makeCertificate({ name: 'localhost', validForDays: -1 })
  const server = createTlsServer({ cert, key }, (_request, response) => response.end('{}'))
  await listening(t, server)
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function listening(t: Cleanup, server: ReturnType<typeof createServer>): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
}

const MEBIBYTE = Buffer.alloc(1024 * 1024, ' ')

async function breakEarly(
  fault: ProxyFault | undefined,
  response: ServerResponse,
): Promise<boolean> {
  switch (fault) {
    case 'too many requests':
      response.writeHead(429, { 'retry-after': '1' }).end()
      return true
    case 'incomplete':
      response.writeHead(503, { 'retry-after': '1' }).end('{"error":"not yet replicated"}')
      return true
    case 'redirect':
      response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()
      return true
    case 'garbage':
      response.end('<html>Welcome</html>')
      return true
    case 'bomb':
      response
        .writeHead(200, { 'content-encoding': 'gzip' })
        .end(gzipSync(Buffer.alloc(100 * 1024 * 1024, ' ')))
      return true
    case 'gigabyte':
      response.writeHead(200)
      for (let n = 0; n < 1024 && !response.destroyed; n += 1) {
        if (!response.write(MEBIBYTE)) {
          await Promise.race([once(response, 'drain'), once(response, 'close')])
        }
      }
      response.end()
      return true
    case 'drip':
      response.writeHead(200)
      while (!response.destroyed) {
        response.write('{')
        await Promise.race([wait(1000, undefined, { ref: false }), once(response, 'close')])
      }
      return true
    case 'hang':
      return true
    default:
      return false
  }
}

async function passOn(
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
  fault: ProxyFault | undefined,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const answer = await fetch(new URL(request.url ?? '/', target), {
    method: request.method ?? 'GET',
    headers: { 'accept-encoding': 'identity', 'content-type': 'application/json' },
    ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
  })
  const body = await answer.text()
  response.statusCode = answer.status
  response.setHeader('content-type', 'application/json')
  if (fault === 'cut off') {
    response.setHeader('content-length', Buffer.byteLength(body) + 1)
    response.write(body)
    setImmediate(() => response.destroy())
    return
  }
  response.end(fault === undefined ? body : spoil(fault, body))
}

function spoil(fault: ProxyFault, body: string): string {
  const { transactions: items } = JSON.parse(body) as { transactions: unknown[] }
  const [first] = items
  if (first === undefined) return body
  switch (fault) {
    case 'lie':
      return lieAbout(body)
    case 'reorder':
      items.reverse()
      break
    case 'drop':
      items.shift()
      break
    case 'duplicate':
      items.unshift(first)
      break
    case 'truncate':
      items.length = Math.floor(items.length / 2)
      break
  }
  return JSON.stringify({ transactions: items })
}
