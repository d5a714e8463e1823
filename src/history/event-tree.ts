import { describeJson, isObject, quote } from '../values/json.ts'
import { readNames, type Source, UpdateError } from './item-fields.ts'

const NODE_ID_MAX = 0xffff_ffff

export type TreeNode = { source: Source; at: string; isCreated: boolean; children: number[] }
type Tree = { events: TreeNode[]; roots: number[]; nodeIds: number[] | undefined }

/**
 * Numbers the events in preorder, roots and children as listed, which is the order in which the
 * ledger made them. Every event must be reached exactly once.
 */
export function readTree(source: Source, updateId: string): Tree {
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
export function nodeIdOf(eventId: string, updateId: string): number | undefined {
  const start = eventId.charCodeAt(0) === 35 ? 1 : 0
  if (!eventId.startsWith(updateId, start) || eventId[start + updateId.length] !== ':')
    return undefined
  const digits = eventId.slice(start + updateId.length + 1)
  if (!/^(?:0|[1-9]\d{0,9})$/.test(digits)) return undefined
  const nodeId = Number(digits)
  return nodeId <= NODE_ID_MAX ? nodeId : undefined
}

export function readEventType(event: Source, at: string, only?: 'created_event'): string {
  const type = event.event_type
  if (type === 'created_event' || (type === 'exercised_event' && only === undefined)) return type
  throw new UpdateError(`${at}event_type`, `must be ${only ?? 'created_event or exercised_event'}`)
}
