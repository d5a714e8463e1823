import type { Contract } from './contract.ts'

/** Active contracts as of the ledger's end: whoever moves the end keeps it true or clears it. */
export type ContractCache = {
  get(contractId: string): Contract | undefined
  remember(contract: Contract): void
  clear(): void
}

/** Contracts kept in memory: a few hundred bytes each. */
const CACHED_CONTRACTS_MAX = 20_000

export function createContractCache(): ContractCache {
  const cached = new Map<string, Contract>()
  return {
    get: (contractId) => cached.get(contractId),
    remember(contract) {
      cached.delete(contract.contractId)
      if (contract.archivedOffset !== undefined) return
      cached.set(contract.contractId, contract)
      if (cached.size <= CACHED_CONTRACTS_MAX) return
      const [oldest] = cached.keys()
      if (oldest !== undefined) cached.delete(oldest)
    },
    clear: () => cached.clear(),
  }
}
