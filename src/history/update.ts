import { type Instant, printInThrees, printShortest } from '../values/instant.ts'
import { describeJson, isObject, quote } from '../values/json.ts'
import { nodeIdOf, readEventType, readTree, type TreeNode } from './event-tree.ts'
import {
  readHash,
  readInstant,
  readInt64,
  readName,
  readNames,
  readText,
  readUpdateId,
  type Source,
  stakeholders,
  UpdateError,
} from './item-fields.ts'
import { IMPORT_RECORD_TIME } from './position.ts'

/**
 * An update item of the Scan API, checked against the specification's tables and brought into
 * canonical shape. The same item in its two encodings differs only in ledger values, so its text is
 * `structure[0] value[0] structure[1] value[1] … structure[n]`.
 */
export type Item = {
  kind: 'transaction' | 'reassignment'
  updateId: string
  migrationId: bigint
  recordTime: Instant
  synchronizerId: string
  externalHash: string | undefined
  eventCount: number
  /** The source's own event numbers in event order, where they are not simply 0, 1, 2 … */
  nodeIds: number[] | undefined
  /** Contract of an import update, which re-creates one active contract after a migration. */
  importedContractId: string | undefined
  structure: string[]
  values: ItemValue[]
}
export type ItemValue = { field: string; value: unknown }

/** Eighteen hex digits that append.ts overwrites with the update's offset in this node. */
export const OFFSET_PLACEHOLDER = '000000000000000000'

export function readItem(source: unknown): Item {
  if (!isObject(source))
    throw new UpdateError('The update', `must be an object, not ${describeJson(source)}`)
  const isTransaction = source.events_by_id !== undefined
  const isReassignment = source.event !== undefined
  if (isTransaction === isReassignment) {
    throw new UpdateError(
      'The update',
      'must be either a transaction with events_by_id or a reassignment with event',
    )
  }
  return isTransaction ? readTransaction(source) : readReassignment(source)
}

function readTransaction(source: Source): Item {
  const updateId = readUpdateId(source)
  const migrationId = readInt64(source, 'migration_id', '')
  const workflowId = readText(source, 'workflow_id', '')
  const recordTime = readInstant(source, 'record_time', '')
  const synchronizerId = readName(source, 'synchronizer_id', '')
  const effectiveAt = readInstant(source, 'effective_at', '')
  const externalHash = readHash(source)
  const tree = readTree(source, updateId)
  const item: Item = {
    kind: 'transaction',
    updateId,
    migrationId,
    recordTime,
    synchronizerId,
    externalHash,
    eventCount: tree.events.length,
    nodeIds: tree.nodeIds,
    importedContractId:
      recordTime === IMPORT_RECORD_TIME ? readImportedContract(tree.events) : undefined,
    structure: [],
    values: [],
  }
  const id = quoteIdPrefix(updateId)
  let text =
    `{"update_id":${quote(updateId)},"migration_id":${migrationId},"workflow_id":${quote(workflowId)}` +
    `,"record_time":"${recordTime}","synchronizer_id":${quote(synchronizerId)}` +
    `,"effective_at":"${printInThrees(effectiveAt)}","offset":"${OFFSET_PLACEHOLDER}"` +
    `,"root_event_ids":[${idList(id, tree.roots)}],"events_by_id":{`
  for (let n = 0; n < tree.events.length; n += 1) {
    const event = tree.events[n] as TreeNode
    text += `${n === 0 ? '' : ','}${id}${n}":`
    text = writeEvent(item, text, event, `${id}${n}"`, idList(id, event.children))
  }
  text += '}'
  if (externalHash !== undefined) text += `,"external_transaction_hash":"${externalHash}"`
  item.structure.push(`${text}}`)
  return item
}

function readReassignment(source: Source): Item {
  const updateId = readUpdateId(source)
  const recordTime = readInstant(source, 'record_time', '')
  if (recordTime === IMPORT_RECORD_TIME) {
    throw new UpdateError(
      'record_time',
      'is that of an import update, which cannot be a reassignment',
    )
  }
  const event = source.event
  if (!isObject(event))
    throw new UpdateError('event', `must be an object, not ${describeJson(event)}`)
  const isAssignment = event.created_event !== undefined
  if (isAssignment === (event.contract_id !== undefined)) {
    throw new UpdateError(
      'event',
      'must be either an assignment with created_event or an unassignment with contract_id',
    )
  }
  const at = 'event.'
  const submitter = quote(readName(event, 'submitter', at))
  const sourceSynchronizer = readName(event, 'source_synchronizer', at)
  const targetSynchronizer = readName(event, 'target_synchronizer', at)
  const migrationId = readInt64(event, 'migration_id', at)
  const unassignId = quote(readText(event, 'unassign_id', at))
  const counter = readInt64(event, 'reassignment_counter', at)
  if (counter < 0n) throw new UpdateError('event.reassignment_counter', 'must not be negative')
  const item: Item = {
    kind: 'reassignment',
    updateId,
    migrationId,
    recordTime,
    synchronizerId: isAssignment ? targetSynchronizer : sourceSynchronizer,
    externalHash: undefined,
    eventCount: isAssignment ? 1 : 0,
    nodeIds: undefined,
    importedContractId: undefined,
    structure: [],
    values: [],
  }
  let text =
    `{"update_id":${quote(updateId)},"offset":"${OFFSET_PLACEHOLDER}","record_time":"${recordTime}"` +
    `,"event":{"submitter":${submitter},"source_synchronizer":${quote(sourceSynchronizer)}`
  if (isAssignment) {
    text +=
      `,"target_synchronizer":${quote(targetSynchronizer)},"migration_id":${migrationId}` +
      `,"unassign_id":${unassignId},"created_event":`
    const created = event.created_event
    if (!isObject(created)) {
      throw new UpdateError(
        'event.created_event',
        `must be an object, not ${describeJson(created)}`,
      )
    }
    const where = 'event.created_event.'
    readEventType(created, where, 'created_event')
    const sourceId = readName(created, 'event_id', where)
    const eventId = `${quoteIdPrefix(updateId)}${nodeIdOf(sourceId, updateId) ?? 0}"`
    text = writeCreated(item, text, created, where, eventId)
    text += `,"reassignment_counter":${counter}`
  } else {
    const contractId = quote(readName(event, 'contract_id', at))
    text +=
      `,"migration_id":${migrationId},"target_synchronizer":${quote(targetSynchronizer)}` +
      `,"unassign_id":${unassignId},"reassignment_counter":${counter},"contract_id":${contractId}`
  }
  item.structure.push(`${text}}}`)
  return item
}

function writeEvent(
  item: Item,
  text: string,
  event: TreeNode,
  id: string,
  children: string,
): string {
  return event.isCreated
    ? writeCreated(item, text, event.source, event.at, id)
    : writeExercised(item, text, event, id, children)
}

function writeCreated(item: Item, text: string, event: Source, at: string, id: string): string {
  const before =
    `${text}{"event_type":"created_event","event_id":${id},"contract_id":${quote(readName(event, 'contract_id', at))}` +
    `,"template_id":${quote(readName(event, 'template_id', at))}` +
    `,"package_name":${quote(readText(event, 'package_name', at))},"create_arguments":`
  return (
    splitAtValue(item, before, event, 'create_arguments', at) +
    `,"created_at":"${printShortest(readInstant(event, 'created_at', at))}"` +
    `,"signatories":[${stakeholders(event, 'signatories', at)}]` +
    `,"observers":[${stakeholders(event, 'observers', at)}]}`
  )
}

function writeExercised(
  item: Item,
  text: string,
  node: TreeNode,
  id: string,
  children: string,
): string {
  const { source: event, at } = node
  const consuming = event.consuming
  if (typeof consuming !== 'boolean') {
    throw new UpdateError(`${at}consuming`, `must be true or false, not ${describeJson(consuming)}`)
  }
  const before =
    `${text}{"event_type":"exercised_event","event_id":${id},"contract_id":${quote(readName(event, 'contract_id', at))}` +
    `,"template_id":${quote(readName(event, 'template_id', at))}` +
    `,"package_name":${quote(readText(event, 'package_name', at))}` +
    `,"choice":${quote(readName(event, 'choice', at))},"choice_argument":`
  const between = `${splitAtValue(item, before, event, 'choice_argument', at)},"child_event_ids":[${children}],"exercise_result":`
  const interfaceId =
    event.interface_id === undefined || event.interface_id === null
      ? ''
      : `,"interface_id":${quote(readName(event, 'interface_id', at))}`
  return (
    splitAtValue(item, between, event, 'exercise_result', at) +
    `,"consuming":${consuming},"acting_parties":[${readNames(event, 'acting_parties', at).map(quote).join(',')}]${interfaceId}}`
  )
}

/** Closes the structure so far, notes the value that stands here, and starts the next piece. */
function splitAtValue(item: Item, text: string, event: Source, field: string, at: string): string {
  const value = event[field]
  if (value === undefined) throw new UpdateError(`${at}${field}`, 'is missing')
  item.structure.push(text)
  item.values.push({ field: `${at}${field}`, value })
  return ''
}

function readImportedContract(events: TreeNode[]): string {
  const [event] = events
  if (events.length !== 1 || !event?.isCreated) {
    throw new UpdateError('events_by_id', 'of an import update must hold exactly one created event')
  }
  return readName(event.source, 'contract_id', event.at)
}

/** `"<update_id>:` without its end: an event's number and a quotation mark complete it. */
function quoteIdPrefix(updateId: string): string {
  return `${quote(updateId).slice(0, -1)}:`
}

function idList(prefix: string, numbers: number[]): string {
  let text = ''
  for (const n of numbers) text += `${text === '' ? '' : ','}${prefix}${n}"`
  return text
}
