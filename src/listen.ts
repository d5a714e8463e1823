import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Health } from './health/checks.ts'
import { type AppStatus, probeRoutes, statusRoutes } from './health/routes.ts'
import { methodNotAllowed, plainErrorHandler, plainNotFoundHandler } from './http/plain-error.ts'
import { closeServer, createServer, listen, registerRoutes } from './http/server.ts'
import type { Registry } from './metrics/registry.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { type ScanOptions, scanRoutes } from './scan/routes.ts'

export const PORT_NAMES = ['ledger', 'scan', 'validator', 'metrics'] as const
export type PortName = (typeof PORT_NAMES)[number]
export type Ports = Record<PortName, number>

export type ListenOptions = {
  log: Logger
  host: string
  ports: Ports
  health: Health
  registry: Registry
  status: Omit<AppStatus, 'id' | 'ports'>
  scan: ScanOptions
}

export type Listening = { urls: Record<PortName, string>; close(): Promise<void> }

/** Which routes stand on which port. */
export async function openPorts(options: ListenOptions): Promise<Listening> {
  const { log, host, ports, health, registry } = options
  const bound: Partial<Ports> = {}
  const statusOf = (id: string): AppStatus => ({
    ...options.status,
    id,
    ports: () => ({ ...bound }),
  })
  const servers: Record<PortName, FastifyInstance> = {
    ledger: createPlainServer(log),
    scan: createPlainServer(log),
    validator: createPlainServer(log),
    metrics: createPlainServer(log),
  }
  const probes = (scope: FastifyInstance) => probeRoutes(scope, { health })
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
  await addRoutes(servers.validator, '', probes)
  await addRoutes(servers.validator, '/api/validator', async (scope) => {
    await probes(scope)
    await statusRoutes(scope, { health, status: statusOf('validator') })
  })
  await addRoutes(servers.ledger, '', probes)
  await addRoutes(servers.metrics, '', async (scope) => {
    await scope.register(metricsRoutes(registry))
  })

  const urls = {} as Record<PortName, string>
  const close = async () => {
    await Promise.all(Object.values(servers).map(closeServer))
  }
  try {
    for (const name of PORT_NAMES) {
      urls[name] = await listen(servers[name], { host, port: ports[name] })
      bound[name] = Number(new URL(urls[name]).port)
    }
  } catch (error) {
    await close()
    throw explainListenError(
      error,
      PORT_NAMES.find((name) => urls[name] === undefined) as PortName,
      ports,
    )
  }
  return { urls, close }
}

function createPlainServer(log: Logger): FastifyInstance {
  return createServer({
    logger: log.child({}),
    errorHandler: plainErrorHandler,
    notFoundHandler: plainNotFoundHandler,
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
  return error
}
