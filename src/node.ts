import { join } from 'node:path'
import type { Logger } from 'pino'
import { readSoftware } from './base/software.ts'
import { lockDirectory } from './db/directory-lock.ts'
import { migrate, readMigrations } from './db/migrate.ts'
import { type DbTarget, openDb } from './db/open.ts'
import { tryWriterLock } from './db/writer-lock.ts'
import { createHealth } from './health/checks.ts'
import { loadExample } from './history/example.ts'
import { type History, openHistory } from './history/history.ts'
import { openPorts, type PortName, type Ports } from './listen.ts'
import { startProcessMetrics } from './metrics/process.ts'
import { createRegistry } from './metrics/registry.ts'

export type NodeOptions = {
  log: Logger
  /** Claimed for this process; holds the databases when none are configured. */
  dataDirectory: string
  /** SQLite in the data directory unless given. */
  appDatabase?: DbTarget
  host: string
  ports: Ports
  /** Leaves an empty history empty. */
  empty: boolean
  scan: { pageSizeMax: number; cacheBytes: number; compressedCacheBytes: number }
}

export type RunningNode = {
  urls: Record<PortName, string>
  history: History
  /** How many updates of the example were loaded at this start. */
  exampleUpdates: number
  /** Refuses new work, finishes what is under way, closes everything. */
  close(): Promise<void>
}

export const APP_DATABASE_FILE = 'app.sqlite'

/** Starts the parts in order; what has been started is closed in reverse, also when a later part fails. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { log } = options
  const startedAt = Date.now()
  const software = readSoftware()
  await using parts = new AsyncDisposableStack()

  const lock = lockDirectory(options.dataDirectory)
  parts.defer(() => lock.release())
  const target = options.appDatabase ?? {
    engine: 'sqlite',
    path: join(options.dataDirectory, APP_DATABASE_FILE),
  }
  const appDb = await openDb(target)
  parts.defer(() => appDb.close())
  await migrate(appDb, await readMigrations('app'))
  const writerLock = target.engine === 'postgres' ? await tryWriterLock(target) : undefined
  parts.defer(() => writerLock?.release())
  const isFollower = target.engine === 'postgres' && writerLock === undefined

  const registry = createRegistry({ nativeHistograms: true })
  const processMetrics = startProcessMetrics({
    registry,
    build: { version: software.version, commit: software.releasedAt },
  })
  parts.defer(() => processMetrics.close())
  const health = createHealth()
  health.add({
    name: 'app database',
    async run() {
      await appDb.query('select 1')
      return undefined
    },
  })

  const history = await openHistory({ db: appDb, cacheBytes: options.scan.cacheBytes, isFollower })
  const isExampleWanted = !options.empty && !isFollower && history.view.lastOffset === 0n
  const exampleUpdates = isExampleWanted ? await loadExample(history) : 0

  const listening = await openPorts({
    log,
    host: options.host,
    ports: options.ports,
    health,
    registry,
    status: { version: software.version, commitTime: software.releasedAt, startedAt },
    scan: {
      history,
      pageSizeMax: options.scan.pageSizeMax,
      compressedCacheBytes: options.scan.compressedCacheBytes,
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
    close: () => closing.disposeAsync(),
  }
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
