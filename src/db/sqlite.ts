import { DatabaseSync } from 'node:sqlite'
import type { Db, SqlValue } from './db.ts'
import { DatabaseUnavailable } from './db-error.ts'
import { cacheStatements, toSqlError } from './sqlite-statements.ts'
import { bytesOf, startWriter, type WriterPort } from './sqlite-writer-port.ts'
import { runTransaction, type Statements } from './transaction.ts'
import { createWriteQueue } from './write-queue.ts'

// Readers wait for nobody in WAL mode but for a recovery or a last close by another process.
const READER_BUSY_TIMEOUT_MS = 1_000
// Holds the upper levels of every index. There is no memory map: an I/O error in a mapped page kills
// the process instead of failing a statement, and mapped pages count as the process's own memory.
const READER_CACHE_KIB = 16_384
// Rows travel to the writer in parcels of about this size, so that an import of any size needs little memory.
const PARCEL_BYTES = 8 * 1024 * 1024
const PARCEL_ROWS = 2_000

export type SqliteOptions = { path: string }

/**
 * Two connections to one file: the writer in a worker thread behind a queue, and a reader on this
 * thread. Reads outside of transactions see what is committed; they run at once and hold the event
 * loop as long as they last, so callers keep them short.
 */
export async function openSqlite({ path }: SqliteOptions): Promise<Db> {
  const writer = await startWriter(path)
  const queue = createWriteQueue()
  const readerConnection = await openReaderOrClose(path, writer)
  const reader = cacheStatements(readerConnection)
  const autocommit = writerStatements(writer, false)
  const inTransaction = writerStatements(writer, true)
  let closing: Promise<void> | undefined

  function transaction<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    return queue.run(async () => {
      await writer.request({ kind: 'begin' })
      return runTransaction(
        {
          engine: 'sqlite',
          statements: inTransaction,
          commit: async () => {
            await writer.request({ kind: 'commit' })
          },
          rollback: () => rollback(writer),
        },
        work,
      )
    })
  }

  async function query<Row>(sql: string, params: SqlValue[] = []): Promise<Row[]> {
    if (closing !== undefined) throw new DatabaseUnavailable('The database is closed.')
    if (!isRead(sql)) return queue.run(() => autocommit.query<Row>(sql, params))
    try {
      return reader.read(sql, params) as Row[]
    } catch (error) {
      throw toSqlError(error, sql)
    }
  }

  async function close(): Promise<void> {
    await queue.close()
    // The last connection to close removes the log, which the read-only one could not.
    readerConnection.close()
    await writer.close()
  }

  return {
    engine: 'sqlite',
    query,
    queryBinary: query,
    execute: (sql, params) => queue.run(() => autocommit.execute(sql, params)),
    executeMany: (sql, rows) => transaction((tx) => tx.executeMany(sql, rows)),
    executeAll: (statements) =>
      queue.run(async () => {
        const texts = statements.map(({ sql }) => sql)
        const rows = statements.map(({ params }) => params)
        await writer.request({ kind: 'executeAll', texts, rows })
      }),
    transaction,
    close() {
      closing ??= close()
      return closing
    },
  }
}

async function openReaderOrClose(path: string, writer: WriterPort): Promise<DatabaseSync> {
  try {
    return openReader(path)
  } catch (error) {
    await writer.close()
    throw toSqlError(error, undefined)
  }
}

function openReader(path: string): DatabaseSync {
  const connection = new DatabaseSync(path, { readOnly: true, timeout: READER_BUSY_TIMEOUT_MS })
  connection.exec(`
    pragma trusted_schema = off;
    pragma temp_store = memory;
    pragma cache_size = -${READER_CACHE_KIB};
  `)
  return connection
}

/** An `insert … returning` is a query too, but one for the writer. */
function isRead(sql: string): boolean {
  return /^\s*(select|with|values|explain|pragma)\b/i.test(sql)
}

function writerStatements(writer: WriterPort, inTransaction: boolean): Statements {
  async function query<Row>(sql: string, params: SqlValue[] = []): Promise<Row[]> {
    return (await writer.request({ kind: 'query', sql, params, inTransaction })) as Row[]
  }
  return {
    query,
    queryBinary: query,
    async execute(sql, params = []) {
      return (await writer.request({ kind: 'execute', sql, params, inTransaction })) as number
    },
    async executeMany(sql, rows) {
      for (const parcel of parcels(rows)) {
        await writer.request({ kind: 'executeMany', sql, rows: parcel })
      }
    },
  }
}

async function rollback(writer: WriterPort): Promise<void> {
  try {
    await writer.request({ kind: 'rollback' })
  } catch {
    // Only a dead writer cannot roll back; its transaction died with it, and every later call says so.
  }
}

function* parcels(rows: SqlValue[][]): Generator<SqlValue[][]> {
  let parcel: SqlValue[][] = []
  let bytes = 0
  for (const row of rows) {
    parcel.push(row)
    bytes += bytesOf(row)
    if (bytes < PARCEL_BYTES && parcel.length < PARCEL_ROWS) continue
    yield parcel
    parcel = []
    bytes = 0
  }
  if (parcel.length > 0) yield parcel
}
