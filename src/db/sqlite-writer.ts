import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { SqlValue } from './db.ts'
import { SqlError } from './db-error.ts'
import { cacheStatements, type SqliteStatements, toSqlError } from './sqlite-statements.ts'
import type { WriterError, WriterReply, WriterRequest } from './sqlite-writer-port.ts'

// The worker thread that owns the one connection that writes. It answers each request in the order
// of arrival, so that waiting for the disk never holds the event loop of the main thread.

// How long another process, such as a backup, may hold the write lock.
const BUSY_TIMEOUT_MS = 5_000
// Pages that a transaction touches stay in memory until it commits; larger ones spill to the file.
const CACHE_KIB = 16_384
// 16 MiB of log between checkpoints: fewer of them during an import, and still short ones.
const CHECKPOINT_PAGES = 4_096
const JOURNAL_SIZE_MAX_BYTES = 64 * 1024 * 1024

assert(parentPort !== null, 'sqlite-writer runs as a worker thread')
const port = parentPort
const { connection, error } = tryOpen(workerData.path)
if (connection === undefined) {
  port.postMessage([{ id: 0, error }] satisfies WriterReply[])
} else {
  const statements = cacheStatements(connection)
  port.on('message', (requests: WriterRequest[]) => {
    const answers = requests.map((request) => answer(request, { connection, statements }))
    port.postMessage(
      answers.map(([reply]) => reply),
      answers.flatMap(([, buffers]) => buffers),
    )
    if (requests.some(({ kind }) => kind === 'close')) port.close()
  })
  port.postMessage([{ id: 0 }] satisfies WriterReply[])
}

type Writer = { connection: DatabaseSync; statements: SqliteStatements }
type Opened =
  | { connection: DatabaseSync; error?: never }
  | { connection?: never; error: WriterError }

function tryOpen(path: string): Opened {
  try {
    return { connection: openWriter(path) }
  } catch (error) {
    return { error: describe(toSqlError(error, undefined)) }
  }
}

function openWriter(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  enterWalMode(database)
  database.exec(`
    pragma synchronous = full;
    pragma foreign_keys = on;
    pragma trusted_schema = off;
    pragma temp_store = memory;
    pragma cache_size = -${CACHE_KIB};
    pragma wal_autocheckpoint = ${CHECKPOINT_PAGES};
    pragma journal_size_limit = ${JOURNAL_SIZE_MAX_BYTES};
  `)
  return database
}

// The change of the journal mode does not wait for a lock as statements do, and two processes may
// open a new file at the same time.
function enterWalMode(database: DatabaseSync): void {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    try {
      database.exec('pragma journal_mode = wal')
      return
    } catch (error) {
      const converted = toSqlError(error, undefined)
      const busy = converted instanceof SqlError && converted.code === 'SQLITE_BUSY'
      if (!busy || Date.now() > deadline) throw error
      Atomics.wait(pause, 0, 0, 10)
    }
  }
}

function answer(request: WriterRequest, writer: Writer): [WriterReply, ArrayBuffer[]] {
  try {
    const value = perform(request, writer)
    return [{ id: request.id, value }, Array.isArray(value) ? buffersOf(value) : []]
  } catch (error) {
    const sql = 'sql' in request ? request.sql : undefined
    return [{ id: request.id, error: describe(toSqlError(error, sql)) }, []]
  }
}

function perform(request: WriterRequest, { connection, statements }: Writer): unknown {
  switch (request.kind) {
    case 'begin':
      connection.exec('begin immediate')
      return
    case 'commit':
      assertInTransaction(connection)
      connection.exec('commit')
      return
    case 'rollback':
      // A full disk or a failed read may have made SQLite roll back on its own.
      if (connection.isTransaction) connection.exec('rollback')
      return
    case 'close':
      closeWriter(connection)
      return
    case 'query':
      if (request.inTransaction) assertInTransaction(connection)
      return statements.all(request.sql, request.params)
    case 'execute':
      if (request.inTransaction) assertInTransaction(connection)
      return statements.run(request.sql, request.params)
    case 'executeMany':
      assertInTransaction(connection)
      for (const row of request.rows) statements.run(request.sql, row)
      return
    case 'executeAll':
      executeAll(request, { connection, statements })
      return
  }
}

function executeAll(
  { texts, rows }: { texts: string[]; rows: SqlValue[][] },
  { connection, statements }: Writer,
): void {
  connection.exec('begin immediate')
  let sql: string | undefined
  try {
    for (const [index, text] of texts.entries()) {
      sql = text
      assertInTransaction(connection)
      statements.run(text, rows[index] ?? [])
    }
    sql = undefined
    assertInTransaction(connection)
    connection.exec('commit')
  } catch (error) {
    if (connection.isTransaction) connection.exec('rollback')
    throw toSqlError(error, sql)
  }
}

// Without this check the statements after SQLite's own rollback would be committed one by one.
function assertInTransaction(connection: DatabaseSync): void {
  if (!connection.isTransaction) {
    throw new SqlError('The transaction is not open, or SQLite has rolled it back.', {
      code: 'SQLITE_ABORT',
      sql: undefined,
    })
  }
}

function closeWriter(connection: DatabaseSync): void {
  try {
    connection.exec('pragma wal_checkpoint(truncate)')
  } finally {
    connection.close()
  }
}

// Each blob that SQLite returns has a buffer of its own, so it can move to the main thread.
function buffersOf(rows: Record<string, unknown>[]): ArrayBuffer[] {
  const buffers: ArrayBuffer[] = []
  for (const row of rows) {
    for (const value of Object.values(row)) {
      if (value instanceof Uint8Array) buffers.push(value.buffer as ArrayBuffer)
    }
  }
  return buffers
}

function describe(error: unknown): WriterError {
  if (error instanceof SqlError) return { message: error.message, code: error.code, sql: error.sql }
  return { message: error instanceof Error ? error.message : String(error) }
}
