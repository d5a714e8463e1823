import type { Logger } from 'pino'
import { readSoftware, type Software } from './base/software.ts'
import type { NodeConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { lockDirectory } from './db/directory-lock.ts'
import { tryWriterLock } from './db/writer-lock.ts'
import { createHealth, type Health } from './health/checks.ts'
import { loadExample } from './history/example.ts'
import { type History, openHistory } from './history/history.ts'
import { createOutgoing, type Outgoing } from './http/outgoing.ts'
import { type LedgerApi, openPorts, type PortName } from './listen.ts'
import { startProcessMetrics } from './metrics/process.ts'
import { createRegistry, type Registry } from './metrics/registry.ts'
import { type OpenDatabase, openDatabase } from './open-databases.ts'
import { openAuthentication } from './users/authentication.ts'
import { authenticationOff } from './users/caller.ts'
import { DEV_AUDIENCE, openDevKey } from './users/dev-key.ts'
import { ensureFirstUsers } from './users/first-users.ts'
import { openParticipant, type Participant } from './users/participant-store.ts'

export type NodeOptions = {
  config: NodeConfig
  log: Logger
  /** Leaves an empty history empty. */
  empty: boolean
}

export type RunningNode = {
  urls: Record<PortName, string>
  history: History
  /** How many updates of the example were loaded at this start. */
  exampleUpdates: number
  /** Takes over what can change while running; names what needs a restart. */
  reload(config: NodeConfig): Reloaded
  /** Refuses new work, finishes what is under way, closes everything. */
  close(): Promise<void>
}

export type Reloaded = { applied: string[]; needsRestart: string[] }

/** Of the memory for the history, the part for compressed frames. */
const COMPRESSED_SHARE = 1 / 4

/** Starts the parts in order; they are closed in reverse, also when a later part fails to start. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, log } = options
  const startedAt = Date.now()
  const software = readSoftware()
  await using parts = new AsyncDisposableStack()

  const lock = lockDirectory(config.dataDir)
  parts.defer(() => lock.release())
  const app = await openDatabase(config.databases.app, 'app')
  parts.defer(() => app.db.close())
  const participantDb = await openDatabase(config.databases.participant, 'participant')
  parts.defer(() => participantDb.db.close())
  const participant = await openParticipant(participantDb.db, {
    migrationId: config.migration.id,
    partyHint: config.identity.partyHint,
    nodeIdentifier: config.identity.nodeIdentifier,
    isGiven: config.identity.given,
  })

  const registry = startMetrics(config, software, parts)
  const health = createHealth()
  watchDatabase(health, 'app database', app.db)
  watchDatabase(health, 'participant database', participantDb.db)
  const outgoing = createOutgoing(config.proxy)
  parts.defer(() => outgoing.close())

  const { history, exampleUpdates } = await openNodeHistory(options, app, parts)
  const ledger = await openLedgerApi({ config, log, db: participantDb.db, participant, outgoing })

  const listening = await openPorts({
    log,
    listen: config.listen,
    health,
    registry,
    status: { version: software.version, commitTime: software.releasedAt, startedAt },
    ledger,
    scan: {
      history,
      pageSizeMax: config.scan.maxPageSize ?? 2_147_483_647,
      compressedCacheBytes: config.scan.cacheBytes * COMPRESSED_SHARE,
      softwareVersion: software.version,
      listScans: () => [],
    },
  })
  parts.defer(() => listening.close())
  parts.defer(() => health.stop())

  const urls = urlsOf(listening.urls)
  log.info({ ...urls, updates: history.view.updates, startMs: Date.now() - startedAt }, 'ready')
  const closing = parts.move()
  return {
    urls,
    history,
    exampleUpdates,
    reload(next) {
      const applied = listening.reloadCertificates() ? ['certificates'] : []
      if (next.logLevel !== config.logLevel) {
        log.level = next.logLevel === 'off' ? 'silent' : next.logLevel
        applied.push('log level')
      }
      return { applied, needsRestart: changedGroups(config, next) }
    },
    close: () => closing.disposeAsync(),
  }
}

function startMetrics(
  config: NodeConfig,
  software: Software,
  parts: AsyncDisposableStack,
): Registry {
  const registry = createRegistry({ nativeHistograms: config.metrics.nativeHistograms })
  const build = { version: software.version, commit: software.releasedAt }
  const processMetrics = startProcessMetrics({ registry, build })
  parts.defer(() => processMetrics.close())
  return registry
}

function watchDatabase(health: Health, name: string, db: Db): void {
  health.add({
    name,
    async run() {
      await db.query('select 1')
      return undefined
    },
  })
}

/** On PostgreSQL several nodes may share a history; the one that holds the lock writes. */
async function openNodeHistory(
  { config, empty }: NodeOptions,
  { db, target }: OpenDatabase,
  parts: AsyncDisposableStack,
): Promise<{ history: History; exampleUpdates: number }> {
  const writerLock = target.engine === 'postgres' ? await tryWriterLock(target) : undefined
  parts.defer(() => writerLock?.release())
  const isFollower = target.engine === 'postgres' && writerLock === undefined
  const history = await openHistory({ db, cacheBytes: config.scan.cacheBytes, isFollower })
  const isExampleWanted =
    !empty && !isFollower && config.network === undefined && history.view.lastOffset === 0n
  return { history, exampleUpdates: isExampleWanted ? await loadExample(history) : 0 }
}

/** Tokens of the configured provider, of the node's own key when there is none, or no tokens at all. */
async function openLedgerApi(options: {
  config: NodeConfig
  log: Logger
  db: Db
  participant: Participant
  outgoing: Outgoing
}): Promise<LedgerApi> {
  const { config, log, db, participant, outgoing } = options
  const { auth } = config
  await ensureFirstUsers(
    db,
    auth.ledgerApiUser === undefined ? {} : { serviceUser: auth.ledgerApiUser },
  )
  const api = { db, ...participant }
  if (auth.disabled) {
    log.warn(
      'AUTHENTICATION IS OFF (disableAuth): whoever reaches the ledger API is an administrator',
    )
    return { ...api, authentication: authenticationOff, keySet: undefined }
  }
  const common = {
    db,
    participantId: participant.participantId,
    fetch: outgoing.fetch,
    events: { log },
  }
  if (auth.participant !== undefined) {
    const { jwksUrl, targetAudience: audience } = auth.participant
    const authentication = await openAuthentication({
      ...common,
      defaultProvider: { jwksUrl, audience },
    })
    return { ...api, authentication, keySet: undefined }
  }
  const { keySet } = await openDevKey(config.dataDir)
  const defaultProvider = { keySet, audience: DEV_AUDIENCE }
  return {
    ...api,
    authentication: await openAuthentication({ ...common, defaultProvider }),
    keySet,
  }
}

/** Groups of settings that a running node cannot take over. */
function changedGroups(before: NodeConfig, after: NodeConfig): string[] {
  const groups = Object.keys(before) as (keyof NodeConfig)[]
  return groups.filter(
    (group) => group !== 'logLevel' && printed(before[group]) !== printed(after[group]),
  )
}

function printed(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? String(part) : part)) ?? ''
  )
}

/** The base of each API, as clients want it. */
function urlsOf(roots: Record<PortName, string>): Record<PortName, string> {
  return {
    ledger: roots.ledger,
    scan: `${roots.scan}/api/scan`,
    validator: `${roots.validator}/api/validator`,
    metrics: `${roots.metrics}/metrics`,
  }
}
