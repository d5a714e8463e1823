import { type Instant, printInThrees, printShortest } from '../values/instant.ts'
import type { Contract } from './contract.ts'
import { type EventNode, type Execution, interfaceIdOf } from './execute.ts'
import type { Witnesses } from './updates-store.ts'

// Updates of the ledger as items of the history, in the lossless form with labels.

export type ItemHead = {
  updateId: string
  migrationId: bigint
  recordTime: Instant
}

export function transactionItem(
  execution: Execution,
  head: ItemHead & { workflowId: string; effectiveAt: Instant },
): string {
  const { updateId } = head
  const events: Record<string, unknown> = {}
  execution.nodes.forEach((node, n) => {
    events[`${updateId}:${n}`] = eventItem(node, updateId, n)
  })
  const roots = execution.roots.map((n) => `${updateId}:${n}`)
  return (
    `{"update_id":"${updateId}","migration_id":${head.migrationId}` +
    `,"workflow_id":${JSON.stringify(head.workflowId)},"record_time":"${head.recordTime}"` +
    `,"synchronizer_id":${JSON.stringify(execution.synchronizerId)}` +
    `,"effective_at":"${printInThrees(head.effectiveAt)}"` +
    `,"root_event_ids":${JSON.stringify(roots)},"events_by_id":${JSON.stringify(events)}}`
  )
}

export type Reassigning = {
  submitter: string
  source: string
  target: string
  unassignId: string
  counter: bigint
}

export function unassignmentItem(
  { submitter, source, target, unassignId, counter }: Reassigning,
  { contractId }: Contract,
  head: ItemHead,
): string {
  return (
    `${reassignmentHead(head)}{"submitter":${JSON.stringify(submitter)}` +
    `,"source_synchronizer":${JSON.stringify(source)},"migration_id":${head.migrationId}` +
    `,"target_synchronizer":${JSON.stringify(target)},"unassign_id":"${unassignId}"` +
    `,"reassignment_counter":${counter},"contract_id":"${contractId}"}}`
  )
}

export function assignmentItem(
  { submitter, source, target, unassignId, counter }: Reassigning,
  contract: Contract,
  head: ItemHead,
): string {
  const created = createdItem(contract, `${head.updateId}:0`)
  return (
    `${reassignmentHead(head)}{"submitter":${JSON.stringify(submitter)}` +
    `,"source_synchronizer":${JSON.stringify(source)}` +
    `,"target_synchronizer":${JSON.stringify(target)},"migration_id":${head.migrationId}` +
    `,"unassign_id":"${unassignId}","created_event":${JSON.stringify(created)}` +
    `,"reassignment_counter":${counter}}}`
  )
}

/** Re-creates a contract that a migration carried over. */
export function importItem(
  contract: Contract,
  head: ItemHead & { workflowId: string; synchronizerId: string },
): string {
  const eventId = `${head.updateId}:0`
  return (
    `{"update_id":"${head.updateId}","migration_id":${head.migrationId}` +
    `,"workflow_id":${JSON.stringify(head.workflowId)},"record_time":"${head.recordTime}"` +
    `,"synchronizer_id":${JSON.stringify(head.synchronizerId)},"effective_at":"${head.recordTime}"` +
    `,"root_event_ids":["${eventId}"],"events_by_id":{"${eventId}":${JSON.stringify(createdItem(contract, eventId))}}}`
  )
}

/** The contracts that the consuming choices of a stored item ended. */
export function consumedBy(item: string): string[] {
  const { events_by_id: events = {} } = JSON.parse(item) as {
    events_by_id?: Record<string, { contract_id: string; consuming?: boolean }>
  }
  return Object.values(events)
    .filter(({ consuming }) => consuming === true)
    .map(({ contract_id }) => contract_id)
}

/** Who sees an event: everyone it concerns, and everyone who sees the event above it. */
export function witnessesOf({ nodes, roots }: Execution): Witnesses {
  const parties: string[] = []
  const places = new Map<string, number>()
  const place = (party: string): number => {
    const known = places.get(party)
    if (known !== undefined) return known
    places.set(party, parties.length)
    return parties.push(party) - 1
  }
  const events: number[][] = []
  const visit = (n: number, above: number[]): void => {
    const node = nodes[n] as EventNode
    const seen = [...new Set([...above, ...node.informees.map(place)])]
    events[n] = seen
    if (node.kind === 'exercised') for (const child of node.children) visit(child, seen)
  }
  for (const root of roots) visit(root, [])
  return { parties, events }
}

function reassignmentHead({ updateId, recordTime }: ItemHead): string {
  return `{"update_id":"${updateId}","record_time":"${recordTime}","event":`
}

function eventItem(node: EventNode, updateId: string, n: number): unknown {
  const eventId = `${updateId}:${n}`
  if (node.kind === 'created') return createdItem(node.contract, eventId)
  const { contract, choice } = node
  const interfaceId = interfaceIdOf(choice)
  return {
    event_type: 'exercised_event',
    event_id: eventId,
    contract_id: contract.contractId,
    template_id: contract.entry.id,
    package_name: contract.entry.template.packageName,
    choice: choice.name,
    choice_argument: choice.argument.toLossless(node.argument),
    child_event_ids: node.children.map((child) => `${updateId}:${child}`),
    exercise_result: choice.result.toLossless(node.result),
    consuming: choice.consuming,
    acting_parties: node.actors,
    ...(interfaceId === undefined ? {} : { interface_id: interfaceId }),
  }
}

function createdItem(contract: Contract, eventId: string): unknown {
  const { template, id } = contract.entry
  return {
    event_type: 'created_event',
    event_id: eventId,
    contract_id: contract.contractId,
    template_id: id,
    package_name: template.packageName,
    create_arguments: template.payload.toLossless(contract.payload),
    created_at: printShortest(contract.createdAt),
    signatories: contract.signatories,
    observers: contract.observers,
  }
}
