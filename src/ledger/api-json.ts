import { printInThrees } from '../values/instant.ts'
import { blobOf } from './blob.ts'
import { type Contract, stakeholdersOf } from './contract.ts'
import { pastPruned } from './errors.ts'
import { type EventFormat, type Match, matchFor, type UpdateFormat } from './event-format.ts'
import type { Ledger } from './ledger.ts'
import { type InterfaceView, packageIdOf, type TemplateEntry } from './template.ts'
import type { LedgerEntry, LedgerUpdate } from './updates-store.ts'

// The ledger's updates and contracts as the ledger API shows them: to some parties, and only what
// they have asked for.

type ItemEvent = {
  event_type: 'created_event' | 'exercised_event'
  contract_id: string
  template_id: string
  package_name: string
  create_arguments?: unknown
  created_at?: string
  signatories?: string[]
  observers?: string[]
  choice?: string
  choice_argument?: unknown
  exercise_result?: unknown
  consuming?: boolean
  acting_parties?: string[]
  interface_id?: string
  child_event_ids?: string[]
}
type Item = {
  workflow_id: string
  synchronizer_id: string
  effective_at: string
  root_event_ids: string[]
  events_by_id?: Record<string, ItemEvent>
  event?: Record<string, unknown> & { contract_id?: string; created_event?: ItemEvent }
}
type Place = { offset: bigint; nodeId: number; match: Match }

/** An active contract as `state/active-contracts` lists it; undefined when nobody asked for it. */
export function activeContractJson(contract: Contract, format: EventFormat): object | undefined {
  const match = matchFor(format, contract.entry, stakeholdersOf(contract))
  if (match === undefined) return undefined
  const createdEvent = createdJson(contract, {
    offset: contract.createdOffset,
    nodeId: contract.createdNodeId,
    match,
  })
  return {
    workflowId: '',
    contractEntry: {
      JsActiveContract: {
        createdEvent,
        synchronizerId: contract.synchronizerId ?? '',
        reassignmentCounter: Number(contract.reassignmentCounter),
      },
    },
  }
}

/** The update as the format wants it; undefined when it holds nothing for the reader. */
export async function updateJson(
  ledger: Ledger,
  update: LedgerUpdate,
  format: UpdateFormat,
): Promise<object | undefined> {
  const { transactions, reassignments } = format
  const isAsked = [transactions?.format, reassignments].some((one) => mayConcern(one, update))
  if (!isAsked) return undefined
  const item = JSON.parse(update.item) as Item
  if (item.event !== undefined) {
    const value = await reassignmentJson(ledger, update, { item, format: reassignments })
    return value && { update: { Reassignment: { value } } }
  }
  if (transactions === undefined) return undefined
  const value = await eventsJson(ledger, update, { item, ...transactions })
  return value && { update: { Transaction: { value } } }
}

export async function transactionJson(
  ledger: Ledger,
  update: LedgerUpdate,
  transactions: NonNullable<UpdateFormat['transactions']>,
): Promise<object | undefined> {
  return eventsJson(ledger, update, { item: JSON.parse(update.item) as Item, ...transactions })
}

/** Told without reading the update: most readers of a busy ledger are asked about few of its updates. */
function mayConcern(format: EventFormat | undefined, { witnesses }: LedgerUpdate): boolean {
  if (format === undefined) return false
  return format.anyParty !== undefined || witnesses.parties.some((one) => format.byParty.has(one))
}

async function eventsJson(
  ledger: Ledger,
  update: LedgerUpdate,
  { item, format, shape }: { item: Item } & NonNullable<UpdateFormat['transactions']>,
): Promise<object | undefined> {
  const events = await (shape === 'delta' ? deltaEvents : effectEvents)(
    ledger,
    update,
    item,
    format,
  )
  if (events.length === 0) return undefined
  return {
    updateId: update.updateId,
    commandId: isSubmitter(update, format) ? update.command.commandId : '',
    workflowId: item.workflow_id,
    effectiveAt: item.effective_at,
    events,
    offset: Number(update.offset),
    synchronizerId: item.synchronizer_id,
    traceContext: {},
    recordTime: printInThrees(update.recordTime),
    externalTransactionHash: '',
  }
}

type EventReader = (
  ledger: Ledger,
  update: LedgerUpdate,
  item: Item,
  format: EventFormat,
) => Promise<object[]>

/** What the transaction changed for stakeholders: contracts that came and went. */
const deltaEvents: EventReader = async (ledger, update, item, format) => {
  const all = Object.values(item.events_by_id ?? {})
  const came = new Set(all.filter(isCreated).map(({ contract_id }) => contract_id))
  const went = new Set(all.filter(({ consuming }) => consuming).map((event) => event.contract_id))
  const shown: object[] = []
  for (const [nodeId, event] of all.entries()) {
    const isPassing = came.has(event.contract_id) && went.has(event.contract_id)
    if (isPassing || (!isCreated(event) && !event.consuming)) continue
    const contract = await contractOf(ledger, update, event.contract_id)
    const match = matchFor(format, contract.entry, stakeholdersOf(contract))
    if (match === undefined) continue
    const place = { offset: update.offset, nodeId, match }
    shown.push(
      isCreated(event)
        ? { CreatedEvent: createdJson(contract, place) }
        : { ArchivedEvent: archivedJson(contract.entry, event, place) },
    )
  }
  return shown
}

/** Everything that the parties witnessed. */
const effectEvents: EventReader = async (ledger, update, item, format) => {
  const { parties, events: seenBy } = update.witnesses
  const shown: object[] = []
  for (const [nodeId, event] of Object.values(item.events_by_id ?? {}).entries()) {
    const entry = ledger.entry(event.template_id)
    const seen = (seenBy[nodeId] ?? []).map((place) => parties[place] as string)
    const match = matchFor(format, entry, seen)
    if (match === undefined) continue
    const place = { offset: update.offset, nodeId, match }
    if (isCreated(event)) {
      const contract = await contractOf(ledger, update, event.contract_id)
      shown.push({ CreatedEvent: createdJson(contract, place) })
    } else shown.push({ ExercisedEvent: exercisedJson(entry, event, { ...place, item }) })
  }
  return shown
}

/** The contract of an event, which is gone only if its update was pruned while it was read. */
async function contractOf(ledger: Ledger, update: LedgerUpdate, id: string): Promise<Contract> {
  const contract = await ledger.contract(id)
  if (contract === undefined) throw pastPruned(update.offset - 1n, await ledger.pruned())
  return contract
}

async function reassignmentJson(
  ledger: Ledger,
  update: LedgerUpdate,
  { item, format }: { item: Item; format: EventFormat | undefined },
): Promise<object | undefined> {
  const event = item.event
  if (format === undefined || event === undefined) return undefined
  const contractId = event.contract_id ?? event.created_event?.contract_id ?? ''
  const contract = await contractOf(ledger, update, contractId)
  const match = matchFor(format, contract.entry, stakeholdersOf(contract))
  if (match === undefined) return undefined
  const common = {
    reassignmentId: event.unassign_id,
    source: event.source_synchronizer,
    target: event.target_synchronizer,
    submitter: event.submitter,
    reassignmentCounter: event.reassignment_counter,
  }
  const place = { offset: update.offset, nodeId: 0, match }
  return {
    updateId: update.updateId,
    commandId: isSubmitter(update, format) ? update.command.commandId : '',
    workflowId: '',
    offset: Number(update.offset),
    events: [
      event.created_event === undefined
        ? {
            JsUnassignedEvent: {
              value: {
                ...common,
                contractId,
                templateId: contract.entry.id,
                witnessParties: match.witnesses,
                packageName: contract.entry.template.packageName,
                offset: Number(update.offset),
                nodeId: 0,
              },
            },
          }
        : { JsAssignmentEvent: { ...common, createdEvent: createdJson(contract, place) } },
    ],
    traceContext: {},
    recordTime: printInThrees(update.recordTime),
    synchronizerId:
      event.created_event === undefined ? event.source_synchronizer : event.target_synchronizer,
  }
}

function createdJson(contract: Contract, { offset, nodeId, match }: Place): object {
  const { template, id } = contract.entry
  return {
    offset: Number(offset),
    nodeId,
    contractId: contract.contractId,
    templateId: id,
    contractKey: null,
    createArgument: template.payload.toJson(contract.payload),
    createdEventBlob: match.withBlob ? blobOf(contract) : '',
    interfaceViews: match.views.map((interfaceId) => viewJson(contract, interfaceId)),
    witnessParties: match.witnesses,
    signatories: contract.signatories,
    observers: contract.observers,
    createdAt: printInThrees(contract.createdAt),
    packageName: template.packageName,
    representativePackageId: packageIdOf(template.packageName),
    acsDelta: true,
  }
}

/** The contract as an interface shows it. */
function viewJson({ entry, payload }: Contract, interfaceId: string): object {
  const { view, viewOf } = entry.interfaces.get(interfaceId) as InterfaceView<unknown>
  return {
    interfaceId,
    viewStatus: { code: 0, message: '', details: [] },
    viewValue: view.toJson(viewOf(payload)),
    implementationPackageId: packageIdOf(entry.template.packageName),
  }
}

function archivedJson(
  entry: TemplateEntry,
  event: ItemEvent,
  { offset, nodeId, match }: Place,
): object {
  return {
    offset: Number(offset),
    nodeId,
    contractId: event.contract_id,
    templateId: entry.id,
    witnessParties: match.witnesses,
    packageName: entry.template.packageName,
    implementedInterfaces: match.interfaces,
  }
}

function exercisedJson(
  entry: TemplateEntry,
  event: ItemEvent,
  { offset, nodeId, match, item }: Place & { item: Item },
): object {
  const choice = entry.choices.get(event.choice ?? '')
  return {
    offset: Number(offset),
    nodeId,
    contractId: event.contract_id,
    templateId: entry.id,
    interfaceId: event.interface_id ?? null,
    choice: event.choice,
    choiceArgument:
      choice?.argument.toJson(choice.argument.fromLossless(event.choice_argument)) ?? {},
    actingParties: event.acting_parties,
    consuming: event.consuming,
    witnessParties: match.witnesses,
    lastDescendantNodeId: lastDescendant(item, event, nodeId),
    exerciseResult: choice?.result.toJson(choice.result.fromLossless(event.exercise_result)) ?? {},
    packageName: entry.template.packageName,
    implementedInterfaces: match.interfaces,
    acsDelta: event.consuming === true,
  }
}

/** Events are numbered in preorder, so the last one below is found along the last children. */
function lastDescendant(item: Item, event: ItemEvent, nodeId: number): number {
  const last = event.child_event_ids?.at(-1)
  if (last === undefined) return nodeId
  const child = item.events_by_id?.[last]
  const childId = Number(last.slice(last.lastIndexOf(':') + 1))
  return child === undefined ? childId : lastDescendant(item, child, childId)
}

function isCreated({ event_type }: ItemEvent): boolean {
  return event_type === 'created_event'
}

function isSubmitter({ command }: LedgerUpdate, { byParty, anyParty }: EventFormat): boolean {
  return anyParty !== undefined || command.actAs.some((party) => byParty.has(party))
}

/** Accepted commands have the status 0 and their update; refused ones say why. */
export function completionJson(entry: LedgerEntry, synchronizerId: string): object {
  const { command } = entry
  const isRefusal = 'status' in entry
  return {
    completionResponse: {
      Completion: {
        value: {
          commandId: command.commandId,
          status: { ...(isRefusal ? entry.status : { code: 0, message: '' }), details: [] },
          updateId: isRefusal ? '' : entry.updateId,
          userId: command.userId,
          actAs: command.actAs,
          submissionId: command.submissionId,
          deduplicationPeriod: { Empty: {} },
          traceContext: {},
          offset: Number(entry.offset),
          synchronizerTime: {
            synchronizerId,
            recordTime: printInThrees(entry.recordTime),
          },
        },
      },
    },
  }
}
