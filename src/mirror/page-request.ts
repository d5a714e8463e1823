import { guessItems, itemBytes, type PageItems } from '../history/page-items.ts'
import type { Position } from '../history/position.ts'
import type { ScanLimits } from '../scan/client.ts'
import { parseInstant } from '../values/instant.ts'
import type { Peer, Peers } from './peers.ts'

/** Where to go on, and how many updates to ask for. */
export type PageWish = {
  after: Position | undefined
  pageSize: number
  /** Whether probably nothing is there: the second encoding is asked for when something is. */
  isIdle?: boolean
  /** How large an update has been lately, in each encoding. */
  bytesPerUpdate?: Record<Form, number> | undefined
}

export type Form = 'protobuf' | 'compact'

/** What a peer sent: a page in both encodings, and where its items seem to stand. */
export type PageBodies = Record<Form, Buffer> & { items(form: Form): PageItems | undefined }

/** What happened besides, for whoever has to say why there is no page. */
export type Told = {
  /** Scans that sent a page. */
  answered: number
  /** Refusals because a scan's own history is incomplete. */
  incomplete: number
  /** Pages that were too much: too large, too slow, or more than the scan allows. */
  overwhelmed: number
  isSplit: boolean
  reason: string | undefined
}

/** Four times of what a page should have; a page of one update may be as large as an import's line. */
const PAGE_BYTES_MAX = 32 * 1024 * 1024
const SINGLE_BYTES_MAX = 64 * 1024 * 1024
const PAGE_LIMITS: Omit<ScanLimits, 'bytesMax'> = { headMs: 20_000, wholeMs: 60_000 }
/** Room for a page that is somewhat larger than the ones before. */
const ROOM = 1.25
const ENCODINGS = { protobuf: 'protobuf_json', compact: 'compact_json' } as const
const EMPTY_PAGE = Buffer.from('{"transactions":[]}')

export async function askForPage(
  peers: Peers,
  peer: Peer,
  wish: PageWish,
  around: { told: Told; signal: AbortSignal },
): Promise<PageBodies | undefined> {
  const ask = (form: Form) => askForm(peers, peer, { ...wish, form }, around)
  if (wish.isIdle) {
    const first = await ask('protobuf')
    if (first === undefined) return undefined
    const second = first.equals(EMPTY_PAGE) ? first : await ask('compact')
    return second === undefined ? undefined : pageBodies(first, second)
  }
  const [protobuf, compact] = await Promise.all([ask('protobuf'), ask('compact')])
  return protobuf === undefined || compact === undefined ? undefined : pageBodies(protobuf, compact)
}

/** Finding the items costs a search through all bytes, so it is done when needed, and once. */
export function pageBodies(protobuf: Buffer, compact: Buffer): PageBodies {
  const found: Partial<Record<Form, { items: PageItems | undefined }>> = {}
  const bodies = { protobuf, compact }
  return {
    ...bodies,
    items(form) {
      found[form] ??= { items: guessItems(bodies[form]) }
      return found[form].items
    },
  }
}

type FormWish = PageWish & { form: Form; into?: Buffer | undefined }

export async function askForm(
  peers: Peers,
  peer: Peer,
  wish: FormWish,
  around: { told: Told; signal: AbortSignal },
): Promise<Buffer | undefined> {
  const { told, signal } = around
  const { lacks } = peers.record(peer)
  const version = versionFor(peers.pageVersion(), lacks)
  const bytesMax = wish.pageSize === 1 ? SINGLE_BYTES_MAX : PAGE_BYTES_MAX
  const perUpdate = wish.bytesPerUpdate?.[wish.form] ?? 0
  const bytesExpected = Math.min(bytesMax, Math.ceil(perUpdate * wish.pageSize * ROOM)) || undefined
  const answer = await peers.ask(
    peer,
    { method: 'POST', path: `/v${version}/updates`, body: printWish(wish) },
    { limits: { ...PAGE_LIMITS, bytesMax, bytesExpected, into: wish.into }, signal },
  )
  if (answer.kind === 'fault') {
    if (answer.fault === 'tooLarge' || answer.fault === 'slow') told.overwhelmed += 1
    told.reason ??= `${peer.base}: ${answer.reason}`
    return undefined
  }
  const { status } = answer
  if (status === 200) return answer.bytes
  const isMissing = status === 403 || status === 404 || status === 405 || status === 410
  if (isMissing && (lacks.size === 0 || lacks.has(version === 1 ? 2 : 1)) && !lacks.has(version)) {
    lacks.add(version)
    if (lacks.size < 2) return askForm(peers, peer, wish, around)
    // It has neither now; perhaps later.
    lacks.clear()
  }
  if (status === 503) told.incomplete += 1
  if (status === 400 || status === 413) told.overwhelmed += 1
  told.reason ??= `${peer.base}: It answers ${status} ${excerpt(answer.bytes)}`
  return undefined
}

function versionFor(preferred: 1 | 2, lacks: ReadonlySet<1 | 2>): 1 | 2 {
  if (!lacks.has(preferred)) return preferred
  return preferred === 1 ? 2 : 1
}

/** Both names of the encoding: the specification's, and the one of deployed scans. */
function printWish({ after, pageSize, form }: FormWish): string {
  const encoding = ENCODINGS[form]
  const position =
    after === undefined
      ? ''
      : `"after":{"after_migration_id":${after.migrationId},"after_record_time":"${after.recordTime}"},`
  return `{"page_size":${pageSize},${position}"ledger_value_encoding":"${encoding}","daml_value_encoding":"${encoding}"}`
}

const EXCERPT_BYTES = 200

function excerpt(bytes: Buffer): string {
  return bytes.toString('utf8', 0, EXCERPT_BYTES).replaceAll(/\s+/g, ' ').trim()
}

/** How many items both bodies hold; undefined when that takes a closer look. */
export function countItems(bodies: PageBodies, pageSize: number): number | undefined {
  const protobuf = bodies.items('protobuf')?.starts.length
  const compact = bodies.items('compact')?.starts.length
  if (protobuf === undefined || compact === undefined) return undefined
  return protobuf > pageSize || compact > pageSize ? undefined : Math.min(protobuf, compact)
}

/** What a thread needs to check and encode the first so many updates of a page. */
export function wholePage({ protobuf, compact, items }: PageBodies, count: number) {
  return { protobuf, compact, count, borders: bordersOf(items('protobuf'), items('compact')) }
}

function bordersOf(protobuf: PageItems | undefined, compact: PageItems | undefined) {
  if (protobuf === undefined || compact === undefined) return undefined
  const borders = ({ starts, ends }: PageItems) => ({ starts, ends })
  return { protobuf: borders(protobuf), compact: borders(compact) }
}

/** The position of a page's last item, as far as a glance at it tells; undefined for a short page. */
export function guessLast(bodies: PageBodies, pageSize: number): Position | undefined {
  const items = bodies.items('protobuf')
  if (items === undefined || items.starts.length < pageSize) return undefined
  const head = itemBytes(items, items.starts.length - 1).toString('latin1', 0, GLANCE_BYTES)
  const time = /"record_time":"([^"]{20,35})"/.exec(head)?.[1]
  const migration = /"migration_id":(-?\d{1,19})[,}]/.exec(head)?.[1]
  const recordTime = time === undefined ? undefined : parseInstant(time)
  if (recordTime === undefined || migration === undefined) return undefined
  return { migrationId: BigInt(migration), recordTime }
}

const GLANCE_BYTES = 4096
