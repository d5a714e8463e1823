import { type Caller, canReadAs, hasRight } from '../users/caller.ts'
import { invalidArgument, invalidField, missingField, permissionDenied } from '../users/errors.ts'
import { type JsonObject, listField, objectField, textField } from '../users/request-fields.ts'
import { unknownTemplate } from './errors.ts'
import { asObject } from './json-object.ts'
import type { Ledger } from './ledger.ts'
import { requireParty } from './request-ids.ts'
import type { TemplateEntry } from './template.ts'

/** One thing that a reader wants: everything, a template, or what implements an interface. */
export type Filter = {
  kind: 'all' | 'template' | 'interface'
  /** The id of the template or interface. */
  id: string
  withView: boolean
  withBlob: boolean
}

export type EventFormat = {
  byParty: ReadonlyMap<string, readonly Filter[]>
  /** For every party of this participant, when asked for. */
  anyParty: readonly Filter[] | undefined
}

export type TransactionShape = 'delta' | 'effects'
export type UpdateFormat = {
  transactions: { format: EventFormat; shape: TransactionShape } | undefined
  reassignments: EventFormat | undefined
}

/** For whom an event is shown, and with what. */
export type Match = {
  witnesses: string[]
  /** Interfaces that were asked for and that the template implements. */
  interfaces: string[]
  /** Those of them whose view is wanted. */
  views: string[]
  withBlob: boolean
}

const SHAPES: Record<string, TransactionShape> = {
  '': 'delta',
  TRANSACTION_SHAPE_UNSPECIFIED: 'delta',
  TRANSACTION_SHAPE_ACS_DELTA: 'delta',
  TRANSACTION_SHAPE_LEDGER_EFFECTS: 'effects',
}

const EVERYTHING: readonly Filter[] = [{ kind: 'all', id: '', withView: false, withBlob: false }]

export function readEventFormat(ledger: Ledger, json: JsonObject): EventFormat {
  const byParty = new Map<string, readonly Filter[]>()
  for (const [party, filter] of Object.entries(objectField(json, 'filtersByParty') ?? {})) {
    byParty.set(
      requireParty(party),
      readFilters(ledger, asObject(filter, `filtersByParty.${party}`)),
    )
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
  const name = textField(json, 'transactionShape')
  const shape = Object.hasOwn(SHAPES, name) ? SHAPES[name] : undefined
  if (shape === undefined) {
    throw invalidField(
      'transaction_shape',
      'must be TRANSACTION_SHAPE_ACS_DELTA or TRANSACTION_SHAPE_LEDGER_EFFECTS',
    )
  }
  return { format: readEventFormat(ledger, objectField(json, 'eventFormat') ?? {}), shape }
}

export function formatFor(parties: readonly string[]): EventFormat {
  return { byParty: new Map(parties.map((party) => [party, EVERYTHING])), anyParty: undefined }
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

/** How the format shows something of the template that the parties see; undefined when it does not. */
export function matchFor(
  { byParty, anyParty = [] }: EventFormat,
  entry: TemplateEntry,
  parties: readonly string[],
): Match | undefined {
  const matching = (filters: readonly Filter[] = []) => filters.filter((one) => fits(one, entry))
  const forAny = matching(anyParty)
  const witnesses = parties.filter(
    (party) => forAny.length > 0 || matching(byParty.get(party)).length > 0,
  )
  if (witnesses.length === 0) return undefined
  const filters = [...forAny, ...witnesses.flatMap((party) => matching(byParty.get(party)))]
  const ofInterfaces = filters.filter(({ kind }) => kind === 'interface')
  return {
    witnesses,
    interfaces: idsOf(ofInterfaces),
    views: idsOf(ofInterfaces.filter(({ withView }) => withView)),
    withBlob: filters.some(({ withBlob }) => withBlob),
  }
}

function fits({ kind, id }: Filter, entry: TemplateEntry): boolean {
  if (kind === 'all') return true
  return kind === 'template' ? entry.id === id : entry.interfaces.has(id)
}

function idsOf(filters: readonly Filter[]): string[] {
  return [...new Set(filters.map(({ id }) => id))]
}

function readFilters(ledger: Ledger, json: JsonObject): readonly Filter[] {
  const cumulative = listField(json, 'cumulative')
  if (cumulative.length === 0) return EVERYTHING
  return cumulative.map((item) => {
    const filter = objectField(asObject(item, 'cumulative'), 'identifierFilter') ?? {}
    const [kind = 'Empty'] = Object.keys(filter)
    const held = objectField(filter, kind) ?? {}
    return readFilter(ledger, kind, objectField(held, 'value') ?? held)
  })
}

function readFilter(ledger: Ledger, kind: string, value: JsonObject): Filter {
  const withBlob = value.includeCreatedEventBlob === true
  if (kind === 'WildcardFilter' || kind === 'Empty') {
    return { kind: 'all', id: '', withView: false, withBlob }
  }
  if (kind === 'TemplateFilter') {
    const id = textField(value, 'templateId')
    if (id === '') throw missingField('template_id')
    return { kind: 'template', id: ledger.entry(id).id, withView: false, withBlob }
  }
  if (kind === 'InterfaceFilter') {
    const id = textField(value, 'interfaceId')
    if (id === '') throw missingField('interface_id')
    const known = ledger.interfaceId(id)
    if (known === undefined) throw unknownTemplate(id)
    const withView = value.includeInterfaceView === true
    return { kind: 'interface', id: known, withView, withBlob }
  }
  throw invalidArgument(
    `${kind} is no filter; use WildcardFilter, TemplateFilter or InterfaceFilter`,
  )
}
