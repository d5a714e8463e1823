import type { PostgresConfig } from '../config/node-config.ts'
import type { DeployRequest } from './request.ts'

/** The last release line whose image keeps its data under /var/lib/postgresql/data. */
export const POSTGRES_IMAGE = 'postgres:17'
/** The user `postgres` of that image. */
export const POSTGRES_USER = 999
export const POSTGRES_PORT = 5432
export const POSTGRES_DIRECTORY = '/var/lib/postgresql/data'
export const PASSWORD_ENTRY = 'postgresPassword'

/** What the reference example reserves; a history on TestNet fits for a while. */
const VOLUME_SIZE_DEFAULT = '50Gi'
/** The data directory holds a lock and a key when the databases are elsewhere. */
const SMALL_VOLUME_SIZE = '1Gi'

export type Volume = {
  readonly name: string
  readonly size: string
  readonly storageClass: string | undefined
}

/** A PostgreSQL server that is deployed beside the node. */
export type DatabaseServer = {
  /** The host name that the node connects to, and the name of the service. */
  readonly host: string
  readonly port: number
  readonly user: string
  readonly secretName: string
  readonly serverArguments: readonly string[]
  readonly volume: Volume
}

/** A host that a service of the same namespace, or of the same compose file, can have. */
const SERVICE_NAME = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/

/** One server for each host, when the database values ask for one. */
export function databaseServers(request: DeployRequest): DatabaseServer[] {
  if (!asksForServer(request)) return []
  const { settings, config } = request
  const { maxConnections, maxWalSize, extraArgs } = config.deployment.databaseServer
  const servers = new Map<string, DatabaseServer>()
  for (const { host, port, user, secretName } of postgresApps(request)) {
    if (!canBeService(host)) continue
    servers.set(host, {
      host,
      port,
      user,
      secretName: settings.value<string>('postgres', 'persistence.secretName') ?? secretName,
      serverArguments: [
        ...['-c', `max_connections=${maxConnections}`],
        ...['-c', `max_wal_size=${maxWalSize}`],
        ...extraArgs,
      ],
      volume: {
        name: config.deployment.volume.claimName,
        size: config.deployment.volume.size ?? VOLUME_SIZE_DEFAULT,
        storageClass: config.deployment.volume.storageClass,
      },
    })
  }
  return [...servers.values()]
}

/** The volume of the node itself: the database's own when that is SQLite. */
export function nodeVolume({ config, settings }: DeployRequest): Volume {
  const { databases, deployment } = config
  const isSqlite = [databases.app, databases.participant].some(({ engine }) => engine === 'sqlite')
  if (!isSqlite) return { name: 'data', size: SMALL_VOLUME_SIZE, storageClass: undefined }
  const isNamed = (['postgres', 'participant', 'validator'] as const).some(
    (file) => settings.get(file, 'db.pvcTemplateName') !== undefined,
  )
  return {
    name: isNamed ? deployment.volume.claimName : 'data',
    size: deployment.volume.size ?? VOLUME_SIZE_DEFAULT,
    storageClass: deployment.volume.storageClass,
  }
}

type PostgresApp = PostgresConfig & {
  readonly app: 'validator' | 'participant'
  readonly secretName: string
}

/** The apps that use PostgreSQL, and the secrets with their passwords. */
export function postgresApps({ config, settings }: DeployRequest): PostgresApp[] {
  const apps = [
    { app: 'validator', database: config.databases.app },
    { app: 'participant', database: config.databases.participant },
  ] as const
  return apps.flatMap(({ app, database }) => {
    if (database.engine !== 'postgres') return []
    const secretName = settings.value<string>(app, 'persistence.secretName') ?? 'postgres-secrets'
    return [{ ...database, app, secretName }]
  })
}

/** What the operator should know about the databases before applying the output. */
export function databaseNotes(request: DeployRequest): string[] {
  const apps = postgresApps(request)
  const asks = asksForServer(request)
  const hosts = [...new Set(apps.map(({ host }) => host))]
  const notes: string[] = []
  if (asks && apps.length === 0) {
    notes.push(
      'No database server is deployed, because neither app uses PostgreSQL; the size and class of the volume go to the volume of the node.',
    )
  }
  for (const host of hosts) {
    if (/^(localhost|127\.|\[?::1)/.test(host)) {
      notes.push(
        `The database host is ${host}, which is the container itself there. Name the host by which containers reach the database.`,
      )
    } else if (asks && !canBeService(host)) {
      notes.push(
        `No database server is deployed for the host ${host}, because it is not the name of a service.`,
      )
    } else if (!asks) {
      notes.push(
        `The database server ${host} is not deployed, because no database values describe it (--postgres-values).`,
      )
    }
  }
  const demandsTls = apps.some(
    ({ host, tls }) =>
      canBeService(host) && tls !== undefined && !/^(allow|prefer)$/.test(tls.mode),
  )
  if (asks && demandsTls) {
    notes.push(
      'The configuration demands TLS of the database, and the server that is deployed here has no certificate.',
    )
  }
  return notes
}

function canBeService(host: string): boolean {
  return SERVICE_NAME.test(host) && host !== 'localhost'
}

function asksForServer({ settings }: DeployRequest): boolean {
  for (const { file, path } of settings.all()) {
    const isStorage = path.startsWith('db.') && (file === 'validator' || file === 'participant')
    if (file === 'postgres' || isStorage) return true
  }
  return false
}
