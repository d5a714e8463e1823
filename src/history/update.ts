import { type Instant, parseInstant, printInThrees, printShortest } from '../values/instant.ts'
import { describeJson, isObject, quote } from '../values/json.ts'
import { INT64_MAX, INT64_MIN, RoundedNumberError } from '../values/value.ts'
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

export class UpdateError extends Error {
  override name = 'UpdateError'
  readonly field: string
  constructor(field: string, reason: string) {
    super(`${field} ${reason}.`)
    this.field = field
  }
}

/** Eighteen hex digits that append.ts overwrites with the update's offset in this node. */
export const OFFSET_PLACEHOLDER = '000000000000000000'

/** Deployed scans cannot look up longer ids. */
const UPDATE_ID_LENGTH_MAX = 2066
const HASH_HEX_LENGTH_MAX = 2048
const NODE_ID_MAX = 0xffff_ffff

type Source = Record<string, unknown>

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

type TreeNode = { source: Source; at: string; isCreated: boolean; children: number[] }
type Tree = { events: TreeNode[]; roots: number[]; nodeIds: number[] | undefined }

/**
 * Numbers the events in preorder, roots and children as listed, which is the order in which the
 * ledger made them. Every event must be reached exactly once.
 */
function readTree(source: Source, updateId: string): Tree {
  const byId = source.events_by_id
  if (!isObject(byId))
    throw new UpdateError('events_by_id', `must be an object, not ${describeJson(byId)}`)
  const rootIds = readNames(source, 'root_event_ids', '')
  const events: TreeNode[] = []
  const nodeIds: number[] = []
  const reached = new Set<string>()
  const roots: number[] = []
  type Visit = { id: string; siblings: number[]; from: string }
  const stack: Visit[] = []
  const pushAll = (ids: string[], siblings: number[], from: string) => {
    for (let i = ids.length - 1; i >= 0; i -= 1)
      stack.push({ id: ids[i] as string, siblings, from })
  }
  pushAll(rootIds, roots, 'root_event_ids')
  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    const { id } = visit
    const event = Object.hasOwn(byId, id) ? byId[id] : undefined
    if (event === undefined)
      throw new UpdateError(visit.from, `names ${quote(id)}, which is not in events_by_id`)
    if (reached.has(id))
      throw new UpdateError(visit.from, `names ${quote(id)}, which is already part of the tree`)
    reached.add(id)
    const at = `events_by_id[${quote(id)}].`
    if (!isObject(event))
      throw new UpdateError(at.slice(0, -1), `must be an object, not ${describeJson(event)}`)
    if (event.event_id !== id)
      throw new UpdateError(`${at}event_id`, 'must equal its key in events_by_id')
    const isCreated = readEventType(event, at) === 'created_event'
    visit.siblings.push(events.length)
    const node: TreeNode = { source: event, at, isCreated, children: [] }
    events.push(node)
    const nodeId = nodeIdOf(id, updateId)
    if (nodeId !== undefined) nodeIds.push(nodeId)
    if (!isCreated)
      pushAll(readNames(event, 'child_event_ids', at), node.children, `${at}child_event_ids`)
  }
  for (const id in byId) {
    if (!reached.has(id)) {
      throw new UpdateError(`events_by_id[${quote(id)}]`, 'is not reached from root_event_ids')
    }
  }
  return { events, roots, nodeIds: ownNodeIds(nodeIds, events.length) }
}

/** The source's numbers must rise in preorder; they are kept only where they say something new. */
function ownNodeIds(nodeIds: number[], eventCount: number): number[] | undefined {
  if (nodeIds.length !== eventCount) return undefined
  let dense = true
  for (let n = 0; n < nodeIds.length; n += 1) {
    const nodeId = nodeIds[n] as number
    if (n > 0 && nodeId <= (nodeIds[n - 1] as number)) {
      throw new UpdateError(
        'events_by_id',
        `is out of order: event ${nodeId} comes after event ${nodeIds[n - 1]}`,
      )
    }
    if (nodeId !== n) dense = false
  }
  return dense ? undefined : nodeIds
}

/** The number n of an event id `<update_id>:<n>` or, as /v0/updates has it, `#<update_id>:<n>`. */
function nodeIdOf(eventId: string, updateId: string): number | undefined {
  const start = eventId.charCodeAt(0) === 35 ? 1 : 0
  if (!eventId.startsWith(updateId, start) || eventId[start + updateId.length] !== ':')
    return undefined
  const digits = eventId.slice(start + updateId.length + 1)
  if (!/^(?:0|[1-9]\d{0,9})$/.test(digits)) return undefined
  const nodeId = Number(digits)
  return nodeId <= NODE_ID_MAX ? nodeId : undefined
}

function readEventType(event: Source, at: string, only?: 'created_event'): string {
  const type = event.event_type
  if (type === 'created_event' || (type === 'exercised_event' && only === undefined)) return type
  throw new UpdateError(`${at}event_type`, `must be ${only ?? 'created_event or exercised_event'}`)
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

function readUpdateId(source: Source): string {
  const updateId = readName(source, 'update_id', '')
  if (updateId.length > UPDATE_ID_LENGTH_MAX) {
    throw new UpdateError('update_id', `must not be longer than ${UPDATE_ID_LENGTH_MAX} characters`)
  }
  return updateId
}

function readHash(source: Source): string | undefined {
  const hash = source.external_transaction_hash
  if (hash === undefined || hash === null) return undefined
  if (
    typeof hash !== 'string' ||
    !/^(?:[0-9a-fA-F]{2})+$/.test(hash) ||
    hash.length > HASH_HEX_LENGTH_MAX
  ) {
    throw new UpdateError('external_transaction_hash', 'must be hexadecimal, two digits a byte')
  }
  return hash.toLowerCase()
}

function readText(source: Source, field: string, at: string): string {
  const value = source[field]
  if (typeof value === 'string') return value
  throw new UpdateError(
    `${at}${field}`,
    value === undefined ? 'is missing' : `must be a string, not ${describeJson(value)}`,
  )
}

const NAME_RULE = 'must be a string of Unicode characters that is not empty and has no NUL'

/** Names are kept as text in the database, which holds neither NUL nor half a character. */
function isName(value: string): boolean {
  return value !== '' && !value.includes('\0') && value.isWellFormed()
}

function readName(source: Source, field: string, at: string): string {
  const value = readText(source, field, at)
  if (!isName(value)) throw new UpdateError(`${at}${field}`, NAME_RULE)
  return value
}

function readNames(source: Source, field: string, at: string): string[] {
  const value = source[field]
  if (!Array.isArray(value)) {
    throw new UpdateError(
      `${at}${field}`,
      value === undefined ? 'is missing' : `must be an array, not ${describeJson(value)}`,
    )
  }
  for (let i = 0; i < value.length; i += 1) {
    if (typeof value[i] !== 'string' || !isName(value[i])) {
      throw new UpdateError(`${at}${field}[${i}]`, NAME_RULE)
    }
  }
  return value
}

function stakeholders(source: Source, field: string, at: string): string {
  const names = readNames(source, field, at)
  return (names.length < 2 ? names : names.toSorted()).map(quote).join(',')
}

function readInt64(source: Source, field: string, at: string): bigint {
  const value = source[field]
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new RoundedNumberError()
  }
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) {
    const integer = BigInt(value as bigint | number)
    if (integer >= INT64_MIN && integer <= INT64_MAX) return integer
  }
  throw new UpdateError(
    `${at}${field}`,
    value === undefined
      ? 'is missing'
      : `must be a whole number of 64 bits, not ${describeJson(value)}`,
  )
}

function readInstant(source: Source, field: string, at: string): Instant {
  const text = readText(source, field, at)
  const instant = parseInstant(text)
  if (instant === undefined || /\.\d{6}\d*[1-9]/.test(text)) {
    throw new UpdateError(
      `${at}${field}`,
      'must be an ISO-8601 time with Z or an offset and at most microseconds, such as 2024-09-20T13:31:28.405180Z',
    )
  }
  return instant
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
