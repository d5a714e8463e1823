import { createRandom, type Random } from '../../src/base/random.ts'
import type { Encoding } from '../../src/history/encode.ts'
import type { History } from '../../src/history/history.ts'
import { itemBytes, readItems } from '../../src/history/page-items.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import type { Peer } from '../../src/mirror/peers.ts'
import { readPageRequest } from '../../src/scan/requests.ts'
import { reformat } from './reformat.ts'

// Scans that hold the same history, some of which say anything. They answer in this process, without sockets.

export const FAULTS = [
  'lie',
  'lie in one encoding',
  'reorder',
  'drop',
  'duplicate',
  'invent',
  'truncate',
  'garbage',
  'other layout',
  'empty',
  'too many requests',
  'incomplete',
  'hang',
  'huge',
  'redirect',
  'reset',
  'not found',
] as const
export type Fault = (typeof FAULTS)[number]

export type FakeScans = { exchange: Exchange; peers: Peer[]; requests(): number }

/** What a scan does with one request; undefined is the truth. */
export type Behaviour = (peer: number, random: Random) => Fault | undefined

export function createFakeScans(options: {
  truth: History
  count: number
  behaviour: Behaviour
  seed: string
  /** How many updates each scan has; all unless given. */
  heightOf?: (peer: number) => number
}): FakeScans {
  const random = createRandom(options.seed)
  const bases = Array.from({ length: options.count }, (_, n) => `http://scan-${n}.test/api/scan`)
  let requests = 0
  const exchange: Exchange = async (url, request) => {
    requests += 1
    const peer = bases.findIndex((base) => url.startsWith(base))
    const path = url.slice((bases[peer] as string).length)
    const fault = options.behaviour(peer, random)
    const answer = (status: number, body: string, headers: Record<string, string> = {}) => {
      request.onHead(status, (name) => headers[name])
      request.onChunk(Buffer.from(body))
    }
    switch (fault) {
      case 'too many requests':
        return answer(429, '', { 'retry-after': '0' })
      case 'incomplete':
        return answer(503, '{"error":"not yet replicated"}', { 'retry-after': '0' })
      case 'not found':
        return answer(404, '{"error":"not here"}')
      case 'redirect':
        return answer(302, '', { location: 'http://elsewhere.test' })
      case 'reset':
        throw new Error('The connection was reset.')
      case 'hang':
        return new Promise((_, reject) => {
          const end = () => reject(new Error('given up'))
          if (request.signal.aborted) end()
          else request.signal.addEventListener('abort', end, { once: true })
        })
      case 'huge':
        request.onHead(200, () => undefined)
        for (;;) {
          request.onChunk(MUCH)
          await new Promise(setImmediate)
        }
    }
    if (!/^\/v[12]\/updates$/.test(path)) return answer(404, '{"error":"no such thing"}')
    const version = path.startsWith('/v1') ? 1 : 2
    const wish = readPageRequest(Buffer.from(request.body ?? ''), { version, pageSizeMax: 1000 })
    const height = options.heightOf?.(peer) ?? Number.POSITIVE_INFINITY
    const items = await pageItems(options.truth, wish, height)
    answer(200, spoil(fault, items, { random, encoding: wish.encoding }))
  }
  return {
    exchange,
    peers: bases.map((base, n) => ({ base, svName: `SV ${n}` })),
    requests: () => requests,
  }
}

const MUCH = Buffer.alloc(4 * 1024 * 1024, ' ')

async function pageItems(
  truth: History,
  wish: Parameters<History['readPage']>[0],
  height: number,
): Promise<string[]> {
  const runs: string[] = []
  for await (const step of truth.readPage(wish)) {
    for (const run of step) runs.push(run.bytes.toString())
  }
  const items = itemsOf(`{"transactions":[${runs.join(',')}]}`)
  if (!Number.isFinite(height)) return items
  const all: string[] = []
  for await (const step of truth.readPage({ ...wish, after: undefined, pageSize: height })) {
    for (const run of step) all.push(run.bytes.toString())
  }
  const there = new Set(itemsOf(`{"transactions":[${all.join(',')}]}`))
  return items.filter((item) => there.has(item))
}

function itemsOf(page: string): string[] {
  const items = readItems(Buffer.from(page))
  if (items === undefined) throw new Error('a page of the truth is one')
  return items.starts.map((_, index) => itemBytes(items, index).toString())
}

function spoil(
  fault: Fault | undefined,
  items: string[],
  { random, encoding }: { random: Random; encoding: Encoding },
): string {
  const at = items.length === 0 ? 0 : random(items.length)
  const list = [...items]
  const item = list[at]
  if (fault === 'garbage')
    return ['<html>', '{"transactions":[', '', 'null', '{}'][random(5)] as string
  if (fault === 'empty') return page([])
  if (item === undefined) return page(list)
  switch (fault) {
    case 'lie':
      list[at] = lieAbout(item)
      break
    case 'lie in one encoding':
      if (encoding === 'compact_json') list[at] = lieAbout(item)
      break
    case 'reorder':
      list.push(list.shift() as string)
      break
    case 'drop':
      list.splice(at, 1)
      break
    case 'duplicate':
      list.splice(at, 0, item)
      break
    case 'invent':
      list.splice(at, 0, lieAbout(item))
      break
    case 'truncate':
      list.length = at
      break
    case 'other layout':
      return ` ${JSON.stringify({ extra: 1 }).slice(0, -1)} , "transactions" : [${list.map((each) => reformatted(each, random)).join(' , ')}] }`
  }
  return page(list)
}

function page(items: string[]): string {
  return `{"transactions":[${items.join(',')}]}`
}

/** All liars tell the same lie. */
export function lieAbout(item: string): string {
  return item
    .replace('"workflow_id":"', '"workflow_id":"lie ')
    .replace('"submitter":"', '"submitter":"liar')
}

function reformatted(item: string, random: Random): string {
  return reformat(item, random(1_000_000), { eventIds: false, wireFields: true, values: false })
}
