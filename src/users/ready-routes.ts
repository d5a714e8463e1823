import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Failure, type Health, printFailures } from '../health/checks.ts'
import { LedgerError } from '../http/ledger-error.ts'
import type { Authentication } from './caller.ts'

const READY = 'The node is ready.'
const ALIVE = 'The process runs.'

/**
 * /readyz and /livez of the ledger API. Readiness asks for a valid token when authentication is on;
 * the same question on the health port never does.
 */
export const readyRoutes = async (
  app: FastifyInstance,
  { authentication, health }: { authentication: Authentication; health: Pick<Health, 'verdict'> },
): Promise<void> => {
  // No guard: an answer about health is given whatever form the client likes.
  const onRequest = async (request: FastifyRequest) => {
    await authentication.authenticate(request)
  }
  app.get('/readyz', { onRequest }, async (request, reply) => {
    const { ready, failures } = health.verdict()
    if (!ready) throw notReady(failures)
    return wantsText(request.headers.accept)
      ? reply.type('text/plain; charset=utf-8').send(`${READY}\n`)
      : reply.type('application/json; charset=utf-8').send(JSON.stringify(READY))
  })

  app.get('/livez', async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(JSON.stringify(ALIVE)),
  )
}

const notReady = (failures: Failure[]): LedgerError =>
  new LedgerError({
    code: 'SERVICE_NOT_RUNNING',
    category: 'transient',
    cause: `The node is not ready. ${printFailures(failures)}`,
    context: Object.fromEntries(failures.map(({ name, reason }) => [`check.${name}`, reason])),
  })

/** JSON unless the client asks for text and not for JSON. */
const wantsText = (accept = ''): boolean =>
  /\btext\/(plain|\*)/i.test(accept) && !/\bapplication\/json\b/i.test(accept)
