import pg from 'pg'
import type { Db } from './db.ts'
import { DatabaseUnavailable } from './db-error.ts'
import {
  createPool,
  destroy,
  ignoreBrokenConnection,
  type PostgresOptions,
  probe,
} from './postgres-client.ts'
import { toPostgresError } from './postgres-error.ts'
import { createSession, createStatementTexts, type Session } from './postgres-session.ts'
import { watchServer } from './server-watch.ts'
import { runTransaction } from './transaction.ts'

// A server that is silent does not close its end of a connection; ours is closed after this.
const CLOSE_TIMEOUT_MS = 5_000

/** A pool of connections to one schema of a PostgreSQL database. Isolation is `read committed`. */
export async function openPostgres(options: PostgresOptions): Promise<Db> {
  const pool = createPool(options)
  const texts = createStatementTexts()
  // With the generation of the statements that each of them may hold prepared.
  const clients = new Map<pg.ClientBase, number>()
  pool.on('connect', (client) => clients.set(client, texts.names.generation))
  pool.on('remove', (client) => clients.delete(client))
  const watch = watchServer({
    probe: () => probe(options.connection),
    onLost: destroyAll,
    silenceMs: options.silenceMs,
  })
  const running = new Set<Promise<unknown>>()
  let closing: Promise<void> | undefined

  function destroyAll(): void {
    for (const client of clients.keys()) destroy(client)
  }

  async function connect(): Promise<pg.PoolClient> {
    let connecting: Promise<pg.PoolClient> | undefined
    try {
      return await watch.guard(() => {
        connecting = pool.connect()
        return connecting
      })
    } catch (error) {
      // A connection that comes after it was given up belongs to nobody; the pool must get it back.
      connecting?.then((client) => client.release(true), ignoreBrokenConnection)
      throw toPostgresError(error)
    }
  }

  async function withSession<T>(
    work: (session: Session, discard: () => void) => Promise<T>,
  ): Promise<T> {
    const client = await connect()
    let broken = false
    const discard = () => {
      broken = true
      destroy(client)
    }
    // The connection may break between two statements, when none of them gets the error.
    client.on('error', ignoreBrokenConnection)
    try {
      return await work(createSession({ client, watch, texts }), discard)
    } catch (error) {
      if (error instanceof DatabaseUnavailable) discard()
      throw error
    } finally {
      client.off('error', ignoreBrokenConnection)
      client.release(broken || clients.get(client) !== texts.names.generation)
    }
  }

  async function run<T>(work: (session: Session, discard: () => void) => Promise<T>): Promise<T> {
    if (closing !== undefined) throw new DatabaseUnavailable('The database is closed.')
    const result = withSession(work)
    running.add(result)
    try {
      return await result
    } finally {
      running.delete(result)
    }
  }

  function transaction<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    return run(async (session, discard) => {
      await session.begin()
      const rollback = async () => {
        try {
          await session.execute('rollback')
        } catch {
          // The server rolls back when the connection ends.
          discard()
        }
      }
      const { commit } = session
      return runTransaction({ engine: 'postgres', statements: session, commit, rollback }, work)
    })
  }

  async function close(): Promise<void> {
    // The pool would leave those who wait for a connection until their time is over.
    await Promise.allSettled(running)
    const timer = setTimeout(destroyAll, CLOSE_TIMEOUT_MS)
    await pool.end()
    clearTimeout(timer)
    watch.close()
  }

  const db: Db = {
    engine: 'postgres',
    query: (sql, params) => run((session) => session.query(sql, params)),
    queryBinary: (sql, params) => run((session) => session.queryBinary(sql, params)),
    execute: (sql, params) => run((session) => session.execute(sql, params)),
    executeMany: (sql, rows) => transaction((tx) => tx.executeMany(sql, rows)),
    executeAll: (statements) => transaction((tx) => tx.executeAll(statements)),
    transaction,
    close() {
      closing ??= close()
      return closing
    },
    pool: () => ({
      max: pool.options.max,
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
  }
  try {
    await createSchema(db, options.schema)
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}

// The look comes first, because a user without the right to create schemas may use one that exists.
async function createSchema(db: Db, schema: string): Promise<void> {
  const exists = async () =>
    (await db.query('select 1 from pg_namespace where nspname = ?', [schema])).length > 0
  if (await exists()) return
  try {
    await db.execute(`create schema if not exists ${pg.escapeIdentifier(schema)}`)
  } catch (error) {
    // Two that create it at the same time collide in the catalogue in spite of `if not exists`.
    if (!(await exists())) throw error
  }
}
