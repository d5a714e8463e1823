/** What the ledger API tells of contracts and updates, as far as a wallet reads it. */

export type CreatedEvent = {
  kind: 'created'
  nodeId: number
  contractId: string
  templateId: string
  /** `Module.Name:Entity`, without the package. */
  template: string
  payload: unknown
  createdAt: string
  witnesses: readonly string[]
  signatories: readonly string[]
  observers: readonly string[]
}

export type ExercisedEvent = {
  kind: 'exercised'
  nodeId: number
  contractId: string
  templateId: string
  template: string
  choice: string
  argument: unknown
  result: unknown
  consuming: boolean
  actingParties: readonly string[]
  witnesses: readonly string[]
  /** Events up to this number happened inside the choice. */
  lastDescendantNodeId: number
}

export type LedgerEvent = CreatedEvent | ExercisedEvent

export type Transaction = {
  kind: 'transaction'
  updateId: string
  offset: bigint
  recordTime: string
  commandId: string
  workflowId: string
  synchronizerId: string
  /** In the order in which they happened; a choice stands before what happened inside. */
  events: readonly LedgerEvent[]
}

/** A contract left one synchronizer (`created` is undefined) or came to one. */
export type Reassignment = {
  kind: 'reassignment'
  updateId: string
  offset: bigint
  recordTime: string
  synchronizerId: string
  contractId: string
  created: CreatedEvent | undefined
}

export type Update = Transaction | Reassignment

export type ActiveContract = CreatedEvent & {
  /** Undefined while the contract is on its way between two synchronizers. */
  synchronizerId: string | undefined
}

type Json = Record<string, unknown>

export function readCreated(json: unknown): CreatedEvent {
  const event = json as Json
  return {
    kind: 'created',
    nodeId: event.nodeId as number,
    contractId: String(event.contractId),
    templateId: String(event.templateId),
    template: templateOf(event.templateId),
    payload: event.createArgument,
    createdAt: String(event.createdAt),
    witnesses: event.witnessParties as string[],
    signatories: event.signatories as string[],
    observers: event.observers as string[],
  }
}

export function readActive(json: unknown): ActiveContract | undefined {
  const entry = (json as { contractEntry?: Json }).contractEntry?.JsActiveContract as
    | Json
    | undefined
  if (entry === undefined) return undefined
  return {
    ...readCreated(entry.createdEvent),
    synchronizerId: String(entry.synchronizerId ?? '') || undefined,
  }
}

/** Undefined for what is no update, such as a checkpoint. */
export function readUpdate(json: unknown): Update | undefined {
  const update = (json as { update?: Record<string, { value: Json }> }).update ?? {}
  if (update.Transaction !== undefined) return readTransaction(update.Transaction.value)
  if (update.Reassignment !== undefined) return readReassignment(update.Reassignment.value)
  return undefined
}

export function readTransaction(value: Json): Transaction {
  return {
    kind: 'transaction',
    ...headOf(value),
    commandId: String(value.commandId ?? ''),
    workflowId: String(value.workflowId ?? ''),
    events: ((value.events as Json[] | undefined) ?? []).flatMap(readEvent),
  }
}

function readReassignment(value: Json): Reassignment | undefined {
  const [event] = value.events as Json[]
  const assigned = event?.JsAssignmentEvent as Json | undefined
  const unassigned = (event?.JsUnassignedEvent as { value: Json } | undefined)?.value
  if (assigned === undefined && unassigned === undefined) return undefined
  const created = assigned === undefined ? undefined : readCreated(assigned.createdEvent)
  return {
    kind: 'reassignment',
    ...headOf(value),
    contractId: created?.contractId ?? String(unassigned?.contractId),
    created,
  }
}

function headOf(value: Json) {
  return {
    updateId: String(value.updateId),
    offset: BigInt(value.offset as number),
    recordTime: String(value.recordTime ?? ''),
    synchronizerId: String(value.synchronizerId ?? ''),
  }
}

function readEvent(json: Json): LedgerEvent[] {
  if (json.CreatedEvent !== undefined) return [readCreated(json.CreatedEvent)]
  const event = json.ExercisedEvent as Json | undefined
  if (event === undefined) return []
  return [
    {
      kind: 'exercised',
      nodeId: event.nodeId as number,
      contractId: String(event.contractId),
      templateId: String(event.templateId),
      template: templateOf(event.templateId),
      choice: String(event.choice),
      argument: event.choiceArgument,
      result: event.exerciseResult,
      consuming: event.consuming === true,
      actingParties: event.actingParties as string[],
      witnesses: event.witnessParties as string[],
      lastDescendantNodeId: event.lastDescendantNodeId as number,
    },
  ]
}

/** `<package>:<module>:<entity>` without its package, which another release may have changed. */
function templateOf(id: unknown): string {
  const text = String(id)
  return text.slice(text.indexOf(':') + 1)
}
