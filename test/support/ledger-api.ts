import Fastify, { type FastifyInstance } from 'fastify'
import { systemClock } from '../../src/base/clock.ts'
import type { Db } from '../../src/db/db.ts'
import {
  addTraceIds,
  LEDGER_BODY_BYTES_MAX,
  ledgerErrorHandler,
  ledgerMethodNotAllowed,
  ledgerNotFoundHandler,
} from '../../src/http/ledger-error.ts'
import { registerRoutes } from '../../src/http/server.ts'
import { commandsRoutes } from '../../src/ledger/commands-routes.ts'
import { openLedger } from '../../src/ledger/ledger.ts'
import { readingRoutes } from '../../src/ledger/reading-routes.ts'
import { TEMPLATES } from '../../src/ledger/templates.ts'
import { auditRoutes } from '../../src/users/audit-routes.ts'
import type { Authentication } from '../../src/users/caller.ts'
import { idpsRoutes } from '../../src/users/idps-routes.ts'
import { nodeRoutes } from '../../src/users/node-routes.ts'
import { partiesRoutes } from '../../src/users/parties-routes.ts'
import { usersRoutes } from '../../src/users/users-routes.ts'

export const PARTICIPANT_ID = `participant::1220${'ab'.repeat(32)}`
export const SYNCHRONIZER_ID = `global-domain::1220${'cd'.repeat(32)}`

/** The ledger API on an instance of its own, as a node serves it. */
export async function buildLedgerApi(options: {
  db: Db
  authentication: Authentication
  /** Lines of the log, each a JSON object. */
  onLog?: (line: string) => void
}): Promise<FastifyInstance> {
  const { db, authentication, onLog } = options
  const app = Fastify({
    bodyLimit: LEDGER_BODY_BYTES_MAX,
    frameworkErrors: ledgerErrorHandler,
    // `/v2/idps/` is the list of providers; the longest id has 255 characters, percent-encoded.
    routerOptions: {
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      maxParamLength: 3 * 255,
    },
    ...(onLog && { logger: { level: 'debug', stream: { write: onLog } } }),
  })
  app.setErrorHandler(ledgerErrorHandler)
  app.setNotFoundHandler(ledgerNotFoundHandler)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  addTraceIds(app)
  const ledger = await openLedger({
    db,
    clock: systemClock,
    migrationId: 0n,
    synchronizerId: SYNCHRONIZER_ID,
    templates: TEMPLATES,
    deduplicationMs: 60_000,
  })
  app.addHook('onClose', () => ledger.close())
  const node = { participantId: PARTICIPANT_ID, synchronizerId: SYNCHRONIZER_ID }
  await registerRoutes(app, {
    routes: async (scope) => {
      await usersRoutes(scope, { db, authentication })
      await idpsRoutes(scope, { db, authentication })
      await partiesRoutes(scope, { db, authentication, ...node })
      await auditRoutes(scope, { db, authentication })
      await nodeRoutes(scope, { authentication, ...node })
      await commandsRoutes(scope, { ledger, authentication })
      await readingRoutes(scope, { ledger, authentication })
    },
    methodNotAllowed: ledgerMethodNotAllowed,
  })
  await app.ready()
  return app
}
