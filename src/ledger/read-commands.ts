import { invalidArgument, invalidField, missingField } from '../users/errors.ts'
import { type JsonObject, listField, objectField, textField } from '../users/request-fields.ts'
import { TypeMismatch, type ValueType } from '../values/value-type.ts'
import { isVisible, type Sight } from './contract.ts'
import { readDisclosed } from './disclosed.ts'
import { contractNotFound, malformedValue, notImplemented, unknownChoice } from './errors.ts'
import { archiveChoice, type Command, interfaceIdOf } from './execute.ts'
import { asObject } from './json-object.ts'
import type { Ledger } from './ledger.ts'
import { contractIdField, idField, partyList, userIdField } from './request-ids.ts'
import type { Submission } from './submit.ts'
import type { TemplateEntry } from './template.ts'

/** A transaction of more commands than this is better split. */
const COMMANDS_MAX = 1000

/** Who submits and for whom; read before the rights are checked, the commands only after. */
export type Submitters = { actAs: string[]; readAs: string[]; userId: string }

export function readSubmitters(body: JsonObject): Submitters {
  const actAs = partyList(body, 'actAs')
  if (actAs.length === 0) throw missingField('act_as')
  return { actAs, readAs: partyList(body, 'readAs'), userId: userIdField(body) }
}

export async function readSubmission(
  ledger: Ledger,
  body: JsonObject,
  { actAs, readAs, userId }: Submitters,
): Promise<Submission> {
  const commandId = idField(body, 'commandId')
  if (commandId === '') throw missingField('command_id')
  const list = listField(body, 'commands')
  if (list.length === 0) throw missingField('commands')
  if (list.length > COMMANDS_MAX) {
    throw invalidArgument(`a transaction has at most ${COMMANDS_MAX} commands`)
  }
  const period = readPeriod(body)
  const synchronizerId = idField(body, 'synchronizerId')
  const disclosed = await readDisclosed(ledger, body)
  const sight = { readers: new Set([...actAs, ...readAs]), disclosed }
  const commands: Command[] = []
  for (const [index, json] of list.entries()) {
    commands.push(await readCommand({ ledger, sight }, json, `commands[${index}]`))
  }
  return {
    commands,
    actAs,
    readAs,
    commandId,
    userId,
    submissionId: idField(body, 'submissionId'),
    workflowId: idField(body, 'workflowId'),
    disclosed,
    ...(period === undefined ? {} : { deduplicationMicros: period }),
    ...(synchronizerId === '' ? {} : { synchronizerId }),
  }
}

type World = { ledger: Ledger; sight: Sight }

async function readCommand(world: World, json: unknown, at: string): Promise<Command> {
  const command = asObject(json, at)
  const [kind, ...others] = Object.keys(command)
  if (kind === undefined || others.length > 0) {
    throw invalidField(
      at,
      'a command is exactly one of CreateCommand, ExerciseCommand, CreateAndExerciseCommand',
    )
  }
  const fields = asObject(command[kind], `${at}.${kind}`)
  if (kind === 'ExerciseCommand') return readExercise(world, fields, `${at}.${kind}`)
  const entry = world.ledger.entry(textField(fields, 'templateId'))
  const payloadOf = () =>
    readValue(entry.template.payload, fields.createArguments, `${at}.${kind}.createArguments`)
  if (kind === 'CreateCommand') return { kind: 'create', entry, payload: payloadOf() }
  if (kind === 'CreateAndExerciseCommand') {
    const exercised = readChoice(entry, fields, `${at}.${kind}`)
    return { kind: 'createAndExercise', entry, payload: payloadOf(), ...exercised }
  }
  throw invalidField(
    at,
    `${kind} is not supported; use CreateCommand, ExerciseCommand or CreateAndExerciseCommand`,
  )
}

/** A choice of a template, or of an interface that the contract's template implements. */
async function readExercise(
  { ledger, sight }: World,
  fields: JsonObject,
  at: string,
): Promise<Command> {
  const contractId = contractIdField(fields)
  const templateId = textField(fields, 'templateId')
  const interfaceId = ledger.interfaceId(templateId)
  if (interfaceId === undefined) {
    const entry = ledger.entry(templateId)
    return { kind: 'exercise', entry, contractId, ...readChoice(entry, fields, at) }
  }
  const contract = await ledger.contract(contractId)
  if (contract === undefined || !isVisible(contract, sight)) throw contractNotFound(contractId)
  const { entry } = contract
  if (!entry.interfaces.has(interfaceId)) throw notImplemented(contractId, templateId)
  const exercised = readChoice(entry, fields, at)
  if (interfaceIdOf(exercised.choice) !== interfaceId && exercised.choice !== archiveChoice) {
    const choices = [...entry.choices.values()].filter((one) => interfaceIdOf(one) === interfaceId)
    throw unknownChoice(
      templateId,
      exercised.choice.name,
      choices.map(({ name }) => name),
    )
  }
  return { kind: 'exercise', entry, contractId, ...exercised }
}

function readChoice(entry: TemplateEntry, fields: JsonObject, at: string) {
  const name = textField(fields, 'choice')
  const choice = name === archiveChoice.name ? archiveChoice : entry.choices.get(name)
  if (choice === undefined) {
    throw unknownChoice(entry.template.name, name, ['Archive', ...entry.choices.keys()])
  }
  const argument = readValue(choice.argument, fields.choiceArgument ?? {}, `${at}.choiceArgument`)
  return { choice, argument }
}

function readValue<T>(type: ValueType<T>, json: unknown, at: string): T {
  try {
    return type.read(json, at)
  } catch (error) {
    if (error instanceof TypeMismatch) throw malformedValue(error.path, error.message)
    throw error
  }
}

/** `{"DeduplicationDuration":{"value":{"duration":"3600s"}}}` and its older spellings. */
function readPeriod(body: JsonObject): bigint | undefined {
  const period = objectField(body, 'deduplicationPeriod')
  if (period === undefined || 'Empty' in period || Object.keys(period).length === 0)
    return undefined
  const held = objectField(period, 'DeduplicationDuration')
  const value = held && (objectField(held, 'value') ?? held)
  const seconds = value?.seconds
  const text =
    typeof value?.duration === 'string' ? /^(\d{1,9})s$/.exec(value.duration)?.[1] : seconds
  if (!/^\d{1,9}$/.test(String(text ?? ''))) {
    throw invalidField(
      'deduplication_period',
      'only a DeduplicationDuration in seconds is supported',
    )
  }
  return BigInt(String(text)) * 1_000_000n
}
