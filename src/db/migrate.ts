import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { Db } from './db.ts'
import { splitStatements } from './sql-text.ts'

export type DatabaseName = 'app' | 'participant'

export type Migration = { number: number; name: string; text: string }

/** A schema that this version cannot work with; the message is for the operator. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError'
}

type Applied = { number: number; name: string; checksum: string }

/**
 * The words that differ between the engines. `{text}` compares byte by byte on both, whatever the
 * collation of the PostgreSQL database; `{integer}` has 64 bits on both, and as the primary key is
 * SQLite's own row number.
 */
const words: Record<Db['engine'], Record<string, string>> = {
  sqlite: { blob: 'blob', text: 'text', integer: 'integer', without_rowid: 'without rowid' },
  postgres: { blob: 'bytea', text: 'text collate "C"', integer: 'bigint', without_rowid: '' },
}

// Any number will do that no other program uses for its own lock in the same database.
const ADVISORY_LOCK_CLASS = 0x616e6e61

/** The migrations of a database: the files `migrations/<database>/NNNN-name.sql` beside this one. */
export async function readMigrations(database: DatabaseName): Promise<Migration[]> {
  const folder = new URL(`./migrations/${database}/`, import.meta.url)
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file, index) => {
      const match = /^(\d{4})-(.+)\.sql$/.exec(file)
      assert(match !== null, `${database}/${file} is named like 0001-name.sql`)
      assert.equal(Number(match[1]), index + 1, `${database}/${file} follows the one before it`)
      const text = await readFile(new URL(file, folder), 'utf8')
      return { number: index + 1, name: file.slice(0, -'.sql'.length), text }
    }),
  )
}

/**
 * Applies what is missing, in order, each migration in a transaction of its own that also records it.
 * The transactions exclude each other across processes, and each looks again at what is recorded, so
 * that any number of nodes may start at the same time.
 */
export async function migrate(db: Db, migrations: Migration[]): Promise<void> {
  let applied = await db.transaction(async (tx) => {
    await lock(tx)
    await tx.execute(
      `create table if not exists schema_migrations (number integer primary key,
        name text not null, checksum text not null, applied_at text not null)`,
    )
    return readApplied(tx)
  })
  check(applied, migrations)
  while (applied.length < migrations.length) {
    applied = await db.transaction(async (tx) => {
      await lock(tx)
      const current = await readApplied(tx)
      check(current, migrations)
      const next = migrations[current.length]
      if (next === undefined) return current
      return [...current, await apply(tx, next)]
    })
  }
}

/** Why the schema is not the one that these migrations make; undefined when it is. One small query. */
export async function findSchemaFault(
  db: Db,
  migrations: Migration[],
): Promise<string | undefined> {
  const applied = await readApplied(db)
  try {
    check(applied, migrations)
  } catch (error) {
    return (error as Error).message
  }
  if (applied.length >= migrations.length) return undefined
  return `The schema of the database is older than this version (${applied.length} of ${migrations.length} migrations are applied). Restart this node to bring it up to date.`
}

/** A statement that begins with `{sqlite}` or `{postgres}` is for that engine alone. */
export function statementsFor(engine: Db['engine'], text: string): string[] {
  return splitStatements(text).flatMap((statement) => {
    const only = /^((?:\s|--[^\n]*\n)*)\{(sqlite|postgres)\}/.exec(statement)
    if (only !== null && only[2] !== engine) return []
    const own = only === null ? statement : statement.slice(only[0].length)
    return own.replaceAll(/\{(\w+)\}/g, (_, word: string) => {
      const replacement = words[engine][word]
      assert(replacement !== undefined, `{${word}} is a word of migrations`)
      return replacement
    })
  })
}

// A write transaction of SQLite is exclusive by itself.
async function lock(tx: Db): Promise<void> {
  if (tx.engine === 'sqlite') return
  // Whoever waits here waits for another node's whole migration.
  await tx.execute('set local statement_timeout = 0')
  await tx.query('select pg_advisory_xact_lock(?, hashtext(current_schema()))', [
    ADVISORY_LOCK_CLASS,
  ])
}

async function readApplied(tx: Db): Promise<Applied[]> {
  return tx.query<Applied>('select number, name, checksum from schema_migrations order by number')
}

async function apply(tx: Db, migration: Migration): Promise<Applied> {
  for (const statement of statementsFor(tx.engine, migration.text)) await tx.execute(statement)
  const { number, name } = migration
  const checksum = checksumOf(migration)
  await tx.execute(
    'insert into schema_migrations (number, name, checksum, applied_at) values (?, ?, ?, ?)',
    [number, name, checksum, new Date().toISOString()],
  )
  return { number, name, checksum }
}

function check(applied: Applied[], migrations: Migration[]): void {
  for (const [index, { number, name, checksum }] of applied.entries()) {
    assert.equal(number, index + 1, 'migrations are recorded without a gap')
    const known = migrations[index]
    if (known === undefined) {
      throw new SchemaError(
        `The database has the schema of a newer version (migration ${applied.at(-1)?.name}; this version knows ${migrations.length}). Start that version or a later one, or restore a backup made before the upgrade.`,
      )
    }
    if (checksumOf(known) !== checksum) {
      throw new SchemaError(
        `Migration ${name} was applied to the database with another text than this version has. Start the version that applied it, or restore the file; a schema is changed by adding a migration.`,
      )
    }
  }
}

// A checkout may have changed the ends of the lines.
function checksumOf({ text }: Migration): string {
  return createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex')
}
