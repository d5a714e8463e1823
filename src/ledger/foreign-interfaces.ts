import type { Interface } from './template.ts'

/**
 * Interfaces of the token standard that no template here implements. Wallets ask for all of the standard
 * at once: what is known and has no contract is nothing, what is unknown would be a mistake of theirs.
 */
export const FOREIGN_INTERFACES: readonly Interface[] = [
  {
    packageName: 'splice-api-token-metadata-v1',
    name: 'Splice.Api.Token.MetadataV1:AnyContract',
  },
  {
    packageName: 'splice-api-token-allocation-v1',
    name: 'Splice.Api.Token.AllocationV1:Allocation',
  },
  {
    packageName: 'splice-api-token-allocation-request-v1',
    name: 'Splice.Api.Token.AllocationRequestV1:AllocationRequest',
  },
  {
    packageName: 'splice-api-token-allocation-instruction-v1',
    name: 'Splice.Api.Token.AllocationInstructionV1:AllocationInstruction',
  },
  {
    packageName: 'splice-api-token-allocation-instruction-v1',
    name: 'Splice.Api.Token.AllocationInstructionV1:AllocationFactory',
  },
]
