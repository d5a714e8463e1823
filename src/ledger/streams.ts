import { activeContractJson, completionJson, updateJson } from './api-json.ts'
import { offsetAfterEnd } from './errors.ts'
import type { EventFormat, UpdateFormat } from './event-format.ts'
import type { Ledger } from './ledger.ts'
import type { LedgerEntry } from './updates-store.ts'

// What readers of the ledger API get, an element at a time: the same for a list and for a stream.

export type Range = {
  /** The first update is the one after this offset. */
  after: bigint
  /** The last one; without it the stream goes on with the ledger. */
  until: bigint | undefined
  signal: AbortSignal
  /** Asked where the ledger ends for the time being; a stream that may not wait is over. */
  mayWait?: () => boolean
}

/** Updates of one step of a stream. */
const PAGE_UPDATES = 200

export async function* readActiveContracts(
  ledger: Ledger,
  query: { offset: bigint; format: EventFormat },
): AsyncGenerator<object> {
  const { offset, format } = query
  const parties = format.anyParty === undefined ? [...format.byParty.keys()] : 'any'
  for await (const page of ledger.activeAt({ offset, parties })) {
    for (const contract of page) {
      const shown = activeContractJson(contract, format)
      if (shown !== undefined) yield shown
    }
  }
}

export async function* readUpdates(
  ledger: Ledger,
  range: Range,
  format: UpdateFormat,
): AsyncGenerator<object> {
  for await (const update of entriesOf(ledger, range)) {
    if (!('item' in update)) continue
    const shown = await updateJson(ledger, update, format)
    if (shown !== undefined) yield shown
  }
}

export async function* readCompletions(
  ledger: Ledger,
  range: Range,
  of: { userId: string; parties: readonly string[] },
): AsyncGenerator<object> {
  for await (const entry of entriesOf(ledger, range)) {
    const { command } = entry
    const isAsked =
      command.commandId !== '' &&
      command.userId === of.userId &&
      command.actAs.some((party) => of.parties.includes(party))
    if (isAsked) yield completionJson(entry, ledger.synchronizers[0] as string)
  }
}

async function* entriesOf(ledger: Ledger, range: Range): AsyncGenerator<LedgerEntry> {
  const { until, signal } = range
  let cursor = range.after
  const end = await ledger.refresh()
  if (cursor > end) throw offsetAfterEnd(cursor, end)
  while (!signal.aborted && (until === undefined || cursor < until)) {
    const page = await ledger.entriesAfter(cursor, PAGE_UPDATES)
    if (page.length === 0) {
      if (range.mayWait?.() === false || ledger.isClosed) return
      await waitForMore(ledger, cursor, signal)
    }
    for (const entry of page) {
      if (signal.aborted || (until !== undefined && entry.offset > until)) return
      yield entry
      cursor = entry.offset
    }
  }
}

/** Updates of another process that shares the database are looked for this often. */
const POLL_MS = 100

async function waitForMore(ledger: Ledger, cursor: bigint, signal: AbortSignal): Promise<void> {
  if (ledger.db.engine === 'sqlite') return ledger.waitAfter(cursor, signal)
  await ledger.waitAfter(cursor, AbortSignal.any([signal, AbortSignal.timeout(POLL_MS)]))
  await ledger.refresh()
}
