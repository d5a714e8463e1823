import { type Json, sha256 } from './random-values.ts'

// Drafts are what chance decides about an update; here they become items. What must hold between updates is settled
// on the way: ids are unique, only active contracts are used, and an assignment matches the unassignment before it.

export type RandomUpdate = {
  /** Integers of 64 bits stand in it as raw JSON, so that JSON.stringify prints them exactly. */
  item: Json
  /** `JSON.stringify(item)`: the line of an import file. */
  line: string
  migrationId: bigint
  /** Six fraction digits and Z. */
  recordTime: string
}

export type Position = { migrationId: bigint; micros: bigint }
export type Node = {
  /** Which of the contracts still active is used; undefined uses one that the history has not seen created. */
  target: number | undefined
  template: string
  packageName: string
  signatories: string[]
  observers: string[]
  body:
    | { create: Json }
    | {
        choice: string
        consuming: boolean
        argument: Json
        result: Json
        actors: string[]
        interfaceId: string | undefined
        children: Node[]
      }
}
export type TransactionDraft = {
  kind: 'transaction'
  workflow: string
  synchronizer: string
  effective: bigint
  roots: Node[]
  external: boolean
}
export type ReassignmentDraft = {
  kind: 'unassign' | 'assign'
  submitter: string
  counter: bigint
  /** Whether the contract goes home or away. */
  homeward: boolean
  created: Node
  createdAt: bigint
}
export type Draft = TransactionDraft | ReassignmentDraft

type Contract = { id: string; template: string; packageName: string }

export const SYNCHRONIZERS = [
  `global-domain::1220${'ab'.repeat(32)}`,
  `other domain::1220${'cd'.repeat(32)}`,
]

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

export function finishHistory(drafts: [Position, Draft][]): RandomUpdate[] {
  const active: Contract[] = []
  let open: { draft: ReassignmentDraft; name: string } | undefined
  return drafts.map(([position, draft]) => {
    const id = `1220${sha256(`${position.migrationId} ${position.micros}`)}`
    const recordTime = printMicros(position.micros)
    const update = { id, migrationId: rawJSON(`${position.migrationId}`), recordTime }
    let item: Json
    if (draft.kind === 'transaction') {
      item = transactionItem(update, draft, active)
    } else if (draft.kind === 'unassign') {
      open = { draft, name: id }
      item = unassignmentItem(update, open)
    } else {
      item = assignmentItem(update, open ?? { draft, name: id })
      open = undefined
    }
    return { item, line: JSON.stringify(item), migrationId: position.migrationId, recordTime }
  })
}

type Update = { id: string; migrationId: unknown; recordTime: string }

function transactionItem(update: Update, draft: TransactionDraft, active: Contract[]): Json {
  const events: [string, Json][] = []
  const visit = (node: Node): string => {
    const eventId = `${update.id}:${events.length}`
    const event: [string, Json] = [eventId, {}]
    events.push(event)
    if ('create' in node.body) {
      const contract = newContract(node, eventId)
      active.push(contract)
      event[1] = createdEvent({ node, contract, eventId, createdAt: draft.effective })
      return eventId
    }
    const { choice, consuming, argument, result, actors, interfaceId, children } = node.body
    const index = node.target === undefined ? -1 : node.target % Math.max(1, active.length)
    const target = active[index] ?? newContract(node, eventId)
    if (consuming && active[index] === target) active.splice(index, 1)
    event[1] = {
      event_type: 'exercised_event',
      event_id: eventId,
      contract_id: target.id,
      template_id: target.template,
      package_name: target.packageName,
      choice,
      choice_argument: argument,
      child_event_ids: children.map(visit),
      exercise_result: result,
      consuming,
      acting_parties: actors,
      ...(interfaceId === undefined ? {} : { interface_id: interfaceId }),
    }
    return eventId
  }
  const roots = draft.roots.map(visit)
  return {
    update_id: update.id,
    migration_id: update.migrationId,
    workflow_id: draft.workflow,
    record_time: update.recordTime,
    synchronizer_id: draft.synchronizer,
    effective_at: printInThrees(draft.effective),
    root_event_ids: roots,
    events_by_id: Object.fromEntries(events),
    ...(draft.external ? { external_transaction_hash: sha256(`signed ${update.id}`) } : {}),
  }
}

type Opened = { draft: ReassignmentDraft; name: string }

function unassignmentItem(update: Update, { draft, name }: Opened): Json {
  const event = {
    submitter: draft.submitter,
    source_synchronizer: SYNCHRONIZERS[draft.homeward ? 1 : 0],
    migration_id: update.migrationId,
    target_synchronizer: SYNCHRONIZERS[draft.homeward ? 0 : 1],
    unassign_id: `00${sha256(`unassign ${name}`)}`,
    reassignment_counter: rawJSON(`${draft.counter}`),
    contract_id: newContract(draft.created, name).id,
  }
  return { update_id: update.id, record_time: update.recordTime, event }
}

function assignmentItem(update: Update, { draft, name }: Opened): Json {
  const { created: node, createdAt } = draft
  const contract = newContract(node, name)
  const event = {
    submitter: draft.submitter,
    source_synchronizer: SYNCHRONIZERS[draft.homeward ? 1 : 0],
    target_synchronizer: SYNCHRONIZERS[draft.homeward ? 0 : 1],
    migration_id: update.migrationId,
    unassign_id: `00${sha256(`unassign ${name}`)}`,
    created_event: createdEvent({ node, contract, eventId: `${update.id}:0`, createdAt }),
    reassignment_counter: rawJSON(`${draft.counter}`),
  }
  return { update_id: update.id, record_time: update.recordTime, event }
}

function createdEvent(event: {
  node: Node
  contract: Contract
  eventId: string
  createdAt: bigint
}): Json {
  const { node, contract } = event
  return {
    event_type: 'created_event',
    event_id: event.eventId,
    contract_id: contract.id,
    template_id: contract.template,
    package_name: contract.packageName,
    create_arguments: 'create' in node.body ? node.body.create : { record: {} },
    created_at: printMicros(event.createdAt).replace(/\.?0*Z$/, 'Z'),
    signatories: node.signatories.toSorted(),
    observers: node.observers.toSorted(),
  }
}

function newContract({ template, packageName }: Node, name: string): Contract {
  return { id: `00${sha256(name)}ca121220${sha256(`suffix ${name}`)}`, template, packageName }
}

function printMicros(micros: bigint): string {
  const rest = ((micros % 1000n) + 1000n) % 1000n
  const millis = new Date(Number((micros - rest) / 1000n)).toISOString().slice(0, -1)
  return `${millis}${`${rest}`.padStart(3, '0')}Z`
}

function printInThrees(micros: bigint): string {
  return printMicros(micros).replace(/(\.000)?000Z$/, 'Z')
}
