import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  type Authentication,
  type Caller,
  callerOf,
  canActAs,
  canReadAs,
  guard,
} from '../users/caller.ts'
import { invalidArgument, invalidField, missingField, permissionDenied } from '../users/errors.ts'
import {
  bodyOf,
  type JsonObject,
  listField,
  objectField,
  textField,
} from '../users/request-fields.ts'
import { transactionJson, updateJson } from './api-json.ts'
import { formatFor, readTransactionFormat, requireReader } from './event-format.ts'
import { asObject } from './json-object.ts'
import type { Ledger } from './ledger.ts'
import { readSubmission, readSubmitters, type Submitters } from './read-commands.ts'
import type { Reassignment } from './reassign.ts'
import { contractIdField, idField, requireParty, userIdField } from './request-ids.ts'
import type { LedgerUpdate } from './updates-store.ts'

export type CommandsRoutesOptions = { ledger: Ledger; authentication: Authentication }

/** /v2/commands/submit-and-wait…: the caller waits until the transaction is durable. */
export const commandsRoutes = async (
  app: FastifyInstance,
  { ledger, authentication }: CommandsRoutesOptions,
): Promise<void> => {
  const anyone = guard(authentication)

  const submit = async (request: FastifyRequest, body: JsonObject): Promise<LedgerUpdate> => {
    const stated = readSubmitters(body)
    const submitters = { ...stated, userId: requireSubmitter(callerOf(request), stated) }
    return ledger.submit(await readSubmission(ledger, body, submitters))
  }

  app.post('/v2/commands/submit-and-wait', anyone, async (request) => {
    const update = await submit(request, bodyOf(request))
    return { updateId: update.updateId, completionOffset: Number(update.offset) }
  })

  app.post('/v2/commands/submit-and-wait-for-transaction', anyone, async (request) => {
    const body = bodyOf(request)
    const commands = objectField(body, 'commands')
    if (commands === undefined) throw missingField('commands')
    const stated = objectField(body, 'transactionFormat')
    const { actAs } = readSubmitters(commands)
    const format =
      stated === undefined
        ? { format: formatFor(actAs), shape: 'delta' as const }
        : readTransactionFormat(ledger, stated)
    requireReader(callerOf(request), format.format)
    const update = await submit(request, commands)
    const shown = await transactionJson(ledger, update, format)
    return { transaction: shown ?? emptyTransaction(update) }
  })

  app.post('/v2/commands/submit-and-wait-for-reassignment', anyone, async (request) => {
    const commands = objectField(bodyOf(request), 'reassignmentCommands')
    if (commands === undefined) throw missingField('reassignment_commands')
    const stated = textField(commands, 'submitter')
    if (stated === '') throw missingField('submitter')
    const submitter = requireParty(stated)
    const userId = requireSubmitter(callerOf(request), {
      actAs: [submitter],
      readAs: [],
      userId: userIdField(commands),
    })
    const commandId = idField(commands, 'commandId')
    const step = readReassignment(commands)
    const update = await ledger.reassign({ submitter, commandId, userId, step })
    const format = { transactions: undefined, reassignments: formatFor([submitter]) }
    const shown = (await updateJson(ledger, update, format)) as
      | { update: { Reassignment: { value: object } } }
      | undefined
    return { reassignment: shown?.update.Reassignment.value ?? {} }
  })
}

/** The user is the token's; a body that names one must name the same. Returns it. */
const requireSubmitter = (caller: Caller, { actAs, readAs, userId }: Submitters): string => {
  for (const party of actAs) {
    if (!canActAs(caller, party)) throw permissionDenied(`the caller may not act as ${party}`)
  }
  for (const party of readAs) {
    if (!canReadAs(caller, party)) throw permissionDenied(`the caller may not read as ${party}`)
  }
  if (caller.userId !== undefined && userId !== '' && userId !== caller.userId) {
    throw permissionDenied('the body names another user than the token')
  }
  return caller.userId ?? userId
}

const emptyTransaction = (update: LedgerUpdate) => ({
  updateId: update.updateId,
  commandId: update.command.commandId,
  offset: Number(update.offset),
  events: [],
})

const readReassignment = (commands: JsonObject): Reassignment['step'] => {
  const [json, ...others] = listField(commands, 'commands')
  if (json === undefined) throw missingField('commands')
  if (others.length > 0) throw invalidArgument('one contract is reassigned at a time')
  const command = asObject(asObject(json, 'commands[0]').command ?? json, 'commands[0].command')
  const fieldsOf = (name: string) => {
    const held = objectField(command, name)
    return held && (objectField(held, 'value') ?? held)
  }
  const unassign = fieldsOf('UnassignCommand')
  if (unassign !== undefined) {
    return {
      kind: 'unassign',
      contractId: contractIdField(unassign),
      source: idField(unassign, 'source'),
      target: idField(unassign, 'target'),
    }
  }
  const assign = fieldsOf('AssignCommand')
  if (assign === undefined) {
    throw invalidField('commands[0]', 'must be an UnassignCommand or an AssignCommand')
  }
  const unassignId = idField(assign, 'reassignmentId') || idField(assign, 'unassignId')
  return { kind: 'assign', unassignId }
}
