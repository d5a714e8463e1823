import { availableParallelism } from 'node:os'
import type { Logger } from 'pino'
import type { NodeConfig, ScanConnection } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { openSqlite } from './db/sqlite.ts'
import { readRanges } from './history/history-store.ts'
import { startPreparePool } from './history/prepare-pool.ts'
import type { Outgoing } from './http/outgoing.ts'
import type { Surroundings } from './listen.ts'
import { appLabels } from './metrics/app-labels.ts'
import { fillBackwards } from './mirror/backfill.ts'
import { startDiscovery } from './mirror/discovery.ts'
import type { Dissent } from './mirror/dissent.ts'
import { insertDissent } from './mirror/dissent-store.ts'
import { measureMirror } from './mirror/mirror-metrics.ts'
import { createPeers, type Peer, type Peers, peerAt } from './mirror/peers.ts'
import { readMirrorId } from './mirror/peers-store.ts'
import type { Trust } from './mirror/quorum.ts'
import { behindSeconds, isCaughtUp, type MirrorStatus, readMirrorStatus } from './mirror/status.ts'
import { type Sync, startSync } from './mirror/sync.ts'
import type { NodeHistory } from './open-history.ts'
import { publicAddress } from './scan/client.ts'
import type { ScanOptions } from './scan/routes.ts'

/** The copy of a network's history that this node keeps. */
export type Mirror = {
  /** The scans of the network, for reads that tolerate faulty ones. */
  peers: Peers
  listScans: ScanOptions['listScans']
  status(): Promise<MirrorStatus>
}

/** More threads than this have nothing to do: fetching and storing become the limit. */
const THREADS_MAX = 4
/** A mirror that is further behind, or has not heard of enough scans for so long, is not ready. */
const BEHIND_SECONDS_MAX = 60

/** Undefined when the node's own ledger writes the history. */
export async function openMirror(
  config: NodeConfig,
  node: NodeHistory & {
    db: Db
    outgoing: Outgoing
    around: Surroundings
    parts: AsyncDisposableStack
  },
): Promise<Mirror | undefined> {
  if (config.historyWriter !== 'mirror') return undefined
  const { history, writer, db, around, parts } = node
  const log = around.logs.named('annals.mirror')
  const scan = config.network?.scan ?? { mode: 'bft', seedUrls: config.mirror.from ?? [] }
  const trust = trustOf(scan, config.mirror.agreement)
  const seeds = seedsOf(scan)
  warnOfSingle(config, log)
  const peers = createPeers({ exchange: node.outgoing.exchange, trust })
  const mirrorId = await readMirrorId(db)
  const stored = (await readRanges(db)).at(-1)
  const metrics = measureMirror(around.registry.with(appLabels.scan), {
    peers,
    sync: () => sync?.state(),
    behindSeconds: () => behindSeconds(sync?.state(), history.view.last),
  })
  let noting: Promise<void> = Promise.resolve()
  const onDissent = (dissent: Dissent) => {
    metrics.onDissent(dissent)
    const { peer, after, index } = dissent
    log.warn({ scan: peer.base, svName: peer.svName, after, index }, 'a scan is contradicted')
    noting = noting
      .then(() => insertDissent(db, dissent, Date.now()))
      .catch((err) => log.warn({ err }, 'a dissent could not be recorded'))
  }
  parts.defer(() => noting)

  const discovery = await startDiscovery({
    db,
    peers,
    trust,
    seeds,
    svNames: scan.mode === 'bft-custom' ? scan.svNames : undefined,
    isSingle: scan.mode === 'trust-single',
    mirrorId,
    isWriter: writer.isHeld,
    onChange: (network) => log.info({ scans: network.peers }, 'the scans of the network'),
    onFailure: (reason) => log.warn({ reason }, 'the list of scans could not be read'),
  })
  parts.defer(() => discovery.close())

  let sync: Sync | undefined
  let changing: Promise<unknown> = Promise.resolve()
  let isClosed = false
  const pool = startPreparePool({ threads: Math.min(THREADS_MAX, availableParallelism()) })
  parts.defer(() => pool.close())
  parts.defer(async () => {
    isClosed = true
    // Whoever waits for the scans waits no longer.
    await discovery.close()
    await changing
    await sync?.close()
  })
  // Becoming and ceasing to be the writer are done one after the other.
  writer.watch((isHeld) => {
    changing = changing.then(() => (isHeld ? copy() : cease())).catch((err) => log.error({ err }))
  })

  async function copy(): Promise<void> {
    // Before the scans are known nothing is copied.
    await discovery.known
    if (isClosed || sync !== undefined || !writer.isHeld()) return
    log.info({ updates: history.view.updates }, 'copying')
    const filling = {
      history,
      pool,
      peers,
      directory: config.dataDir,
      openDb: (path: string) => openSqlite({ path }),
      migrationId: config.migration.id,
    }
    sync = startSync({
      history,
      pool,
      peers,
      onDissent,
      onChange: logStalls(log),
      fillBackwards: (signal) => fillBackwards({ ...filling, signal }),
    })
  }

  async function cease(): Promise<void> {
    await sync?.close()
    sync = undefined
  }

  around.health.add({ name: 'mirror', run: () => findFault() })
  return {
    peers,
    listScans() {
      const { synchronizerId, peers: list } = discovery.network()
      const domainId =
        synchronizerId ?? sync?.state().synchronizerId ?? stored?.synchronizerId ?? ''
      const scans = list.map(({ base, svName }) => ({ publicUrl: publicAddress(base), svName }))
      return scans.length === 0 ? [] : [{ domainId, scans }]
    },
    status: () => readMirrorStatus({ db, history, peers, mirrorId, sync: sync?.state() }),
  }

  function findFault(): string | undefined {
    const state = sync?.state()
    if (state === undefined && !writer.isHeld()) return undefined
    if (state === undefined) return 'The scans of the network are not known yet.'
    if (isCaughtUp(state)) return undefined
    const behind = behindSeconds(state, history.view.last)
    const isFar = behind === null || behind > BEHIND_SECONDS_MAX
    if (state.stalled === undefined && !isFar) return undefined
    const how = behind === null ? 'Nothing is copied yet.' : `The copy is ${behind} s behind.`
    return state.stalled === undefined ? how : `${how} ${state.stalled}`
  }
}

function logStalls(log: Logger): (state: { stalled: string | undefined }) => void {
  let told: string | undefined
  return ({ stalled }) => {
    if (stalled === told) return
    told = stalled
    if (stalled === undefined) log.info('copying goes on')
    else log.warn({ reason: stalled }, 'nothing can be copied')
  }
}

function trustOf(scan: ScanConnection, agreement: 'f+1' | '2f+1'): Trust {
  switch (scan.mode) {
    case 'bft':
      return { mode: 'all', agreement }
    case 'bft-custom':
      return { mode: 'chosen', threshold: scan.threshold }
    case 'trust-single':
      return { mode: 'single' }
  }
}

function seedsOf(scan: ScanConnection): Peer[] {
  const urls = scan.mode === 'trust-single' ? [scan.url] : scan.seedUrls
  return urls.flatMap((url) => peerAt(url) ?? [])
}

function warnOfSingle({ network }: NodeConfig, log: Logger): void {
  if (network?.scan.mode === 'trust-single') {
    log.warn(
      { scan: network.scan.url },
      'ONE SCAN IS TRUSTED IN EVERYTHING: what it says is stored without being checked against others',
    )
  }
  if (network?.sequencer.mode === 'trust-single') {
    log.warn(
      { sequencer: network.sequencer.url },
      'ONE SEQUENCER IS TRUSTED IN EVERYTHING: when it is away or compromised the node cannot transact',
    )
  }
}
