import Fastify, { type FastifyInstance } from 'fastify'
import type { Db } from '../../src/db/db.ts'
import { installLedgerErrors, ledgerServerOptions } from '../../src/http/ledger-error.ts'
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
    ...ledgerServerOptions,
    ...(onLog && { logger: { level: 'debug', stream: { write: onLog } } }),
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  installLedgerErrors(app)
  const node = { participantId: PARTICIPANT_ID, synchronizerId: SYNCHRONIZER_ID }
  await app.register(usersRoutes, { db, authentication })
  await app.register(idpsRoutes, { db, authentication })
  await app.register(partiesRoutes, { db, authentication, ...node })
  await app.register(auditRoutes, { db, authentication })
  await app.register(nodeRoutes, { authentication, ...node })
  await app.ready()
  return app
}
