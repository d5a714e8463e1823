import type { Db } from '../db/db.ts'
import { type Contract, isStakeholder } from './contract.ts'
import { selectActiveOf, selectContract, selectStakes } from './contracts-store.ts'
import { offsetAfterEnd, pastPruned } from './errors.ts'
import { consumedBy } from './item.ts'
import type { LedgerEnd } from './ledger-end.ts'
import { selectPruned } from './prune-store.ts'
import type { TemplateEntry } from './template.ts'
import { offsetOfUpdate } from './update-id.ts'
import {
  type LedgerEntry,
  type LedgerUpdate,
  selectEntriesAfter,
  selectUpdatesAfter,
} from './updates-store.ts'

export type ActiveQuery = { offset: bigint; parties: readonly string[] | 'any' }

/** Reads of the store, as far as the known end. */
export type LedgerReader = {
  /** Active contracts of a template in which the party has a stake. */
  contractsOf(template: string, party: string): Promise<Contract[]>
  /** Contracts that were active at an offset and in which one of the parties has a stake. */
  activeAt(query: ActiveQuery): AsyncGenerator<Contract[]>
  updatesAfter(offset: bigint, limit: number): Promise<LedgerUpdate[]>
  /** Every offset's: updates, and commands that were refused. */
  entriesAfter(offset: bigint, limit: number): Promise<LedgerEntry[]>
  update(updateId: string): Promise<LedgerUpdate | undefined>
}

/** Rows of one step of a long read. */
const PAGE_ROWS = 500

export function createLedgerReader(of: {
  db: Db
  end: LedgerEnd
  find(name: string): TemplateEntry
  /** Asks the store for the end. */
  refresh(): Promise<bigint>
}): LedgerReader {
  const { db, end, find, refresh } = of

  async function* activeAt({ offset, parties }: ActiveQuery): AsyncGenerator<Contract[]> {
    const last = await refresh()
    if (offset > last) throw offsetAfterEnd(offset, last)
    await requireUnpruned(offset)
    const readers = parties === 'any' ? undefined : new Set(parties)
    // A contract that is archived while we read comes up again below; each is told once.
    const told = new Set<string>()
    const take = (page: Contract[]) =>
      page.filter((contract) => {
        if (contract.createdOffset > offset || told.has(contract.contractId)) return false
        if (readers !== undefined && !isStakeholder(contract, readers)) return false
        told.add(contract.contractId)
        return true
      })
    for (const party of readers ?? [undefined]) {
      for await (const page of stakesOf(party)) yield take(page)
    }
    // What was archived since then stands in the updates since then.
    for (let after = offset; after < end.state.lastOffset; ) {
      const page = await updatesAfter(after, PAGE_ROWS)
      for (const { item } of page) yield take(await archivedBy(item))
      after = page.at(-1)?.offset ?? end.state.lastOffset
    }
    // What was pruned while we read may be missing.
    await requireUnpruned(offset)
  }

  async function* stakesOf(party: string | undefined): AsyncGenerator<Contract[]> {
    let after = { party: party ?? '', template: '', contractId: '' }
    for (;;) {
      const page = await selectStakes(db, { after, party, limit: PAGE_ROWS }, find)
      yield page.map(({ contract }) => contract)
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE_ROWS) return
      after = last.stake
    }
  }

  async function archivedBy(item: string): Promise<Contract[]> {
    const archived: Contract[] = []
    for (const contractId of consumedBy(item)) {
      const contract = await selectContract(db, contractId, find)
      if (contract !== undefined) archived.push(contract)
    }
    return archived
  }

  async function requireUnpruned(after: bigint): Promise<void> {
    const pruned = await selectPruned(db)
    if (after < pruned) throw pastPruned(after, pruned)
  }

  function updatesAfter(offset: bigint, limit: number): Promise<LedgerUpdate[]> {
    return selectUpdatesAfter(db, offset, { offset: end.state.lastOffset, limit })
  }

  return {
    async contractsOf(template, party) {
      const found: Contract[] = []
      for (let afterId = ''; ; ) {
        const page = await selectActiveOf(db, { party, template, afterId, limit: PAGE_ROWS }, find)
        found.push(...page)
        if (page.length < PAGE_ROWS) return found
        afterId = page.at(-1)?.contractId ?? ''
      }
    },
    activeAt,
    updatesAfter,
    /** Every offset is there, so that a gap is what was pruned. */
    async entriesAfter(offset, limit) {
      const page = await selectEntriesAfter(db, offset, { offset: end.state.lastOffset, limit })
      const [first] = page
      if (first !== undefined && first.offset !== offset + 1n) await requireUnpruned(offset)
      return page
    },
    async update(updateId) {
      const offset = offsetOfUpdate(end.state.nonce, updateId)
      if (offset === undefined || offset < 1n || offset > (await refresh())) return undefined
      const [update] = await selectUpdatesAfter(db, offset - 1n, { offset, limit: 1 })
      return update?.updateId === updateId ? update : undefined
    },
  }
}
