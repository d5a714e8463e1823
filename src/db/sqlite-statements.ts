import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SqlValue } from './db.ts'
import { SqlError } from './db-error.ts'
import { assertOneStatement } from './sql-text.ts'

// The whole program has fewer statements than this; a bound only guards against texts made at run time.
const STATEMENTS_MAX = 256

// The one integer beyond 2^53 that `node:sqlite` returns as a number instead of an error.
const INT64_MIN = -(2 ** 63)

const resultCodeNames: Record<number, string> = {
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  19: 'SQLITE_CONSTRAINT',
  20: 'SQLITE_MISMATCH',
  26: 'SQLITE_NOTADB',
}

export type SqliteStatements = {
  /** For a read-only connection: rows are read again with big integers if one is beyond 2^53. */
  read(sql: string, params: SqlValue[]): unknown[]
  /** Runs once, whatever it returns: for statements that change something. */
  all(sql: string, params: SqlValue[]): unknown[]
  run(sql: string, params: SqlValue[]): number
}

/** Prepared statements of one connection, kept by their text, the least recently used given up first. */
export function cacheStatements(connection: DatabaseSync): SqliteStatements {
  const prepared = new Map<string, StatementSync>()

  function prepare(sql: string): StatementSync {
    let statement = prepared.get(sql)
    if (statement === undefined) {
      assertOneStatement(sql)
      statement = connection.prepare(sql, { returnArrays: true, readBigInts: true })
      if (prepared.size >= STATEMENTS_MAX) {
        const [oldest] = prepared.keys()
        if (oldest !== undefined) prepared.delete(oldest)
      }
    } else prepared.delete(sql)
    prepared.set(sql, statement)
    return statement
  }

  return {
    read(sql, params) {
      const statement = prepare(sql)
      // Numbers are read more than twice as fast as big integers, and almost all integers are small.
      statement.setReadBigInts(false)
      try {
        const rows = statement.all(...bind(params)) as unknown as unknown[][]
        if (!rows.some((values) => values.includes(INT64_MIN))) return toObjects(statement, rows)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ERR_OUT_OF_RANGE') throw error
      } finally {
        statement.setReadBigInts(true)
      }
      return toObjects(statement, statement.all(...bind(params)))
    },
    all(sql, params) {
      const statement = prepare(sql)
      return toObjects(statement, statement.all(...bind(params)))
    },
    run(sql, params) {
      return Number(prepare(sql).run(...bind(params)).changes)
    },
  }
}

/** An error of `node:sqlite` as ours; anything else is passed on as it is. */
export function toSqlError(error: unknown, sql: string | undefined): unknown {
  if (!(error instanceof Error) || !('errcode' in error)) return error
  // The low byte is the primary result code; the rest says which kind of it.
  const resultCode = Number(error.errcode) & 0xff
  const code = resultCodeNames[resultCode] ?? `SQLITE_${resultCode}`
  return new SqlError(error.message, { code, sql })
}

// `node:sqlite` binds every number as a real, so that 5 would become '5.0' in a text column and 5 / 2
// would be 2.5; PostgreSQL takes them for the integers they are.
function bind(params: SqlValue[]): SqlValue[] {
  return params.map((value) =>
    typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value,
  )
}

// The names are asked for each time: a migration may change what `select *` means.
function toObjects(statement: StatementSync, rows: unknown): unknown[] {
  const names = statement.columns().map((column) => column.name)
  return (rows as unknown[][]).map((values) => {
    const row: Record<string, unknown> = {}
    for (const [index, name] of names.entries()) row[name] = toPlain(values[index])
    return row
  })
}

function toPlain(value: unknown): unknown {
  if (typeof value !== 'bigint') return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
