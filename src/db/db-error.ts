/**
 * The database cannot do the work now, through no fault of the request: the server is lost, the
 * writer has died, or too much is waiting. The caller may try again; HTTP answers it with 503.
 */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code = 'DatabaseUnavailable'
}

/**
 * The engine refused a statement. `code` is the SQLSTATE on PostgreSQL (`23505`) and the name of the
 * result code on SQLite (`SQLITE_CONSTRAINT`); `sql` is the statement's text without its parameters,
 * which may be secret.
 */
export class SqlError extends Error {
  override readonly name = 'SqlError'
  readonly code: string
  readonly sql: string | undefined

  constructor(message: string, { code, sql }: { code: string; sql: string | undefined }) {
    super(message)
    this.code = code
    this.sql = sql
  }
}
