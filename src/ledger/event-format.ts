import { type Caller, canReadAs, hasRight } from '../users/caller.ts'
import { invalidArgument, permissionDenied } from '../users/errors.ts'
import { type JsonObject, listField, objectField, textField } from '../users/request-fields.ts'
import type { Ledger } from './ledger.ts'
import { asObject } from './read-commands.ts'

/** Which contracts of which parties a reader wants: template names, or all. */
export type Wanted = ReadonlySet<string> | 'all'
export type EventFormat = {
  byParty: ReadonlyMap<string, Wanted>
  /** For every party of this participant, when asked for. */
  anyParty: Wanted | undefined
}

export type TransactionShape = 'delta' | 'effects'
export type UpdateFormat = {
  transactions: { format: EventFormat; shape: TransactionShape } | undefined
  reassignments: EventFormat | undefined
}

export function readEventFormat(ledger: Ledger, json: JsonObject): EventFormat {
  const byParty = new Map<string, Wanted>()
  for (const [party, filter] of Object.entries(objectField(json, 'filtersByParty') ?? {})) {
    byParty.set(party, readFilters(ledger, asObject(filter, `filtersByParty.${party}`)))
  }
  const anyParty = objectField(json, 'filtersForAnyParty')
  if (byParty.size === 0 && anyParty === undefined) {
    throw invalidArgument('filtersByParty must name a party, or filtersForAnyParty must be given')
  }
  return { byParty, anyParty: anyParty && readFilters(ledger, anyParty) }
}

/** The format of an update request, or the older `filter` and `verbose` beside it. */
export function readUpdateFormat(ledger: Ledger, body: JsonObject): UpdateFormat {
  const format = objectField(body, 'updateFormat')
  if (format === undefined) {
    const filter = objectField(body, 'filter')
    if (filter === undefined) throw invalidArgument('updateFormat is missing')
    const events = readEventFormat(ledger, filter)
    return { transactions: { format: events, shape: 'delta' }, reassignments: events }
  }
  const transactions = objectField(format, 'includeTransactions')
  const reassignments = objectField(format, 'includeReassignments')
  return {
    transactions: transactions && readTransactionFormat(ledger, transactions),
    reassignments: reassignments && readEventFormat(ledger, reassignments),
  }
}

export function readTransactionFormat(
  ledger: Ledger,
  json: JsonObject,
): NonNullable<UpdateFormat['transactions']> {
  const shape = textField(json, 'transactionShape')
  return {
    format: readEventFormat(ledger, objectField(json, 'eventFormat') ?? {}),
    shape: shape === 'TRANSACTION_SHAPE_LEDGER_EFFECTS' ? 'effects' : 'delta',
  }
}

export function formatFor(parties: readonly string[]): EventFormat {
  return { byParty: new Map(parties.map((party) => [party, 'all'])), anyParty: undefined }
}

export function requireReader(caller: Caller, format: EventFormat): void {
  const mayReadAll = hasRight(caller, 'CanReadAsAnyParty') || hasRight(caller, 'CanActAsAnyParty')
  if (format.anyParty !== undefined && !mayReadAll) {
    throw permissionDenied('the caller may not read as any party')
  }
  for (const party of format.byParty.keys()) {
    if (!canReadAs(caller, party)) throw permissionDenied(`the caller may not read as ${party}`)
  }
}

/** Those of the parties whose filters want the template. */
export function wantedBy(
  { byParty, anyParty }: EventFormat,
  template: string,
  parties: readonly string[],
): string[] {
  const wants = (wanted: Wanted | undefined) => wanted === 'all' || (wanted?.has(template) ?? false)
  if (wants(anyParty)) return [...parties]
  return parties.filter((party) => wants(byParty.get(party)))
}

function readFilters(ledger: Ledger, json: JsonObject): Wanted {
  const cumulative = listField(json, 'cumulative')
  if (cumulative.length === 0) return 'all'
  const names = new Set<string>()
  for (const item of cumulative) {
    const filter = objectField(asObject(item, 'cumulative'), 'identifierFilter') ?? {}
    const [kind] = Object.keys(filter)
    if (kind === undefined || kind === 'WildcardFilter' || kind === 'Empty') return 'all'
    if (kind !== 'TemplateFilter') {
      throw invalidArgument(`${kind} is not supported; filter by template`)
    }
    const held = objectField(filter, kind) ?? {}
    const value = objectField(held, 'value') ?? held
    names.add(ledger.entry(textField(value, 'templateId')).template.name)
  }
  return names
}
