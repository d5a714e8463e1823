import type { FastifyInstance, FastifyRequest } from 'fastify'
import { badRequest, PlainError } from '../http/plain-error.ts'
import type { AutomationState } from './automation-state.ts'
import { requireWalletAdmin, type WalletDoor } from './wallet-door.ts'

/** /v0/admin/automations, our own: what automations did and will do; `dry_run=true` also what they would do now. */
export async function automationsRoutes(app: FastifyInstance, door: WalletDoor): Promise<void> {
  app.get('/v0/admin/automations', async (request) => {
    const entered = await door.enter(request)
    requireWalletAdmin(entered)
    const isDryRun = readDryRun(request)
    const running = entered.wallet.automations
    if (running === undefined) throw notRunning()
    const sentences = isDryRun ? await running.dryRun() : undefined
    const states = sentences === undefined ? running.states() : [...sentences.keys()]
    return {
      automations: states.map((state) => ({
        ...stateJson(state),
        ...(sentences === undefined ? {} : { dry_run: sentences.get(state) }),
      })),
      warnings: running.warnings(),
    }
  })
}

function stateJson({ name, party, state, why, lastRun, nextRun, ...rest }: AutomationState) {
  const { lastOutcome, lastAct, failuresInARow } = rest
  return {
    name,
    party,
    state,
    why,
    last_run: lastRun ?? null,
    next_run: nextRun ?? null,
    last_outcome:
      lastOutcome === undefined
        ? null
        : { kind: lastOutcome.kind, at: lastOutcome.at, sentence: lastOutcome.sentence },
    last_act:
      lastAct === undefined
        ? null
        : { at: lastAct.at, what: lastAct.what, update_id: lastAct.updateId },
    failures_in_a_row: failuresInARow,
  }
}

function notRunning(): PlainError {
  return new PlainError(
    503,
    'This node leaves automations and pruning to the node that shares its databases and was there first. Ask that one; when it is gone for good, restart this one.',
  )
}

function readDryRun(request: FastifyRequest): boolean {
  const { dry_run: value = 'false' } = request.query as Record<string, unknown>
  if (value === 'true' || value === 'false') return value === 'true'
  throw badRequest('dry_run must be true or false.')
}
