import { createHash } from 'node:crypto'
import type { Instant } from '../values/instant.ts'
import { importItem } from './item.ts'
import type { Ledger } from './ledger.ts'

/** Contracts of one step. */
const PAGE_CONTRACTS = 200

/**
 * The contracts that a migration carried over, as items of the history, by update id. They come
 * after the given id, so that who was interrupted goes on.
 */
export async function* importedContracts(
  ledger: Ledger,
  { after, recordTime }: { after: string; recordTime: Instant },
): AsyncGenerator<string[]> {
  const found: { updateId: string; contractId: string }[] = []
  for await (const page of ledger.activeAt({ offset: 0n, parties: 'any' })) {
    for (const { contractId } of page) {
      const updateId = importIdOf(ledger.migrationId, contractId)
      if (updateId > after) found.push({ updateId, contractId })
    }
  }
  found.sort((a, b) => (a.updateId < b.updateId ? -1 : 1))
  for (let start = 0; start < found.length; start += PAGE_CONTRACTS) {
    const items: string[] = []
    for (const { updateId, contractId } of found.slice(start, start + PAGE_CONTRACTS)) {
      const contract = await ledger.contract(contractId)
      if (contract === undefined) throw new Error(`Contract ${contractId} was carried over.`)
      items.push(
        importItem(contract, {
          updateId,
          migrationId: ledger.migrationId,
          recordTime,
          workflowId: `canton-network-acs-import-${ledger.migrationId}`,
          synchronizerId: contract.synchronizerId ?? (ledger.synchronizers[0] as string),
        }),
      )
    }
    yield items
  }
}

/** The same on every node that carries the same contract. */
function importIdOf(migrationId: bigint, contractId: string): string {
  const hash = createHash('sha256').update(`import/${migrationId}/${contractId}`).digest('hex')
  return `1220${hash}`
}
