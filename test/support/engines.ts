import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Db } from '../../src/db/db.ts'
import { type DatabaseName, migrate, readMigrations } from '../../src/db/migrate.ts'
import { type DbTarget, openDb } from '../../src/db/open.ts'
import type { PostgresConnection } from '../../src/db/postgres-client.ts'
import { joinSharedPostgres } from './postgres-supervised.ts'

/** The test, or anything else that can clean up later. */
export type Cleanup = { after(clean: () => Promise<void> | void): void }

export type TestEngine = {
  name: Db['engine']
  /** A place for a new database, removed after the test; for tests that open it themselves or twice. */
  newTarget(t: Cleanup): Promise<DbTarget>
  /** A new database without any table, closed and removed after the test. */
  openEmpty(t: Cleanup): Promise<Db>
  /** A new, migrated database of the kind, closed and removed after the test. */
  open(t: Cleanup, database: DatabaseName): Promise<Db>
}

type Place = { target: DbTarget; remove(): Promise<void> }

/** Declares the same tests for both engines. PostgreSQL is at `DATABASE_URL`, or a server of our own. */
export function forEachEngine(declare: (engine: TestEngine) => void): void {
  declare(createEngine('sqlite', newSqlitePlace))
  let connection: Promise<PostgresConnection> | undefined
  declare(
    createEngine('postgres', async () => {
      connection ??= connectPostgres()
      return newPostgresPlace(await connection)
    }),
  )
}

function createEngine(name: Db['engine'], newPlace: () => Promise<Place>): TestEngine {
  async function openEmpty(t: Cleanup): Promise<Db> {
    const { target, remove } = await newPlace()
    const db = await openDb(target)
    t.after(async () => {
      await db.close()
      await remove()
    })
    return db
  }
  return {
    name,
    async newTarget(t) {
      const { target, remove } = await newPlace()
      t.after(remove)
      return target
    },
    openEmpty,
    async open(t, database) {
      const db = await openEmpty(t)
      await migrate(db, await readMigrations(database))
      return db
    },
  }
}

async function newSqlitePlace(): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'annals-sqlite-'))
  return {
    target: { engine: 'sqlite', path: join(directory, 'test.db') },
    remove: async () => rmSync(directory, { recursive: true, force: true }),
  }
}

async function newPostgresPlace(connection: PostgresConnection): Promise<Place> {
  const schema = `annals_test_${randomUUID().replaceAll('-', '')}`
  return {
    target: { engine: 'postgres', connection, schema },
    async remove() {
      const client = new pg.Client(connection)
      await client.connect()
      await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`)
      await client.end()
    },
  }
}

async function connectPostgres(): Promise<PostgresConnection> {
  const url = process.env.DATABASE_URL
  return url === undefined ? joinSharedPostgres() : { connectionString: url }
}
