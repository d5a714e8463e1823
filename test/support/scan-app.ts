import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import type { History } from '../../src/history/history.ts'
import { methodNotAllowed, plainErrors } from '../../src/http/plain-error.ts'
import { createServer, registerRoutes } from '../../src/http/server.ts'
import { type ScanOptions, scanRoutes } from '../../src/scan/routes.ts'
import type { Cleanup } from './engines.ts'

/** The scan API of a history without a port, to be asked with `inject`. */
export async function createScanApp(
  t: Cleanup,
  history: History,
  options: Partial<ScanOptions> = {},
): Promise<FastifyInstance> {
  const app = createServer({
    logger: pino({ level: 'silent' }),
    errors: plainErrors,
  })
  const scan: ScanOptions = {
    history,
    pageSizeMax: 2_147_483_647,
    compressedCacheBytes: 1_000_000,
    softwareVersion: 'test',
    listScans: () => [],
    ...options,
  }
  await registerRoutes(app, {
    prefix: '/api/scan',
    routes: (scope) => scanRoutes(scope, scan),
    methodNotAllowed,
  })
  t.after(() => app.close())
  return app
}
