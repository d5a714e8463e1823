import { readFileSync } from 'node:fs'
import type { DatabaseConfig, DatabaseTlsConfig, PostgresConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { type DatabaseName, migrate, readMigrations } from './db/migrate.ts'
import { type DbTarget, openDb } from './db/open.ts'
import type { PostgresConnection } from './db/postgres-client.ts'

export type OpenDatabase = { db: Db; target: DbTarget }

/** Opens a configured database and brings its schema up to date. */
export async function openDatabase(
  config: DatabaseConfig,
  name: DatabaseName,
): Promise<OpenDatabase> {
  const opened = await openFirst(targetsOf(config))
  try {
    await migrate(opened.db, await readMigrations(name))
    return opened
  } catch (error) {
    await opened.db.close()
    throw error
  }
}

async function openFirst([target, ...others]: [DbTarget, ...DbTarget[]]): Promise<OpenDatabase> {
  try {
    return { db: await openDb(target), target }
  } catch (error) {
    const [next, ...rest] = others
    if (next === undefined || !/ssl/i.test((error as Error).message)) throw error
    return openFirst([next, ...rest])
  }
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
