import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { lockDirectory } from '../db/directory-lock.ts'
import { tryWriterLock } from '../db/writer-lock.ts'
import { type History, openHistory } from '../history/history.ts'
import { type PreparePool, startPreparePool } from '../history/prepare-pool.ts'
import { openDatabase } from '../open-databases.ts'
import { type ConfigurationArguments, readConfiguration } from './configuration.ts'
import { type CliContext, CommandError } from './output.ts'

/** The history of a stopped node, claimed for a command that works on it. */
export type OfflineStore = {
  history: History
  pool: PreparePool
  dataDirectory: string
  [Symbol.asyncDispose](): Promise<void>
}

/** Decoded frames an offline command keeps: enough to read ahead. */
const CACHE_BYTES = 64 * 1024 * 1024
/** More threads than this have nothing to do: reading and storing become the limit. */
const THREADS_MAX = 8

/** Opens the history of the data directory, or of the configured database. */
export async function openOfflineStore(
  args: ConfigurationArguments,
  context: CliContext,
  options: { create: boolean },
): Promise<OfflineStore> {
  const config = await readConfiguration(args, context, { isQuiet: true })
  const { dataDir, databases } = config
  if (databases.app.engine === 'sqlite' && !options.create && !existsSync(databases.app.file)) {
    throw new CommandError(`There is no history in ${dataDir}; name its directory with --data.`)
  }
  await using parts = new AsyncDisposableStack()
  const lock = lockDirectory(dataDir)
  parts.defer(() => lock.release())
  const { db, target } = await openDatabase(databases.app, 'app')
  parts.defer(() => db.close())
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
    dataDirectory: dataDir,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}
