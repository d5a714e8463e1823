import type { Instant } from '../values/instant.ts'
import type { TemplateEntry } from './template.ts'

/** A contract of the ledger, active unless it says where it was archived. */
export type Contract = {
  contractId: string
  entry: TemplateEntry
  payload: unknown
  /** Sorted, each once. */
  signatories: string[]
  /** Sorted, each once, without signatories. */
  observers: string[]
  createdAt: Instant
  createdOffset: bigint
  /** The number of its event in the transaction that created it. */
  createdNodeId: number
  archivedOffset: bigint | undefined
  /** Undefined while it is on its way from one synchronizer to the other. */
  synchronizerId: string | undefined
  reassignmentCounter: bigint
}

export function stakeholdersOf(contract: Contract): string[] {
  return [...contract.signatories, ...contract.observers]
}

export function isStakeholder(contract: Contract, parties: ReadonlySet<string>): boolean {
  return (
    contract.signatories.some((party) => parties.has(party)) ||
    contract.observers.some((party) => parties.has(party))
  )
}

/** Who submits with whose eyes, and what it was told of by stakeholders. */
export type Sight = { readers: ReadonlySet<string>; disclosed: readonly string[] }

/** A contract that the submitter may not see is none for it. */
export function isVisible(contract: Contract, { readers, disclosed }: Sight): boolean {
  return (
    contract.entry.template.isPublic !== undefined ||
    isStakeholder(contract, readers) ||
    disclosed.includes(contract.contractId)
  )
}
