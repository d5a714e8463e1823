import { isStorableText } from '../users/user.ts'
import type { Contract } from './contract.ts'

/**
 * What a stakeholder hands to somebody who shall use its contract: everything that the contract says,
 * as bytes. The embedded ledger knows every contract itself, so it takes none from a blob, but one
 * that says something else than the contract is refused, as everywhere.
 */
export function blobOf(contract: Contract): string {
  const { contractId, entry, payload, signatories, observers, createdAt } = contract
  const content = {
    contractId,
    templateId: entry.id,
    createArguments: entry.template.payload.toLossless(payload),
    signatories,
    observers,
    createdAt,
  }
  return Buffer.from(JSON.stringify(content)).toString('base64')
}

/** What can be told of a blob before the ledger is asked; undefined when it is none. */
export function readBlob(blob: string): { contractId: string; templateId: string } | undefined {
  try {
    const content: unknown = JSON.parse(Buffer.from(blob, 'base64').toString('utf8'))
    const { contractId, templateId } = content as Record<string, unknown>
    if (typeof contractId !== 'string' || typeof templateId !== 'string') return undefined
    if (!isStorableText(contractId)) return undefined
    return { contractId, templateId }
  } catch {
    return undefined
  }
}
