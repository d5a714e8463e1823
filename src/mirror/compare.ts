import { setTimeout as wait } from 'node:timers/promises'
import type { PreparedUpdate } from '../history/encode.ts'
import { recordTimeAt } from '../history/frame.ts'
import type { History } from '../history/history.ts'
import { type EachUpdate, findOrdinal, readEach } from '../history/pages.ts'
import { comparePositions, justBefore, type Position, printPosition } from '../history/position.ts'
import type { PreparePool } from '../history/prepare-pool.ts'
import type { Dissent } from './dissent.ts'
import { wholePage } from './page-request.ts'
import { createPageSize } from './page-size.ts'
import { readPage } from './pages.ts'
import type { Peers } from './peers.ts'

export type CompareProgress = { checked: number; total: number; agreeing: number }

export type Comparison = {
  checked: number
  /** The first place where the store and the network differ. */
  difference: string | undefined
}

/** The network could not be asked; nothing is said about what is stored. */
export class NotCompared extends Error {
  override name = 'NotCompared'
}

const ATTEMPTS_MAX = 5
const RETRY_MS = 1_000

/** Compares what is stored in a range with what enough scans say, and stops at the first difference. */
export async function compareWithNetwork(options: {
  history: History
  peers: Peers
  pool: PreparePool
  /** The first position, included, and the one to end before. */
  from: Position | undefined
  to: Position | undefined
  onDissent: (dissent: Dissent) => void
  onProgress: (progress: CompareProgress) => void
}): Promise<Comparison> {
  const { history, from, to } = options
  const source = { cache: history.cache, view: history.view }
  const form = { version: 1, encoding: 'protobuf_json' } as const
  const ordinalOf = (at: Position) => findOrdinal(source, { ...form, after: justBefore(at) })
  const start = from === undefined ? 0 : await ordinalOf(from)
  const end = to === undefined ? source.view.updates : await ordinalOf(to)
  const stored = storedUpdates(history, start, end)
  const size = createPageSize()
  let after = await positionAt(history, start - 1)
  let checked = 0
  while (checked < end - start) {
    const pageSize = Math.min(size.current, end - start - checked)
    const page = await readPatiently({ after, pageSize }, options)
    const { bodies, count } = page
    const bytes = { protobuf: bodies.protobuf.length, compact: bodies.compact.length }
    const { updates, refusal } = await options.pool.preparePage(wholePage(bodies, count))
    for (const update of updates) {
      const there = (await stored.next()).value as Stored
      const difference = describeDifference(there, update)
      if (difference !== undefined) return { checked, difference }
      checked += 1
      after = { migrationId: update.migrationId, recordTime: update.recordTime }
    }
    options.onProgress({ checked, total: end - start, agreeing: page.agreeing.length })
    if (refusal !== undefined)
      throw new NotCompared(`What the scans agree on is not sound: ${refusal.reason}`)
    if (count === pageSize) size.grow(count, bytes)
    else if (page.isEnd && checked < end - start) {
      const { position, updateId } = (await stored.next()).value as Stored
      const difference = `Stored is update ${updateId} at ${printPosition(position)}, which the network does not have.`
      return { checked, difference }
    }
  }
  return { checked, difference: undefined }
}

type Stored = { position: Position; updateId: string; protobuf: Buffer; compact: Buffer }

async function readPatiently(
  wish: { after: Position | undefined; pageSize: number },
  options: { peers: Peers; pool: PreparePool; onDissent: (dissent: Dissent) => void },
) {
  let reason = ''
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const page = await readPage(wish, options)
    if (page.kind === 'page') return page
    reason = page.reason
    await wait(RETRY_MS)
  }
  throw new NotCompared(`The network cannot be compared with: ${reason}`)
}

async function* storedUpdates(history: History, from: number, to: number): AsyncGenerator<Stored> {
  const source = { cache: history.cache, view: history.view }
  const compact = readEach(source, { version: 1, encoding: 'compact_json' }, from, to)
  for await (const frame of readEach(source, { version: 1, encoding: 'protobuf_json' }, from, to)) {
    const others = (await compact.next()).value as EachUpdate[]
    for (const [i, { bytes, index, entry }] of frame.entries()) {
      yield {
        position: {
          migrationId: index.migrationIds[entry] as bigint,
          recordTime: recordTimeAt(index, entry),
        },
        updateId: String(JSON.parse(bytes.toString()).update_id),
        protobuf: Buffer.from(bytes),
        compact: Buffer.from((others[i] as EachUpdate).bytes),
      }
    }
  }
}

async function positionAt(history: History, ordinal: number): Promise<Position | undefined> {
  if (ordinal < 0) return undefined
  const found = await storedUpdates(history, ordinal, ordinal + 1).next()
  return (found.value as Stored | undefined)?.position
}

function describeDifference(stored: Stored, update: PreparedUpdate): string | undefined {
  const order = comparePositions(update, stored.position)
  if (order < 0) {
    return `The network has update ${update.updateId} at ${printPosition(update)}, which is not stored.`
  }
  if (order > 0) {
    return `Stored is update ${stored.updateId} at ${printPosition(stored.position)}, which the network does not have.`
  }
  for (const form of ['protobuf', 'compact'] as const) {
    const theirs = Buffer.from(update[form])
    // The offset is this node's own affair.
    stored[form].copy(theirs, update.offsetAt, update.offsetAt, update.offsetAt + OFFSET_DIGITS)
    if (!theirs.equals(stored[form])) {
      return `Update ${update.updateId} at ${printPosition(update)} differs.\n  stored:  ${stored[form]}\n  network: ${theirs}`
    }
  }
  return undefined
}

const OFFSET_DIGITS = 18
