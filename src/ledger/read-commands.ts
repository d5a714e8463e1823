import { invalidArgument, invalidField, missingField } from '../users/errors.ts'
import { type JsonObject, listField, objectField, textField } from '../users/request-fields.ts'
import { TypeMismatch, type ValueType } from '../values/value-type.ts'
import { malformedValue, unknownChoice } from './errors.ts'
import { archiveChoice, type Command } from './execute.ts'
import type { Ledger } from './ledger.ts'
import type { Submission } from './submit.ts'
import type { TemplateEntry } from './template.ts'

/** A transaction of more commands than this is better split. */
const COMMANDS_MAX = 1000

/** Who submits and for whom; read before the rights are checked, the commands only after. */
export type Submitters = { actAs: string[]; readAs: string[]; userId: string }

export function readSubmitters(body: JsonObject): Submitters {
  const actAs = textList(body, 'actAs')
  if (actAs.length === 0) throw missingField('act_as')
  return { actAs, readAs: textList(body, 'readAs'), userId: textField(body, 'userId') }
}

export function readSubmission(
  ledger: Ledger,
  body: JsonObject,
  { actAs, readAs, userId }: Submitters,
): Submission {
  const commandId = textField(body, 'commandId')
  if (commandId === '') throw missingField('command_id')
  const list = listField(body, 'commands')
  if (list.length === 0) throw missingField('commands')
  if (list.length > COMMANDS_MAX) {
    throw invalidArgument(`a transaction has at most ${COMMANDS_MAX} commands`)
  }
  const period = readPeriod(body)
  const synchronizerId = textField(body, 'synchronizerId')
  return {
    commands: list.map((json, index) => readCommand(ledger, json, `commands[${index}]`)),
    actAs,
    readAs,
    commandId,
    userId,
    submissionId: textField(body, 'submissionId'),
    workflowId: textField(body, 'workflowId'),
    disclosed: listField(body, 'disclosedContracts').map((disclosed) =>
      textField(asObject(disclosed, 'disclosedContracts'), 'contractId'),
    ),
    ...(period === undefined ? {} : { deduplicationMicros: period }),
    ...(synchronizerId === '' ? {} : { synchronizerId }),
  }
}

function readCommand(ledger: Ledger, json: unknown, at: string): Command {
  const command = asObject(json, at)
  const [kind, ...others] = Object.keys(command)
  if (kind === undefined || others.length > 0) {
    throw invalidField(
      at,
      'a command is exactly one of CreateCommand, ExerciseCommand, CreateAndExerciseCommand',
    )
  }
  const fields = asObject(command[kind], `${at}.${kind}`)
  const entry = ledger.entry(textField(fields, 'templateId'))
  const payloadOf = () =>
    readValue(entry.template.payload, fields.createArguments, `${at}.${kind}.createArguments`)
  const choiceOf = () => readChoice(entry, fields, `${at}.${kind}`)
  if (kind === 'CreateCommand') return { kind: 'create', entry, payload: payloadOf() }
  if (kind === 'ExerciseCommand') {
    const contractId = textField(fields, 'contractId')
    if (contractId === '') throw missingField('contract_id')
    return { kind: 'exercise', entry, contractId, ...choiceOf() }
  }
  if (kind === 'CreateAndExerciseCommand') {
    return { kind: 'createAndExercise', entry, payload: payloadOf(), ...choiceOf() }
  }
  throw invalidField(
    at,
    `${kind} is not supported; use CreateCommand, ExerciseCommand or CreateAndExerciseCommand`,
  )
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

export function textList(body: JsonObject, key: string): string[] {
  return listField(body, key).map((item) => {
    if (typeof item !== 'string' || item === '')
      throw invalidField(key, 'must be a list of parties')
    return item
  })
}

export function asObject(json: unknown, at: string): JsonObject {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw invalidField(at, 'must be an object')
  }
  return json as JsonObject
}
