import type { FastifyInstance } from 'fastify'
import { type Authentication, guard } from '../users/caller.ts'
import { ledgerIsOff } from './errors.ts'

const PATHS = {
  get: ['/v2/state/ledger-end', '/v2/state/latest-pruned-offsets', '/v2/updates', '/v2/time'],
  post: [
    '/v2/commands/submit-and-wait',
    '/v2/commands/submit-and-wait-for-transaction',
    '/v2/commands/submit-and-wait-for-reassignment',
    '/v2/commands/completions',
    '/v2/state/active-contracts',
    '/v2/state/active-contracts-page',
    '/v2/updates',
    '/v2/events/events-by-contract-id',
    '/v2/updates/flats',
    '/v2/updates/update-by-id',
    '/v2/updates/update-by-offset',
    '/v2/updates/transaction-by-id',
    '/v2/updates/transaction-by-offset',
    '/v2/time',
  ],
} as const

/** The paths of the ledger on a node that has none: what is told is why, and what to do. */
export const ledgerOffRoutes = async (
  app: FastifyInstance,
  { authentication, reason }: { authentication: Authentication; reason: string },
): Promise<void> => {
  const anyone = guard(authentication)
  const refuse = async () => {
    throw ledgerIsOff(reason)
  }
  for (const path of PATHS.get) app.get(path, anyone, refuse)
  for (const path of PATHS.post) app.post(path, anyone, refuse)
}
