import type { Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { JSONWebKeySet } from 'jose'
import type { Logger } from 'pino'
import type { Db } from './db/db.ts'
import type { Health } from './health/checks.ts'
import { type AppStatus, probeRoutes, statusRoutes } from './health/routes.ts'
import {
  addTraceIds,
  LEDGER_BODY_BYTES_MAX,
  ledgerErrorHandler,
  ledgerMethodNotAllowed,
  ledgerNotFoundHandler,
} from './http/ledger-error.ts'
import { methodNotAllowed, plainErrorHandler, plainNotFoundHandler } from './http/plain-error.ts'
import { closeServer, createServer, listen, registerRoutes } from './http/server.ts'
import {
  type Certificates,
  followCertificates,
  readTlsOptions,
  type ServerTls,
} from './http/tls.ts'
import type { Registry } from './metrics/registry.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { type ScanOptions, scanRoutes } from './scan/routes.ts'
import { auditRoutes } from './users/audit-routes.ts'
import type { Authentication } from './users/caller.ts'
import { idpsRoutes } from './users/idps-routes.ts'
import { nodeRoutes } from './users/node-routes.ts'
import { partiesRoutes } from './users/parties-routes.ts'
import { readyRoutes } from './users/ready-routes.ts'
import { usersRoutes } from './users/users-routes.ts'

export const PORT_NAMES = ['ledger', 'scan', 'validator', 'metrics'] as const
export type PortName = (typeof PORT_NAMES)[number]
export type Ports = Record<PortName, number>

/** What the ledger API stands on. */
export type LedgerApi = {
  db: Db
  authentication: Authentication
  participantId: string
  synchronizerId: string
  /** The node's own keys, when it signs tokens itself. */
  keySet: JSONWebKeySet | undefined
}

export type ListenOptions = {
  log: Logger
  listen: { bindAddress: string; ports: Ports; ledgerTls: ServerTls | undefined }
  health: Health
  registry: Registry
  status: Omit<AppStatus, 'id' | 'ports'>
  ledger: LedgerApi
  scan: ScanOptions
}

export type Listening = {
  urls: Record<PortName, string>
  /** Reads the certificates again; false when they have not changed. */
  reloadCertificates(): boolean
  close(): Promise<void>
}

/** Which routes stand on which port, under which error shape. */
export async function openPorts(options: ListenOptions): Promise<Listening> {
  const { log, health, registry } = options
  const { bindAddress: host, ports, ledgerTls } = options.listen
  const bound: Partial<Ports> = {}
  const statusOf = (id: string): AppStatus => ({
    ...options.status,
    id,
    ports: () => ({ ...bound }),
  })
  const servers: Record<PortName, FastifyInstance> = {
    ledger: createLedgerServer(log, ledgerTls),
    scan: createPlainServer(log),
    validator: createPlainServer(log),
    metrics: createPlainServer(log),
  }
  const probes = (scope: FastifyInstance) => probeRoutes(scope, { health })
  const metrics = (scope: FastifyInstance) => scope.register(metricsRoutes(registry))

  servers.scan.addHook('onRequest', (_request, reply, done) => {
    reply.headers(ANY_ORIGIN)
    done()
  })
  await addRoutes(
    servers.scan,
    '/api/scan',
    async (scope) => {
      await scanRoutes(scope, options.scan)
      await probes(scope)
      await statusRoutes(scope, { health, status: statusOf('scan') })
    },
    PREFLIGHT,
  )
  await addRoutes(servers.validator, '', async (scope) => {
    await probes(scope)
    await metrics(scope)
  })
  await addRoutes(servers.validator, '/api/validator', async (scope) => {
    await probes(scope)
    await statusRoutes(scope, { health, status: statusOf('validator') })
  })
  await addRoutes(servers.metrics, '', async (scope) => {
    await metrics(scope)
  })
  await addLedgerRoutes(servers.ledger, options)

  const certificates: Certificates | undefined =
    ledgerTls && followCertificates(servers.ledger.server as unknown as TlsServer, ledgerTls, log)
  const urls = {} as Record<PortName, string>
  const close = async () => {
    certificates?.close()
    await Promise.all(Object.values(servers).map(closeServer))
  }
  try {
    for (const name of PORT_NAMES) {
      urls[name] = await listen(servers[name], { host, port: ports[name] })
      bound[name] = Number(new URL(urls[name]).port)
    }
  } catch (error) {
    await close()
    const failed = PORT_NAMES.find((name) => urls[name] === undefined) as PortName
    throw explainListenError(error, failed, ports)
  }
  return { urls, close, reloadCertificates: () => certificates?.reload() ?? false }
}

function createPlainServer(log: Logger): FastifyInstance {
  return createServer({
    logger: log.child({}),
    errorHandler: plainErrorHandler,
    notFoundHandler: plainNotFoundHandler,
  })
}

function createLedgerServer(log: Logger, tls: ServerTls | undefined): FastifyInstance {
  return createServer({
    logger: log.child({}),
    bodyBytesMax: LEDGER_BODY_BYTES_MAX,
    errorHandler: ledgerErrorHandler,
    notFoundHandler: ledgerNotFoundHandler,
    isSlashTolerant: true,
    ...(tls === undefined ? {} : { tls: readTlsOptions(tls) }),
  })
}

async function addLedgerRoutes(
  app: FastifyInstance,
  { ledger, health, registry }: ListenOptions,
): Promise<void> {
  const { db, authentication, participantId, synchronizerId, keySet } = ledger
  addTraceIds(app)
  await registerRoutes(app, {
    routes: async (scope) => {
      await usersRoutes(scope, { db, authentication })
      await idpsRoutes(scope, { db, authentication })
      await partiesRoutes(scope, { db, authentication, participantId, synchronizerId })
      await auditRoutes(scope, { db, authentication })
      await nodeRoutes(scope, {
        authentication,
        synchronizerId,
        ...(keySet === undefined ? {} : { keySet }),
      })
      await readyRoutes(scope, { authentication, health })
      await scope.register(metricsRoutes(registry))
    },
    methodNotAllowed: ledgerMethodNotAllowed,
  })
}

function addRoutes(
  app: FastifyInstance,
  prefix: string,
  routes: (scope: FastifyInstance) => Promise<void>,
  optionsHeaders: Record<string, string> = {},
): Promise<void> {
  return registerRoutes(app, { prefix, routes, methodNotAllowed, optionsHeaders })
}

/** Explorers are pages from anywhere, and the history is public. */
const ANY_ORIGIN = { 'access-control-allow-origin': '*' }
const PREFLIGHT = {
  ...ANY_ORIGIN,
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': 'content-type',
  'access-control-max-age': '86400',
}

/** A start that cannot go on; the message is for the operator. */
export class ListenError extends Error {
  override name = 'ListenError'
}

function explainListenError(error: unknown, name: PortName, ports: Ports): unknown {
  const { code } = error as NodeJS.ErrnoException
  const port = ports[name]
  const remedy = `choose another one with --${name}-port, or 0 for a free one`
  if (code === 'EADDRINUSE') {
    return new ListenError(
      `Port ${port} (${name}) is in use by another program; stop that program, or ${remedy}.`,
    )
  }
  if (code === 'EACCES') {
    return new ListenError(
      `Port ${port} (${name}) may only be opened by an administrator; ${remedy}.`,
    )
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new ListenError(
      'annals.bindAddress is not an address of this machine; use 127.0.0.1, or 0.0.0.0 for all.',
    )
  }
  return error
}
