import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { DatabaseConfig, DatabaseTlsConfig, PostgresConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { DatabaseUnavailable, SqlError } from './db/db-error.ts'
import { type DatabaseName, migrate, readMigrations } from './db/migrate.ts'
import { type DbTarget, openDb } from './db/open.ts'
import type { PostgresConnection } from './db/postgres-client.ts'

export type OpenDatabase = { db: Db; target: DbTarget }

/** A database that cannot be used as configured; the message is for the operator. */
export class DatabaseSetupError extends Error {
  override name = 'DatabaseSetupError'
}

/** Without fail-fast a start waits so long for a database that is away; an orchestrator gives up sooner. */
const WAIT_MS_MAX = 10 * 60_000
const RETRY_MS = 1_000

/** Opens a configured database and brings its schema up to date. */
export async function openDatabase(
  config: DatabaseConfig,
  name: DatabaseName,
  onWait: (reason: string) => void = () => {},
): Promise<OpenDatabase> {
  const opened = await openPatiently(config, name, onWait)
  try {
    await migrate(opened.db, await readMigrations(name))
    return opened
  } catch (error) {
    await opened.db.close()
    throw error
  }
}

async function openPatiently(
  config: DatabaseConfig,
  name: DatabaseName,
  onWait: (reason: string) => void,
): Promise<OpenDatabase> {
  const isPatient = config.engine === 'postgres' && !config.failFast
  for (const giveUpAt = performance.now() + WAIT_MS_MAX; ; await delay(RETRY_MS)) {
    try {
      return await openFirst(targetsOf(config))
    } catch (error) {
      const isAway = error instanceof DatabaseUnavailable
      if (!isAway || !isPatient || performance.now() > giveUpAt) throw explain(error, config, name)
      onWait(error.message)
    }
  }
}

async function openFirst([target, ...others]: [DbTarget, ...DbTarget[]]): Promise<OpenDatabase> {
  try {
    return { db: await openDb(target), target }
  } catch (error) {
    const [next, ...rest] = others
    if (next === undefined || !/ssl|encryption/i.test((error as Error).message)) throw error
    return openFirst([next, ...rest])
  }
}

function explain(error: unknown, config: DatabaseConfig, name: DatabaseName): unknown {
  if (config.engine === 'sqlite') return error
  const { host, port, user, database, schema } = config
  const place = `The ${name} database ${database} on ${host}:${port}`
  if (error instanceof DatabaseUnavailable) {
    return new DatabaseSetupError(
      `${place} cannot be reached: ${error.message} Start it, or correct persistence.host and persistence.port.`,
    )
  }
  const code = error instanceof SqlError ? error.code : undefined
  if (code === '3D000') {
    return new DatabaseSetupError(
      `${place} does not exist. Create it: createdb -h ${host} -p ${port} -U ${user} ${database}`,
    )
  }
  if (code === '28P01' || code === '28000') {
    return new DatabaseSetupError(
      `${place} refuses the user ${user}. Check the password in the secret (postgresPassword) and the user's rights.`,
    )
  }
  if (code === '42501') {
    return new DatabaseSetupError(
      `${place} does not let the user ${user} create the schema ${schema}. Grant it: grant create on database ${database} to ${user}`,
    )
  }
  return error
}

/** Ways to connect, in order: `prefer` and `allow` take either kind of connection. */
function targetsOf(config: DatabaseConfig): [DbTarget, ...DbTarget[]] {
  if (config.engine === 'sqlite') return [{ engine: 'sqlite', path: config.file }]
  const plain = postgresTarget(config, undefined)
  if (config.tls === undefined) return [plain]
  const encrypted = postgresTarget(config, sslOf(config.tls))
  if (config.tls.mode === 'prefer') return [encrypted, plain]
  return config.tls.mode === 'allow' ? [plain, encrypted] : [encrypted]
}

function postgresTarget(config: PostgresConfig, ssl: PostgresConnection['ssl']): DbTarget {
  const { host, port, user, database, schema } = config
  const connection: PostgresConnection = { host, port, user, database }
  if (config.password !== undefined) connection.password = config.password.reveal()
  if (ssl !== undefined) connection.ssl = ssl
  return { engine: 'postgres', connection, schema, poolMax: config.connectionsMax }
}

/** What libpq calls sslmode: how far the server must prove who it is. */
function sslOf(tls: DatabaseTlsConfig): NonNullable<PostgresConnection['ssl']> {
  return {
    rejectUnauthorized: tls.mode === 'verify-ca' || tls.mode === 'verify-full',
    ...(tls.mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
    ...(tls.rootCertFile === undefined ? {} : { ca: readFileSync(tls.rootCertFile, 'utf8') }),
    ...(tls.certFile === undefined ? {} : { cert: readFileSync(tls.certFile, 'utf8') }),
    ...(tls.keyFile === undefined ? {} : readKey(tls.keyFile)),
  }
}

/** Drivers of the deployed network want the key as PKCS#8 DER or PKCS#12; PEM is taken too. */
function readKey(path: string): { key: string } | { pfx: Buffer } {
  const bytes = readFileSync(path)
  if (path.endsWith('.p12') || path.endsWith('.pfx')) return { pfx: bytes }
  const text = bytes.toString('latin1')
  if (text.includes('-----BEGIN')) return { key: text }
  const base64 = bytes.toString('base64').replaceAll(/.{64}(?!$)/g, '$&\n')
  return { key: `-----BEGIN PRIVATE KEY-----\n${base64}\n-----END PRIVATE KEY-----\n` }
}
