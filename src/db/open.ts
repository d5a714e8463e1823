import type { Db } from './db.ts'
import { openPostgres } from './postgres.ts'
import type { PostgresOptions } from './postgres-client.ts'
import { openSqlite, type SqliteOptions } from './sqlite.ts'

export type DbTarget =
  | ({ engine: 'sqlite' } & SqliteOptions)
  | ({ engine: 'postgres' } & PostgresOptions)

export function openDb(target: DbTarget): Promise<Db> {
  return target.engine === 'sqlite' ? openSqlite(target) : openPostgres(target)
}
