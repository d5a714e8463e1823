import type { Db } from '../db/db.ts'
import type { History } from '../history/history.ts'
import { microsOf } from '../values/instant.ts'
import { readDissentCounts, readDissents } from './dissent-store.ts'
import type { Peers } from './peers.ts'
import type { SyncState } from './sync.ts'

/** What a mirror tells about itself: as JSON, as a page, and to `annals mirror status`. */
export type MirrorStatus = {
  mirrorId: string
  /** Whether this node copies, or follows another one on the same database that does. */
  role: 'copies' | 'follows'
  /** `copying` towards the end, `following` it, or `stalled` with a reason. */
  phase: 'starting' | 'copying' | 'following' | 'stalled'
  reason: string | null
  updates: number
  last: { migrationId: string; recordTime: string } | null
  /** How old the newest update is, when the end of the network's history has not been reached. */
  behindSeconds: number | null
  agreement: { known: number; faulty: number; asked: number; needed: number; last: number }
  copied: { updates: number; pages: number; pageSize: number }
  missingImports: string | null
  peers: PeerStatus[]
  dissents: DissentStatus[]
}

export type PeerStatus = {
  address: string
  svName: string
  answers: number
  failures: number
  dissents: number
  lastFailure: string | null
  lastMilliseconds: number | null
}

export type DissentStatus = {
  at: string
  address: string
  svName: string
  after: { migrationId: string; recordTime: string } | null
  index: number
  encoding: string
  agreed: string
  found: string
}

/** The newest are shown; the database keeps more. */
const DISSENTS_SHOWN = 20

export async function readMirrorStatus(options: {
  db: Db
  history: History
  peers: Peers
  mirrorId: string
  sync: SyncState | undefined
}): Promise<MirrorStatus> {
  const { db, peers, mirrorId, sync } = options
  const view = await options.history.latestView()
  const counts = await readDissentCounts(db)
  const dissents = await readDissents(db, DISSENTS_SHOWN)
  const { known, faulty, ask, need } = peers.sizes()
  const position = (at: { migrationId: bigint; recordTime: string } | undefined) =>
    at === undefined ? null : { migrationId: String(at.migrationId), recordTime: at.recordTime }
  return {
    mirrorId,
    role: sync === undefined ? 'follows' : 'copies',
    phase: phaseOf(sync),
    reason: sync?.stalled ?? null,
    updates: view.updates,
    last: position(view.last),
    behindSeconds: behindSeconds(sync, view.last),
    agreement: {
      known,
      faulty,
      asked: Math.min(ask, known),
      needed: need,
      last: sync?.agreeing ?? 0,
    },
    copied: {
      updates: sync?.updates ?? 0,
      pages: sync?.pages ?? 0,
      pageSize: sync?.pageSize ?? 0,
    },
    missingImports: sync?.missingImports ?? null,
    peers: peers.records().map(({ peer, answers, failures, lastFailure, lastMs }) => ({
      address: peer.base,
      svName: peer.svName,
      answers,
      failures,
      dissents: counts.get(peer.base) ?? 0,
      lastFailure: lastFailure ?? null,
      lastMilliseconds: lastMs === undefined ? null : Math.round(lastMs),
    })),
    dissents: dissents.map(({ notedAt, base, svName, after, index, encoding, agreed, found }) => ({
      at: new Date(notedAt).toISOString(),
      address: base,
      svName,
      after: position(after),
      index,
      encoding,
      agreed,
      found,
    })),
  }
}

/** At the end of the history a scan that has nothing new is not behind. */
const CAUGHT_UP_FOR_MS = 10_000

export function isCaughtUp(sync: SyncState): boolean {
  return sync.caughtUpAt !== undefined && Date.now() - sync.caughtUpAt < CAUGHT_UP_FOR_MS
}

export function phaseOf(sync: SyncState | undefined): MirrorStatus['phase'] {
  if (sync === undefined) return 'following'
  if (sync.stalled !== undefined) return 'stalled'
  if (isCaughtUp(sync)) return 'following'
  return sync.agreedAt === undefined ? 'starting' : 'copying'
}

/** Zero at the end; otherwise the age of the newest update. Null for an empty history. */
export function behindSeconds(
  sync: SyncState | undefined,
  last: { recordTime: string } | undefined,
): number | null {
  if (sync !== undefined && isCaughtUp(sync)) return 0
  if (last === undefined) return null
  const micros = microsOf(last.recordTime as Parameters<typeof microsOf>[0])
  return Math.max(0, Math.round(Date.now() / 1000 - Number(micros / 1_000_000n)))
}
