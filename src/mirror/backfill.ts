import { setTimeout as wait } from 'node:timers/promises'
import type { Db } from '../db/db.ts'
import type { History } from '../history/history.ts'
import { itemKey } from '../history/item-key.ts'
import { itemBytes, readItems } from '../history/page-items.ts'
import { type PreparePool, prepareInOrder } from '../history/prepare-pool.ts'
import type { LineUpdate } from '../history/prepare-worker.ts'
import { sortLines } from '../history/sort-store.ts'
import { INSTANT_MAX, type Instant, instantFromMicros, microsOf } from '../values/instant.ts'
import { printJsonExactly } from '../values/json.ts'
import { copyImports } from './copy-imports.ts'
import { type MigrationInfos, neededOf, readMigrationInfos } from './migration-info.ts'
import type { Peer, Peers } from './peers.ts'
import { agreeOnItems } from './quorum.ts'
import { readAgreed } from './read.ts'

export type BackfillOptions = {
  history: History
  pool: PreparePool
  peers: Peers
  /** Where the updates are sorted: as much room as they take. */
  directory: string
  openDb: (path: string) => Promise<Db>
  /** A migration that the network has, if one is known; others are looked for around it. */
  migrationId: bigint
  /** Nothing later is wanted. */
  until?: Instant | undefined
  signal: AbortSignal
}

/** As deployed scans ask each other. */
const PAGE_UPDATES = 100
const PAGE_LIMITS = { headMs: 20_000, wholeMs: 60_000, bytesMax: 32 * 1024 * 1024 }
/** Migrations beyond the known one that are looked for. */
const PROBED_MIGRATIONS = 5n
const ATTEMPTS_MAX = 5
const RETRY_MS = 1_000
const APPENDED_AT_ONCE = 500
/** Compact forms asked for at a time, where they do not follow. */
const LOOKUPS_AT_ONCE = 8

/**
 * Fills the history from scans whose own history is incomplete and who therefore refuse pages. They
 * tell what they have backwards, for each migration and synchronizer, in the lossless form only. The
 * history only grows at its end, so everything is collected and sorted first, and appended when it is
 * complete; whoever is interrupted collects anew.
 */
export async function fillBackwards(options: BackfillOptions): Promise<void> {
  const { history, pool, peers, signal } = options
  const sorted = sortLines(collect(options), options)
  let batch: LineUpdate[] = []
  const store = async () => {
    signal.throwIfAborted()
    await history.append(batch)
    batch = []
  }
  for await (const { updates, refusal } of prepareInOrder(pool, sorted)) {
    for (const update of updates) {
      const { migrationId } = update
      const end = batch.at(-1) ?? history.view.last
      if (end?.migrationId !== migrationId || batch.length >= APPENDED_AT_ONCE) {
        if (batch.length > 0) await store()
      }
      if (history.view.last?.migrationId !== migrationId && batch.length === 0) {
        await copyImports({ migrationId, history, peers, pool, signal })
      }
      batch.push(update)
    }
    if (refusal !== undefined)
      throw new Error(`What scans agree on is not sound: ${refusal.reason}`)
  }
  if (batch.length > 0) await store()
}

/** Lines of an import, in any order. */
async function* collect(options: BackfillOptions): AsyncGenerator<Uint8Array> {
  const { peers, history, signal } = options
  const last = history.view.last
  let next: bigint | undefined = await findNewest(options)
  while (next !== undefined && (last === undefined || next >= last.migrationId)) {
    const migrationId: bigint = next
    const infos = await readMigrationInfos(peers, migrationId, signal)
    const needed = neededOf(peers, infos)
    if (needed === undefined) throw new Error(`Too few scans tell about migration ${migrationId}.`)
    const after = last?.migrationId === migrationId ? last.recordTime : undefined
    const synchronizers = new Set(
      [...infos.having.values()].flatMap(({ ranges }) => [...ranges.keys()]),
    )
    for (const synchronizerId of synchronizers) {
      yield* collectBackwards({ ...options, migrationId, synchronizerId, infos, after })
    }
    next = previousOf(infos, needed)
  }
}

/** The highest migration that enough scans have. */
async function findNewest(options: BackfillOptions): Promise<bigint> {
  const { peers, history, signal } = options
  const known = history.view.last?.migrationId ?? 0n
  const isThere = async (id: bigint) =>
    neededOf(peers, await readMigrationInfos(peers, id, signal)) !== undefined
  let newest: bigint | undefined
  let start = options.migrationId > known ? options.migrationId : known
  for (let id = start; id <= start + PROBED_MIGRATIONS; id += 1n) {
    if (!(await isThere(id))) continue
    newest = id
    start = id
  }
  for (let id = start - 1n; newest === undefined && id >= 0n; id -= 1n) {
    if (await isThere(id)) newest = id
  }
  if (newest === undefined) {
    throw new Error(
      `No scan tells about a migration near ${start}; set migration.id to the current one.`,
    )
  }
  return newest
}

/** Only scans that are complete know what came before the first update that they have. */
function previousOf({ having }: MigrationInfos, needed: number): bigint | undefined {
  const votes = new Map<bigint | undefined, number>()
  for (const { isComplete, previousMigrationId: id } of having.values()) {
    if (isComplete) votes.set(id, (votes.get(id) ?? 0) + 1)
  }
  const [agreed] = [...votes].filter(([, count]) => count >= needed)
  if (agreed === undefined) {
    throw new Error('Too few scans have the beginning of the history; they are still filling it.')
  }
  return agreed[0]
}

type Walk = BackfillOptions & {
  synchronizerId: string
  infos: MigrationInfos
  after: Instant | undefined
}

async function* collectBackwards(walk: Walk): AsyncGenerator<Uint8Array> {
  const { infos, synchronizerId } = walk
  const lasts = [...infos.having.values()].flatMap(
    ({ ranges }) => ranges.get(synchronizerId)?.last ?? [],
  )
  const ends = [lasts.toSorted().at(-1) as Instant, walk.until ?? INSTANT_MAX]
  const newest = ends.toSorted()[0] as Instant
  let before = instantFromMicros(microsOf(newest) + 1n) ?? INSTANT_MAX
  for (;;) {
    const items = await readBefore(walk, before)
    const lines = await Promise.all(
      inGroups(items, LOOKUPS_AT_ONCE).map((group) => linesOf(walk, group)),
    )
    for (const line of lines.flat()) yield Buffer.from(`${line}\n`)
    const oldest = items.at(-1)
    if (oldest === undefined) return
    before = (JSON.parse(oldest) as { record_time: Instant }).record_time
  }
}

/** What enough of those who have something before a time list there, newest first. */
async function readBefore(walk: Walk, before: Instant): Promise<string[]> {
  const { peers, infos, synchronizerId, signal, pool } = walk
  const having = new Map(
    [...infos.having].filter(
      ([, { ranges }]) => (ranges.get(synchronizerId)?.first ?? before) < before,
    ),
  )
  // Everybody's first update is behind us, and somebody who is complete says that this is all.
  if (having.size === 0) return []
  const needed = neededOf(peers, { having, failed: infos.failed })
  if (needed === undefined) throw new Error(`Too few scans have updates before ${before}.`)
  const bound = walk.after === undefined ? '' : `,"at_or_after":"${justBehind(walk.after)}"`
  const body = `{"migration_id":${walk.migrationId},"synchronizer_id":${JSON.stringify(synchronizerId)},"before":"${before}"${bound},"count":${PAGE_UPDATES}}`
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const bodies = await askEach(peers, [...having.keys()], body, signal)
    const keys = await pool.pageKeys(bodies.map(({ bytes }) => bytes))
    const lists = bodies.map(({ peer, bytes }, i) => ({
      peer,
      bytes,
      keys: (keys[i]?.keys ?? []).map(({ key }) => key),
      isSound: keys[i]?.fault === undefined,
    }))
    const { count, agreeing, isSplit, dissent } = agreeOnItems(lists, needed)
    for (const { peer } of dissent) peers.noteDissent(peer)
    const from = lists.find(({ peer, keys: all }) => agreeing.includes(peer) && all.length >= count)
    const ended = lists.filter(({ isSound, keys: all }) => isSound && all.length === 0)
    if (!isSplit && count > 0 && from !== undefined) return itemsOf(from.bytes).slice(0, count)
    if (!isSplit && count === 0 && ended.length >= needed) return []
    await wait(RETRY_MS, undefined, { signal })
  }
  throw new Error(`The scans do not agree on the updates before ${before}.`)
}

async function askEach(peers: Peers, asked: Peer[], body: string, signal: AbortSignal) {
  const request = { method: 'POST', path: '/v0/backfilling/updates-before', body } as const
  const answers = await Promise.all(
    asked.map(async (peer) => {
      const answer = await peers.ask(peer, request, { limits: PAGE_LIMITS, signal })
      const isPage = answer.kind === 'answer' && answer.status === 200
      return isPage ? { peer, bytes: answer.bytes } : undefined
    }),
  )
  return answers.filter((answer) => answer !== undefined)
}

function itemsOf(body: Buffer): string[] {
  const items = readItems(body)
  return items?.starts.map((_, index) => itemBytes(items, index).toString('utf8')) ?? []
}

/** Where values carry no labels the compact form does not follow, and is looked up by the update's id. */
async function linesOf(walk: Walk, items: string[]): Promise<string[]> {
  const bytes = new Uint8Array(Buffer.from(items.map((item) => `${oneLine(item)}\n`).join('')))
  const { refusal } = await walk.pool.prepare({ bytes, firstLine: 1 })
  if (refusal === undefined) return items.map(oneLine)
  return Promise.all(items.map((item) => withCompact(walk, item)))
}

async function withCompact({ peers, signal }: Walk, item: string): Promise<string> {
  const { update_id: id } = JSON.parse(item) as { update_id: string }
  const query = 'ledger_value_encoding=compact_json&daml_value_encoding=compact_json'
  const found = await readAgreed(peers, {
    method: 'GET',
    path: `/v2/updates/${encodeURIComponent(id)}?${query}`,
    keyOf: (json) => itemKey(printJsonExactly(json)),
    bytesMax: PAGE_LIMITS.bytesMax,
    signal,
  })
  if (found.kind === 'agreed')
    return `{"protobuf_json":${oneLine(item)},"compact_json":${oneLine(found.text)}}`
  if (found.kind === 'none') throw new Error(found.reason)
  throw new Error(
    `Update ${id} cannot be copied from scans that refuse pages: its values carry no labels, and its compact form cannot be looked up (as for every reassignment). Wait until the scans are complete.`,
  )
}

function oneLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, ' ')
}

function justBehind(time: Instant): Instant {
  return instantFromMicros(microsOf(time) + 1n) ?? INSTANT_MAX
}

function inGroups<T>(list: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, n) =>
    list.slice(n * size, (n + 1) * size),
  )
}
