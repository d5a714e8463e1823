import type { FastifyInstance } from 'fastify'
import { PlainError } from '../http/plain-error.ts'
import { type Health, printFailures } from './checks.ts'

export type AppStatus = {
  id: string
  version: string
  /** When this version was made, ISO-8601. */
  commitTime: string
  startedAt: number
  ports: () => Record<string, number>
}

/** /readyz and /livez for the apps that need no token: plain text, or `{error}` when not ready. */
export async function probeRoutes(
  app: FastifyInstance,
  { health }: { health: Health },
): Promise<void> {
  app.get('/livez', async (_request, reply) => reply.type('text/plain').send('The process runs.\n'))
  app.get('/readyz', async (_request, reply) => {
    const { ready, failures } = health.verdict()
    if (ready) return reply.type('text/plain').send(readyText(health.notices()))
    throw new PlainError(503, `The node is not ready. ${printFailures(failures)}`)
  })
}

/** Probes look at the status; people see what else there is to know. */
function readyText(notices: readonly string[]): string {
  return ['The node is ready.', ...notices.map((notice) => `Warning: ${notice}`), ''].join('\n')
}

/** /version and /status as the apps of the deployed network have them. */
export async function statusRoutes(
  app: FastifyInstance,
  options: { health: Health; status: AppStatus },
): Promise<void> {
  const { health, status } = options
  app.get('/version', async () => ({ version: status.version, commit_ts: status.commitTime }))
  app.get('/status', async () => ({
    success: {
      id: status.id,
      uptime: `PT${((Date.now() - status.startedAt) / 1000).toFixed(3)}S`,
      ports: status.ports(),
      active: health.verdict().ready,
      extra: {},
    },
  }))
}
