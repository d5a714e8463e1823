import { statfs } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Logs } from './base/log.ts'
import { readSoftware, type Software } from './base/software.ts'
import type { NodeConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { lockDirectory } from './db/directory-lock.ts'
import { findSchemaFault, readMigrations } from './db/migrate.ts'
import { createHealth, type Health } from './health/checks.ts'
import type { History } from './history/history.ts'
import { writeNodeMigration } from './history/node-store.ts'
import { callOwnRoutes } from './http/call.ts'
import { createOutgoing, type Outgoing } from './http/outgoing.ts'
import { closeServer } from './http/server.ts'
import type { Ledger } from './ledger/ledger.ts'
import {
  buildLedgerApp,
  buildMetricsApp,
  buildScanApp,
  buildValidatorApp,
  type LedgerApi,
  openPort,
  type PortName,
  type Surroundings,
} from './listen.ts'
import {
  measureDb,
  measureFetch,
  measureHealth,
  measureKeySet,
  measurePages,
  measureTokens,
  measureTopology,
} from './measure.ts'
import { measureSubmissions, measureTraffic, watchLedger, watchTraffic } from './measure-ledger.ts'
import { appLabels } from './metrics/app-labels.ts'
import { startProcessMetrics } from './metrics/process.ts'
import { createRegistry, type Registry } from './metrics/registry.ts'
import { measureOnboarding } from './onboarding/onboarding-metrics.ts'
import { type OpenDatabase, openDatabase } from './open-databases.ts'
import { openNodeHistory } from './open-history.ts'
import { type NodeLedger, openNodeLedger, whyLedgerIsOff } from './open-ledger.ts'
import { openMirror } from './open-mirror.ts'
import { createLateSponsor, joinNetwork, openSponsor } from './open-onboarding.ts'
import { openPruning } from './open-pruning.ts'
import { openNodeWallet } from './open-wallet.ts'
import { measureProxy } from './proxy/proxy-metrics.ts'
import { createLateReader } from './proxy/proxy-routes.ts'
import { readNetwork, readOwnScan } from './proxy/scan-reader.ts'
import { type Following, startFollowing } from './scan/follow.ts'
import { type OwnScan, withOwnScan } from './scan/own-scan.ts'
import { migrateParticipant } from './synchronizer-migration.ts'
import { openAuthentication } from './users/authentication.ts'
import { authenticationOff } from './users/caller.ts'
import { DEV_AUDIENCE, openDevKey } from './users/dev-key.ts'
import { ensureFirstUsers } from './users/first-users.ts'
import { openParticipant, type Participant } from './users/participant-store.ts'
import { startTopologyPolling } from './users/topology-polling.ts'
import { createLateWallet } from './wallet/wallet-door.ts'

export type NodeOptions = {
  config: NodeConfig
  logs: Logs
  /** Leaves an empty node empty. */
  empty: boolean
  /** Makes the network of a first start the same each time. */
  seed?: string | undefined
  /** Time stands still until it is advanced through the ledger API. */
  simTime?: boolean
}

export type RunningNode = {
  urls: Record<PortName, string>
  history: History
  /** The embedded ledger, unless the history belongs to somebody else. */
  ledger: Ledger | undefined
  /** Why there is none. */
  ledgerOff: string | undefined
  /** Whether this start has seeded the network. */
  isSeeded: boolean
  /** Resolves with what makes it senseless to go on; the owner closes the node and tells it. */
  failed: Promise<Error>
  /** Takes over what can change while running; names what needs a restart. */
  reload(config: NodeConfig): Reloaded
  /** Refuses new work, finishes what is under way, closes everything. */
  close(): Promise<void>
}

export type Reloaded = { applied: string[]; needsRestart: string[] }

const PAGE_SIZE_MAX = 2_147_483_647
/** Of the memory for the history, the part for compressed frames. */
const COMPRESSED_SHARE = 1 / 4
/** With less than this a store soon cannot write; the operator still has time to act. */
const DISK_FREE_BYTES_MIN = 256 * 1024 * 1024

/**
 * Starts the parts in order; they are closed in reverse, also when a later part fails to start. The
 * health port opens first and closes last, so that probes get an answer all the while.
 */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, logs } = options
  const log = logs.named('annals.node')
  const startedAt = Date.now()
  const software = readSoftware()
  await using parts = new AsyncDisposableStack()
  const lock = lockDirectory(config.dataDir)
  parts.defer(() => lock.release())

  const registry = startMetrics(config, software, parts)
  const health = startHealth(log, registry)
  const ports: Partial<Record<PortName, number>> = {}
  const around: Surroundings = {
    logs,
    health,
    registry,
    statusOf: (id) => ({
      id,
      version: software.version,
      commitTime: software.releasedAt,
      startedAt,
      ports: () => ({ ...ports }),
    }),
  }
  const open = async (name: PortName, app: FastifyInstance): Promise<string> => {
    parts.defer(() => closeServer(app))
    const url = await openPort(app, name, config.listen)
    ports[name] = Number(new URL(url).port)
    return url
  }
  const sponsor = createLateSponsor(config, software)
  const proxy = createLateReader(measureProxy(registry.with(appLabels.validator)))
  const wallet = createLateWallet({ isEnabled: config.wallet.enabled })
  const validatorApi = { sponsor, proxy, wallet }
  const validator = await open('validator', await buildValidatorApp(around, validatorApi))

  const appDatabase = await openMeasured(config, 'app', { log, registry, health, parts })
  const opened = await openNodeHistory(config, appDatabase, { around, parts })
  const { history, isFollower } = opened
  const step = await migrateParticipant({ config, appDb: appDatabase.db, history, isFollower })
  if (step.kind === 'migrate') {
    log.info({ from: String(step.from), to: String(config.migration.id) }, 'migrated')
  }
  const participantDatabase = await openMeasured(config, 'participant', {
    log,
    registry,
    health,
    parts,
  })
  const participant = await openParticipant(participantDatabase.db, {
    migrationId: config.migration.id,
    partyHint: config.identity.partyHint,
    nodeIdentifier: config.identity.nodeIdentifier,
    isGiven: config.identity.given,
    seed: options.seed,
  })
  // Only now: a refused participant database must not change where the node lives.
  if (!isFollower) await writeNodeMigration(appDatabase.db, config.migration.id)
  watchDisk(health, registry, config.dataDir)
  const outgoing = createOutgoing(config.proxy)
  parts.defer(() => outgoing.close())

  const { db } = participantDatabase
  const intervalMs = config.metrics.topologyIntervalMs
  if (intervalMs !== undefined) {
    const onError = (err: unknown) => log.warn({ err }, 'the topology could not be counted')
    const polling = startTopologyPolling({ db, intervalMs, onError })
    parts.defer(() => polling.close())
    const { participantId } = participant
    measureTopology(registry.with(appLabels.validator), { participantId, parties: polling.parties })
  }

  const api = await openLedgerApi({ config, around, db, participant, outgoing })
  const embedded = await openNodeLedger({
    config,
    db,
    participant,
    history,
    log,
    isSeedWanted: !options.empty && !isFollower,
    seed: options.seed,
    simTime: options.simTime ?? false,
    onTraffic: measureTraffic(registry.with(appLabels.participant)),
    events: measureSubmissions(registry.with(appLabels.participant)),
  })
  parts.defer(() => embedded?.ledger.close())
  const ledgerOff = embedded === undefined ? whyLedgerIsOff(config, history) : undefined
  if (ledgerOff !== undefined) health.addNotices(() => [ledgerOff])
  watchTraffic(registry.with(appLabels.participant), embedded?.ledger)
  const onboarding = measureOnboarding(registry.with(appLabels.validator))
  const onboardingLog = logs.named('annals.onboarding')
  openSponsor(sponsor, {
    embedded,
    db,
    participant,
    authentication: api.authentication,
    events: onboarding,
    log: onboardingLog,
    parts,
  })
  const { failed } = await joinNetwork({
    config,
    appDb: appDatabase.db,
    participantDb: db,
    participant,
    fetch: outgoing.fetch,
    health,
    log: onboardingLog,
    onAttempt: onboarding.onAttempt,
    softwareVersion: software.version,
    parts,
  })
  let following: Following | undefined
  const { onFollowed } = watchLedger(registry.with(appLabels.participant), {
    ledger: embedded?.ledger,
    followed: () => following?.offset,
  })
  if (embedded !== undefined && !isFollower) {
    following = await follow(embedded, history, { around, parts, onFollowed })
  }
  const { db: appDb } = appDatabase
  const pruning = await openPruning({
    config,
    db,
    appDb,
    participant,
    embedded,
    following,
    around,
    parts,
  })

  const mirror = await openMirror(config, {
    ...opened,
    db: appDatabase.db,
    outgoing,
    around,
    parts,
  })
  const metrics = await open('metrics', await buildMetricsApp(around))
  const scanApp = await buildScanApp(around, {
    history,
    pageSizeMax: config.scan.maxPageSize ?? PAGE_SIZE_MAX,
    compressedCacheBytes: config.scan.cacheBytes * COMPRESSED_SHARE,
    softwareVersion: software.version,
    listScans: () => withOwnScan(mirror?.listScans() ?? [], ownScan(config, participant)),
    mirror,
    network: embedded,
    onPage: measurePages(registry.with(appLabels.scan)),
  })
  const scan = await open('scan', scanApp)
  proxy.open(mirror === undefined ? readOwnScan(callOwnRoutes(scanApp)) : readNetwork(mirror.peers))
  const ledgerApi = { ...api, embedded, ledgerOff }
  const ledgerApp = await buildLedgerApp(around, ledgerApi, config.listen.ledgerTls)
  parts.defer(() => ledgerApp.certificates?.close())
  const ledger = await open('ledger', ledgerApp.app)
  await openNodeWallet({
    config,
    late: wallet,
    around,
    parts,
    participantDb: db,
    appDb: appDatabase.db,
    isFollower,
    isWriter: () => opened.writer.isHeld(),
    pruning,
    embedded,
    partyHint: participant.partyHint,
    participantId: participant.participantId,
    ledgerApp: ledgerApp.app,
    scanApp,
    outgoing,
  })
  await health.start()
  parts.defer(() => health.stop())

  const urls = {
    ledger,
    scan: `${scan}/api/scan`,
    validator: `${validator}/api/validator`,
    metrics: `${metrics}/metrics`,
  }
  log.info({ ...urls, updates: history.view.updates, startMs: Date.now() - startedAt }, 'ready')
  const closing = parts.move()
  return {
    urls,
    history,
    ledger: embedded?.ledger,
    ledgerOff,
    isSeeded: embedded?.isSeeded ?? false,
    failed,
    reload(next) {
      const applied = ledgerApp.certificates?.reload() ? ['certificates'] : []
      const level = next.logLevel === 'off' ? 'silent' : next.logLevel
      if (level !== logs.level()) {
        logs.setLevel(level)
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

function startHealth(log: Logger, registry: Registry): Health {
  const health = createHealth({
    onChange(check, failure) {
      if (failure === undefined) log.info({ check }, 'a health check passes again')
      else log.warn({ check, reason: failure.reason }, 'a health check fails')
    },
  })
  measureHealth(registry, health)
  return health
}

async function openMeasured(
  config: NodeConfig,
  name: 'app' | 'participant',
  around: { log: Logger; registry: Registry; health: Health; parts: AsyncDisposableStack },
): Promise<OpenDatabase> {
  const onWait = (reason: string) =>
    around.log.warn({ database: name, reason }, 'waiting for a database')
  const { db, target } = await openDatabase(config.databases[name], name, onWait)
  around.parts.defer(() => db.close())
  const migrations = await readMigrations(name)
  around.health.add({
    name: `${name} database`,
    async run() {
      await db.query('select 1')
      return undefined
    },
  })
  around.health.add({ name: `${name} schema`, run: () => findSchemaFault(db, migrations) })
  return { db: measureDb(around.registry, db, name), target }
}

function watchDisk(health: Health, registry: Registry, directory: string): void {
  let free = Number.NaN
  registry.gauge({
    name: 'annals_disk_free_bytes',
    help: 'Space left where the data directory is.',
    collect: (gauge) => gauge.set(free),
  })
  health.add({
    name: 'disk space',
    async run() {
      const { bavail, bsize } = await statfs(directory)
      free = bavail * bsize
      if (free >= DISK_FREE_BYTES_MIN) return undefined
      return `Only ${Math.floor(free / 1_000_000)} MB are left where the data directory is; make room.`
    },
  })
}

/** The history follows the ledger; a seeded network is there before the first reader comes. */
async function follow(
  { ledger }: NodeLedger,
  history: History,
  {
    around,
    parts,
    onFollowed,
  }: {
    around: Surroundings
    parts: AsyncDisposableStack
    onFollowed: (seconds: number) => void
  },
): Promise<Following> {
  const log = around.logs.named('annals.scan')
  const onError = (err: unknown) => log.error({ err }, 'the history does not follow the ledger')
  const following = startFollowing({ ledger, history, onError, onFollowed })
  parts.defer(() => following.close())
  around.health.add({ name: 'ledger following', run: () => following.failure() })
  await following.caughtUp()
  return following
}

/** As the node appears in the list of scans, once its operator has told where it is reached. */
function ownScan(config: NodeConfig, participant: Participant): OwnScan | undefined {
  const { publicUrl } = config.scan
  if (publicUrl === undefined) return undefined
  const { participantId, synchronizerId } = participant
  const svName = participantId.slice(0, participantId.indexOf('::'))
  const isCopy = config.historyWriter === 'mirror'
  return { publicUrl, svName, domainId: isCopy ? undefined : synchronizerId }
}

/** Tokens of the configured provider, of the node's own key when there is none, or no tokens at all. */
async function openLedgerApi(options: {
  config: NodeConfig
  around: Surroundings
  db: Db
  participant: Participant
  outgoing: Outgoing
}): Promise<Omit<LedgerApi, 'embedded' | 'ledgerOff'>> {
  const { config, around, db, participant, outgoing } = options
  const { auth } = config
  const registry = around.registry.with(appLabels.participant)
  const log = around.logs.named('annals.users')
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
    fetch: measureFetch(registry, outgoing.fetch),
    events: { log, ...measureTokens(registry) },
  }
  if (auth.participant !== undefined) {
    const { jwksUrl, targetAudience: audience } = auth.participant
    const defaultProvider = { jwksUrl, audience }
    const authentication = await openAuthentication({ ...common, defaultProvider })
    const { defaultKeySet } = authentication
    around.health.add({ name: 'key set', run: () => defaultKeySet.fault() })
    measureKeySet(registry, defaultKeySet)
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
