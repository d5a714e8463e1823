import type { Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { JSONWebKeySet } from 'jose'
import type { SimulatedClock } from './base/clock.ts'
import type { Logs } from './base/log.ts'
import type { Db } from './db/db.ts'
import type { Health } from './health/checks.ts'
import { type AppStatus, probeRoutes, statusRoutes } from './health/routes.ts'
import {
  addTraceIds,
  LEDGER_BODY_BYTES_MAX,
  ledgerErrors,
  ledgerMethodNotAllowed,
} from './http/ledger-error.ts'
import { methodNotAllowed, plainErrors } from './http/plain-error.ts'
import { measureRequests, type OperationIds, operationIds } from './http/request-metrics.ts'
import { createServer, listen, registerRoutes } from './http/server.ts'
import {
  type Certificates,
  followCertificates,
  readTlsOptions,
  refuseUntrustedClients,
  type ServerTls,
} from './http/tls.ts'
import { commandsRoutes } from './ledger/commands-routes.ts'
import type { Ledger } from './ledger/ledger.ts'
import { ledgerOffRoutes } from './ledger/off-routes.ts'
import { readingRoutes } from './ledger/reading-routes.ts'
import { timeRoutes } from './ledger/time-routes.ts'
import { type AppName, appLabels } from './metrics/app-labels.ts'
import type { Registry } from './metrics/registry.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { mirrorPage, mirrorRoutes } from './mirror/routes.ts'
import type { MirrorStatus } from './mirror/status.ts'
import { sponsorOpenApi } from './onboarding/openapi.ts'
import { type SponsorRoutesOptions, sponsorRoutes } from './onboarding/sponsor-routes.ts'
import { withScanProxy } from './proxy/openapi.ts'
import { type ProxyRoutesOptions, proxyRoutes } from './proxy/proxy-routes.ts'
import { scanOpenApi } from './scan/openapi.ts'
import { type ScanOptions, scanRoutes } from './scan/routes.ts'
import { auditRoutes } from './users/audit-routes.ts'
import type { Authentication } from './users/caller.ts'
import { idpsRoutes } from './users/idps-routes.ts'
import { nodeRoutes } from './users/node-routes.ts'
import { ledgerOpenApi } from './users/openapi.ts'
import { partiesRoutes } from './users/parties-routes.ts'
import { readyRoutes } from './users/ready-routes.ts'
import { usersRoutes } from './users/users-routes.ts'
import { walletAdminRoutes } from './wallet/admin-routes.ts'
import { automationsRoutes } from './wallet/automations-routes.ts'
import { walletOpenApi } from './wallet/openapi.ts'
import { type WalletDoor, walletErrorHandler } from './wallet/wallet-door.ts'
import { walletRoutes } from './wallet/wallet-routes.ts'

// Which routes stand on which port, under which error shape.

export type PortName = 'ledger' | 'scan' | 'validator' | 'metrics'
export type Ports = Record<PortName, number>

/** What every port needs. */
export type Surroundings = {
  logs: Logs
  health: Health
  registry: Registry
  statusOf(id: string): AppStatus
}

/** What the ledger API stands on. */
export type LedgerApi = {
  db: Db
  authentication: Authentication
  participantId: string
  synchronizerId: string
  /** The node's own keys, when it signs tokens itself. */
  keySet: JSONWebKeySet | undefined
  embedded: EmbeddedLedger | undefined
  /** Why there is no embedded ledger. */
  ledgerOff: string | undefined
}

/** The embedded ledger, and its clock when a test drives it. */
export type EmbeddedLedger = { ledger: Ledger; simulated: SimulatedClock | undefined }

/** What stands on the validator's port besides, as soon as the node has opened it. */
export type ValidatorApi = {
  /** On a node with a network of its own, which others may join. */
  sponsor?: SponsorRoutesOptions | undefined
  /** Reads of the network for apps. */
  proxy?: ProxyRoutesOptions
  /** The wallets of this node. */
  wallet?: WalletDoor
}

/** The validator's API, and the health of every app. */
export async function buildValidatorApp(
  around: Surroundings,
  { sponsor, proxy, wallet }: ValidatorApi = {},
): Promise<FastifyInstance> {
  const { health, registry } = around
  const app = createPlainServer(around, 'validator')
  const { version } = around.statusOf('validator')
  const document = withScanProxy(walletOpenApi(version))
  const operations = new Map([
    ...operationIds(document, VALIDATOR_PREFIX),
    ...operationIds(sponsorOpenApi(version), SPONSOR_PREFIX),
  ])
  measureApp(app, around, { app: 'validator', service: 'validator', operations })
  await addRoutes(app, '', async (scope) => {
    await probeRoutes(scope, { health })
    await scope.register(metricsRoutes(registry))
  })
  await addRoutes(app, VALIDATOR_PREFIX, async (scope) => {
    await probeRoutes(scope, { health })
    await statusRoutes(scope, { health, status: around.statusOf('validator') })
    if (proxy !== undefined) await proxyRoutes(scope, proxy)
    if (wallet !== undefined) {
      await scope.register(async (own) => {
        own.setErrorHandler(walletErrorHandler)
        await walletRoutes(own, wallet)
        await walletAdminRoutes(own, wallet)
        own.get('/openapi.json', async () => document)
        await automationsRoutes(own, wallet)
      })
    }
  })
  if (sponsor !== undefined) {
    await addRoutes(app, SPONSOR_PREFIX, (scope) => sponsorRoutes(scope, sponsor))
  }
  return app
}

export async function buildMetricsApp(around: Surroundings): Promise<FastifyInstance> {
  const app = createPlainServer(around, 'metrics')
  await addRoutes(app, '', async (scope) => {
    await scope.register(metricsRoutes(around.registry))
  })
  return app
}

export async function buildScanApp(
  around: Surroundings,
  scan: ScanOptions & { mirror?: { status(): Promise<MirrorStatus> } | undefined },
): Promise<FastifyInstance> {
  const { health } = around
  const app = createPlainServer(around, 'scan')
  const operations = operationIds(scanOpenApi(scan.softwareVersion), SCAN_PREFIX)
  measureApp(app, around, { app: 'scan', service: 'scan', operations })
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(ANY_ORIGIN)
    done()
  })
  const routes = async (scope: FastifyInstance) => {
    await scanRoutes(scope, scan)
    if (scan.mirror !== undefined) await mirrorRoutes(scope, scan.mirror)
    await probeRoutes(scope, { health })
    await statusRoutes(scope, { health, status: around.statusOf('scan') })
  }
  await addRoutes(app, SCAN_PREFIX, routes, PREFLIGHT)
  const { mirror } = scan
  if (mirror !== undefined) await addRoutes(app, '', (scope) => mirrorPage(scope, mirror))
  return app
}

/** Users, identity providers and parties. The certificates are followed where there are some. */
export async function buildLedgerApp(
  around: Surroundings,
  ledger: LedgerApi,
  tls: ServerTls | undefined,
): Promise<{ app: FastifyInstance; certificates: Certificates | undefined }> {
  const { health, registry } = around
  const log = around.logs.named('annals.ledger')
  const app = createServer({
    logger: log,
    bodyBytesMax: LEDGER_BODY_BYTES_MAX,
    errors: ledgerErrors,
    isSlashTolerant: true,
    ...(tls === undefined ? {} : { tls: readTlsOptions(tls) }),
  })
  const operations = operationIds(ledgerOpenApi(''))
  measureApp(app, around, { app: 'participant', service: 'json_api', operations })
  addTraceIds(app)
  const { db, authentication, participantId, synchronizerId, keySet, embedded, ledgerOff } = ledger
  const secondSynchronizerId = embedded?.ledger.synchronizers[1]
  const routes = async (scope: FastifyInstance) => {
    await usersRoutes(scope, { db, authentication })
    await idpsRoutes(scope, { db, authentication })
    await partiesRoutes(scope, { db, authentication, participantId, synchronizerId })
    await auditRoutes(scope, { db, authentication })
    await nodeRoutes(scope, {
      authentication,
      synchronizerId,
      ...(secondSynchronizerId === undefined ? {} : { secondSynchronizerId }),
      ...(keySet === undefined ? {} : { keySet }),
    })
    if (ledgerOff !== undefined) {
      await ledgerOffRoutes(scope, { authentication, reason: ledgerOff })
    }
    if (embedded !== undefined) {
      await commandsRoutes(scope, { ledger: embedded.ledger, authentication })
      await readingRoutes(scope, { ledger: embedded.ledger, authentication })
      const { simulated: clock } = embedded
      if (clock !== undefined) await timeRoutes(scope, { clock, authentication })
    }
    await readyRoutes(scope, { authentication, health })
    await scope.register(metricsRoutes(registry))
  }
  await registerRoutes(app, { routes, methodNotAllowed: ledgerMethodNotAllowed })
  if (tls === undefined) return { app, certificates: undefined }
  const server = app.server as unknown as TlsServer
  if (tls.clientAuth === 'optional') refuseUntrustedClients(server)
  const certificates = followCertificates(server, tls, log)
  return { app, certificates }
}

/** Opens the port; returns the address under which it is reached. */
export async function openPort(
  app: FastifyInstance,
  name: PortName,
  options: { bindAddress: string; ports: Ports },
): Promise<string> {
  try {
    return await listen(app, { host: options.bindAddress, port: options.ports[name] })
  } catch (error) {
    throw explainListenError(error, name, options.ports[name])
  }
}

function createPlainServer(around: Surroundings, name: PortName): FastifyInstance {
  return createServer({
    logger: around.logs.named(`annals.${name}`),
    errors: plainErrors,
  })
}

function measureApp(
  app: FastifyInstance,
  { registry }: Surroundings,
  options: { app: AppName; service: string; operations: OperationIds },
): void {
  const { service, operations } = options
  measureRequests(app, { registry: registry.with(appLabels[options.app]), service, operations })
}

function addRoutes(
  app: FastifyInstance,
  prefix: string,
  routes: (scope: FastifyInstance) => Promise<void>,
  optionsHeaders: Record<string, string> = {},
): Promise<void> {
  return registerRoutes(app, { prefix, routes, methodNotAllowed, optionsHeaders })
}

const SCAN_PREFIX = '/api/scan'
const VALIDATOR_PREFIX = '/api/validator'
const SPONSOR_PREFIX = '/api/sv'

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

function explainListenError(error: unknown, name: PortName, port: number): unknown {
  const { code } = error as NodeJS.ErrnoException
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
