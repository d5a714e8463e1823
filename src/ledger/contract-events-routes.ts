import type { FastifyInstance } from 'fastify'
import { type Authentication, callerOf, guard } from '../users/caller.ts'
import { invalidArgument } from '../users/errors.ts'
import { bodyOf, objectField } from '../users/request-fields.ts'
import { activeContractJson, transactionJson } from './api-json.ts'
import { contractEventsNotFound } from './errors.ts'
import { type EventFormat, readEventFormat, requireReader } from './event-format.ts'
import type { Ledger } from './ledger.ts'
import { contractIdField } from './request-ids.ts'

type Shown = {
  contractEntry: { JsActiveContract: { createdEvent: object; synchronizerId: string } }
}
type Exercised = Record<(typeof ARCHIVED_FIELDS)[number], unknown> & { consuming: boolean }
type Transaction = { synchronizerId: string; events: { ExercisedEvent?: Exercised }[] }

/** Of an exercise that consumed a contract, what its archival tells. */
const ARCHIVED_FIELDS = [
  'offset',
  'nodeId',
  'contractId',
  'templateId',
  'witnessParties',
  'packageName',
  'implementedInterfaces',
] as const

/** /v2/events/events-by-contract-id: how a contract came and went. Wallets ask it of what was spent. */
export const contractEventsRoutes = async (
  app: FastifyInstance,
  { ledger, authentication }: { ledger: Ledger; authentication: Authentication },
): Promise<void> => {
  app.post('/v2/events/events-by-contract-id', guard(authentication), async (request) => {
    const body = bodyOf(request)
    const stated = objectField(body, 'eventFormat')
    if (stated === undefined) throw invalidArgument('eventFormat is missing')
    const format = readEventFormat(ledger, stated)
    requireReader(callerOf(request), format)
    const contractId = contractIdField(body)
    const contract = await ledger.contract(contractId)
    const shown = contract && (activeContractJson(contract, format) as Shown | undefined)
    if (contract === undefined || shown === undefined) throw contractEventsNotFound(contractId)
    const { createdEvent, synchronizerId } = shown.contractEntry.JsActiveContract
    const created = { createdEvent, synchronizerId }
    const { archivedOffset } = contract
    if (archivedOffset === undefined) return { created }
    return { created, archived: await archivalOf(ledger, { contractId, archivedOffset, format }) }
  })
}

/** Undefined when the update that archived the contract is pruned. */
const archivalOf = async (
  ledger: Ledger,
  of: { contractId: string; archivedOffset: bigint; format: EventFormat },
): Promise<object | undefined> => {
  const [update] = await ledger.updatesAfter(of.archivedOffset - 1n, 1)
  if (update?.offset !== of.archivedOffset) return undefined
  const wish = { format: of.format, shape: 'effects' as const }
  const transaction = (await transactionJson(ledger, update, wish)) as Transaction | undefined
  const exercised = transaction?.events
    .map(({ ExercisedEvent }) => ExercisedEvent)
    .find((event) => event?.consuming && event.contractId === of.contractId)
  if (transaction === undefined || exercised === undefined) return undefined
  const archivedEvent = Object.fromEntries(ARCHIVED_FIELDS.map((key) => [key, exercised[key]]))
  return { archivedEvent, synchronizerId: transaction.synchronizerId }
}
