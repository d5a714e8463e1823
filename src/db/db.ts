export type SqlValue = null | string | number | bigint | Uint8Array

/** A statement that changes rows, with its parameters. */
export type Statement = { sql: string; params: SqlValue[] }

/**
 * The seam between the house and its two engines. SQL is the subset that SQLite and PostgreSQL
 * share, with `?` parameters. Integers come back as numbers, and as bigints beyond 2^53; there are
 * no booleans (use 0 and 1), and binary columns come back as `Uint8Array`.
 */
export type Db = {
  readonly engine: 'sqlite' | 'postgres'
  query<Row>(sql: string, params?: SqlValue[]): Promise<Row[]>
  /** A query of integer, text and binary columns whose parameters are integers, fetched without any text encoding. */
  queryBinary<Row>(sql: string, params?: (number | bigint)[]): Promise<Row[]>
  /** Returns the number of rows changed. */
  execute(sql: string, params?: SqlValue[]): Promise<number>
  /** One statement for many rows; cheaper than as many calls. */
  executeMany(sql: string, rows: SqlValue[][]): Promise<void>
  /** Several statements, all or none, without a look at what each of them did; cheaper than a transaction. */
  executeAll(statements: readonly Statement[]): Promise<void>
  /**
   * Runs the work in one transaction: committed and durable when the promise resolves, rolled back
   * when the work throws or one of its statements fails, even if the work catches that. Write transactions of one process run one after another on SQLite.
   */
  transaction<T>(work: (tx: Db) => Promise<T>): Promise<T>
  close(): Promise<void>
  /** The state of the connections, where there is a pool of them. */
  pool?(): PoolState
}

export type PoolState = { max: number; used: number; idle: number; waiting: number }
