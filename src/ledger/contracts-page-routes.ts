import type { FastifyInstance } from 'fastify'
import { type Authentication, callerOf, guard } from '../users/caller.ts'
import { invalidArgument, invalidField } from '../users/errors.ts'
import { bodyOf, type JsonObject, objectField, textField } from '../users/request-fields.ts'
import { activeContractJson } from './api-json.ts'
import { type Contract, stakeholdersOf } from './contract.ts'
import { selectContract, selectStakes } from './contracts-store.ts'
import { offsetAfterEnd, pastPruned } from './errors.ts'
import { type EventFormat, readEventFormat, requireReader } from './event-format.ts'
import { consumedBy } from './item.ts'
import type { Ledger } from './ledger.ts'

/**
 * Where a page ends. First come the contracts that are active still, by party, template and id; then those
 * that were archived since the offset, by the update that archived them. A contract that is archived
 * while pages are read may come in both.
 */
type Place =
  | { after: { party: string; template: string; contractId: string } }
  | { archivedAfter: bigint; skip: number }

type Page = { contracts: object[]; next: Place | undefined }

const PAGE_MAX = 1000
/** Rows that are looked at in one step. */
const STEP_ROWS = 500
const STEP_UPDATES = 50
/** A page may come back with less than asked for, or empty, so that no request takes long. */
const STEPS_MAX = 100
const TOKEN_CHARACTERS_MAX = 2048
const BEGINNING: Place = { after: { party: '', template: '', contractId: '' } }

/** /v2/state/active-contracts-page: the contracts that were active at an offset, however many they are. */
export const contractsPageRoutes = async (
  app: FastifyInstance,
  { ledger, authentication }: { ledger: Ledger; authentication: Authentication },
): Promise<void> => {
  app.post('/v2/state/active-contracts-page', guard(authentication), async (request) => {
    const body = bodyOf(request)
    const stated = objectField(body, 'eventFormat')
    if (stated === undefined) throw invalidArgument('eventFormat is missing')
    const format = readEventFormat(ledger, stated)
    requireReader(callerOf(request), format)
    const end = await ledger.refresh()
    const offset = BigInt(readWhole(body, 'activeAtOffset') ?? end)
    if (offset > end) throw offsetAfterEnd(offset, end)
    const pruned = await ledger.pruned()
    if (offset < pruned) throw pastPruned(offset, pruned)
    const size = Math.min(Number(readWhole(body, 'maxPageSize') ?? PAGE_MAX), PAGE_MAX)
    if (size < 1) throw invalidField('max_page_size', 'must be at least 1')
    const page = await readPage(ledger, {
      offset,
      format,
      size,
      place: placeOf(textField(body, 'pageToken')),
    })
    return {
      activeContracts: page.contracts,
      activeAtOffset: Number(offset),
      ...(page.next === undefined ? {} : { nextPageToken: tokenOf(page.next) }),
    }
  })
}

type Query = { offset: bigint; format: EventFormat; size: number; place: Place }

async function readPage(ledger: Ledger, { offset, format, size, place }: Query): Promise<Page> {
  const contracts: object[] = []
  const take = (contract: Contract): void => {
    const shown = contract.createdOffset > offset ? undefined : activeContractJson(contract, format)
    if (shown !== undefined) contracts.push(shown)
  }
  let next: Place | undefined = place
  for (let step = 0; next !== undefined && contracts.length < size && step < STEPS_MAX; step += 1) {
    const limit = Math.min(size - contracts.length, STEP_ROWS)
    next =
      'after' in next
        ? await readActive(ledger, { after: next.after, format, limit, offset, take })
        : await readArchived(ledger, next, () => contracts.length >= size, take)
  }
  return { contracts, next }
}

/** One step; a contract comes at the first of its stakeholders that was asked for. */
async function readActive(
  ledger: Ledger,
  of: {
    after: { party: string; template: string; contractId: string }
    format: EventFormat
    limit: number
    offset: bigint
    take(contract: Contract): void
  },
): Promise<Place> {
  const { format, limit, take } = of
  const parties = format.anyParty === undefined ? [...format.byParty.keys()].sort() : undefined
  // The whole stretch of a party is read before the next one begins.
  const party = parties?.find((name) => name >= of.after.party)
  const archived: Place = { archivedAfter: of.offset, skip: 0 }
  if (parties !== undefined && party === undefined) return archived
  const after =
    party === undefined || party === of.after.party
      ? of.after
      : { party, template: '', contractId: '' }
  const find = (name: string) => ledger.entryOf({ name })
  const rows = await selectStakes(ledger.db, { after, party, limit }, find)
  for (const { stake, contract } of rows) {
    const asked = parties === undefined ? undefined : new Set(parties)
    const first = stakeholdersOf(contract)
      .filter((name) => asked?.has(name) ?? true)
      .sort()[0]
    if (first === stake.party) take(contract)
  }
  const last = rows.at(-1)
  if (last !== undefined && rows.length === limit) return { after: last.stake }
  const following = parties?.find((name) => party !== undefined && name > party)
  return following === undefined
    ? archived
    : { after: { party: following, template: '', contractId: '' } }
}

/** One step, which may end amid the contracts that one update has archived. */
async function readArchived(
  ledger: Ledger,
  from: { archivedAfter: bigint; skip: number },
  isFull: () => boolean,
  take: (contract: Contract) => void,
): Promise<Place | undefined> {
  const updates = await ledger.updatesAfter(from.archivedAfter, STEP_UPDATES)
  const find = (name: string) => ledger.entryOf({ name })
  let { skip } = from
  for (const { item, offset } of updates) {
    for (const [index, contractId] of consumedBy(item).entries()) {
      if (index < skip) continue
      if (isFull()) return { archivedAfter: offset - 1n, skip: index }
      const contract = await selectContract(ledger.db, contractId, find)
      if (contract !== undefined) take(contract)
    }
    skip = 0
  }
  const last = updates.at(-1)
  if (last === undefined || updates.length < STEP_UPDATES) return undefined
  return { archivedAfter: last.offset, skip: 0 }
}

function tokenOf(place: Place): string {
  const json =
    'after' in place
      ? [place.after.party, place.after.template, place.after.contractId]
      : [String(place.archivedAfter), String(place.skip)]
  return Buffer.from(JSON.stringify(json)).toString('base64url')
}

/** It is neither signed nor tied to the caller, because it tells nothing that the page did not. */
function placeOf(token: string): Place {
  if (token === '') return BEGINNING
  try {
    if (token.length > TOKEN_CHARACTERS_MAX) throw new RangeError('the token is too long')
    const json = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as string[]
    const isText = Array.isArray(json) && json.every((part) => typeof part === 'string')
    const [first = '', template = '', contractId = ''] = isText ? json : []
    if (isText && json.length === 3) return { after: { party: first, template, contractId } }
    if (isText && json.length === 2 && [first, template].every((part) => /^\d{1,15}$/.test(part))) {
      return { archivedAfter: BigInt(first), skip: Number(template) }
    }
  } catch {
    throw invalidArgument('Invalid page token')
  }
  throw invalidArgument('Invalid page token')
}

function readWhole(body: JsonObject, key: string): bigint | undefined {
  const value = body[key] ?? undefined
  if (value === undefined || value === '') return undefined
  if (!/^\d{1,18}$/.test(String(value))) throw invalidField(key, 'must be a whole number')
  return BigInt(String(value))
}
