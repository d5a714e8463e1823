import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { lockDirectory } from '../db/directory-lock.ts'
import { migrate, readMigrations } from '../db/migrate.ts'
import { type DbTarget, openDb } from '../db/open.ts'
import { tryWriterLock } from '../db/writer-lock.ts'
import { type History, openHistory } from '../history/history.ts'
import { type PreparePool, startPreparePool } from '../history/prepare-pool.ts'
import { APP_DATABASE_FILE } from '../node.ts'
import { CommandError } from './output.ts'

/** The history of a stopped node, claimed for a command that works on it. */
export type OfflineStore = {
  history: History
  pool: PreparePool
  dataDirectory: string
  [Symbol.asyncDispose](): Promise<void>
}

/** Which store: that of a data directory, or a configured database. */
export type OfflineTarget = { dataDirectory: string; appDatabase?: DbTarget }

/** Decoded frames an offline command keeps: enough to read ahead. */
const CACHE_BYTES = 64 * 1024 * 1024
/** More threads than this have nothing to do: reading and storing become the limit. */
const THREADS_MAX = 8

export async function openOfflineStore(
  options: OfflineTarget & {
    /** Whether a store is made when there is none. */
    create: boolean
  },
): Promise<OfflineStore> {
  await using parts = new AsyncDisposableStack()
  const path = join(options.dataDirectory, APP_DATABASE_FILE)
  const target: DbTarget = options.appDatabase ?? { engine: 'sqlite', path }
  if (target.engine === 'sqlite' && !options.create && !existsSync(target.path)) {
    throw new CommandError(
      `There is no history in ${options.dataDirectory}; name its directory with --data.`,
    )
  }
  const lock = lockDirectory(options.dataDirectory)
  parts.defer(() => lock.release())
  const db = await openDb(target)
  parts.defer(() => db.close())
  await migrate(db, await readMigrations('app'))
  if (target.engine === 'postgres') {
    const writerLock = await tryWriterLock(target)
    if (writerLock === undefined) {
      throw new CommandError('A node runs on this database; stop it first.')
    }
    parts.defer(() => writerLock.release())
  }
  const history = await openHistory({ db, cacheBytes: CACHE_BYTES })
  const pool = startPreparePool({ threads: Math.min(THREADS_MAX, availableParallelism()) })
  parts.defer(() => pool.close())
  const moved = parts.move()
  return {
    history,
    pool,
    dataDirectory: options.dataDirectory,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}
