import { LedgerError } from '../http/ledger-error.ts'
import type { TrafficAccount } from './traffic-account.ts'

/** The refusals of this part, one function each. Codes and categories are those of the protocol. */

export const contractNotFound = (contractId: string): LedgerError =>
  new LedgerError({
    code: 'CONTRACT_NOT_FOUND',
    category: 'missing',
    cause: `Contract could not be found with id ${contractId}`,
    resources: [['CONTRACT_ID', contractId]],
  })

export const contractArchived = (contractId: string): LedgerError =>
  new LedgerError({
    code: 'LOCAL_VERDICT_INACTIVE_CONTRACTS',
    category: 'missing',
    cause: `Contract ${contractId} is already archived. Read the active contracts again.`,
    resources: [['CONTRACT_ID', contractId]],
  })

/** Another transaction got there first while this one was under way. */
export const contractContended = (contractId: string): LedgerError =>
  new LedgerError({
    code: 'LOCAL_VERDICT_LOCKED_CONTRACTS',
    category: 'contention',
    cause: `Contract ${contractId} was consumed by another transaction that was under way at the same time. Read the active contracts again and repeat.`,
    resources: [['CONTRACT_ID', contractId]],
  })

export const ledgerIsOff = (reason: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_IS_OFF', category: 'missing', cause: reason })

export const ledgerBusy = (): LedgerError =>
  new LedgerError({
    code: 'PARTICIPANT_BACKPRESSURE',
    category: 'contention',
    cause: 'Too many submissions are under way. Repeat when the load has fallen.',
  })

export const insufficientAuthority = (action: string, missing: string[]): LedgerError =>
  new LedgerError({
    code: 'DAML_AUTHORIZATION_ERROR',
    category: 'invalid',
    cause: `${action} needs the consent of ${missing.join(', ')}, who have not given it.`,
    context: { missing_parties: missing.join(',') },
  })

export const malformedValue = (path: string, message: string): LedgerError =>
  new LedgerError({
    code: 'COMMAND_PREPROCESSING_FAILED',
    category: 'invalid',
    cause: `A value does not have the declared type: ${message}.`,
    context: { path },
  })

export const unknownTemplate = (id: string): LedgerError =>
  new LedgerError({
    code: 'TEMPLATES_OR_INTERFACES_NOT_FOUND',
    category: 'missing',
    cause: `This ledger has no template ${id}. Name it as #package-name:Module.Name:Entity.`,
    resources: [['TEMPLATE_ID', id]],
  })

export const wronglyTyped = (contractId: string, expected: string, actual: string): LedgerError =>
  new LedgerError({
    code: 'WRONGLY_TYPED_CONTRACT',
    category: 'precondition',
    cause: `Contract ${contractId} is a ${actual}, not a ${expected}.`,
    resources: [['CONTRACT_ID', contractId]],
  })

export const notImplemented = (contractId: string, interfaceId: string): LedgerError =>
  new LedgerError({
    code: 'CONTRACT_DOES_NOT_IMPLEMENT_INTERFACE',
    category: 'precondition',
    cause: `Contract ${contractId} does not implement ${interfaceId}. Exercise a choice of its template.`,
    resources: [
      ['CONTRACT_ID', contractId],
      ['INTERFACE_ID', interfaceId],
    ],
  })

export const unknownChoice = (template: string, choice: string, known: string[]): LedgerError =>
  new LedgerError({
    code: 'COMMAND_PREPROCESSING_FAILED',
    category: 'invalid',
    cause: `${template} has no choice ${choice}; its choices are ${known.join(', ')}.`,
  })

export const choiceRefused = (sentence: string): LedgerError =>
  new LedgerError({
    code: 'INTERPRETATION_USER_ERROR',
    category: 'precondition',
    cause: sentence,
  })

export const duplicateCommand = (
  commandId: string,
  by: { offset: bigint; submissionId: string },
): LedgerError =>
  new LedgerError({
    code: 'DUPLICATE_COMMAND',
    category: 'exists',
    cause: `A command with the id ${commandId} of the same user and parties was already accepted.`,
    context: {
      completion_offset: String(by.offset),
      existing_submission_id: by.submissionId,
    },
  })

export const noCommonSynchronizer = (): LedgerError =>
  new LedgerError({
    code: 'NO_COMMON_SYNCHRONIZER',
    category: 'precondition',
    cause:
      'The contracts of the transaction are on different synchronizers. Reassign them to one first.',
  })

export const contractInFlight = (contractId: string): LedgerError =>
  new LedgerError({
    code: 'CONTRACT_IS_BEING_REASSIGNED',
    category: 'precondition',
    cause: `Contract ${contractId} is on its way to another synchronizer. Assign it first.`,
    resources: [['CONTRACT_ID', contractId]],
  })

export const unknownSynchronizer = (id: string): LedgerError =>
  new LedgerError({
    code: 'INVALID_PRESCRIBED_SYNCHRONIZER_ID',
    category: 'precondition',
    cause: `This node is not connected to the synchronizer ${id}.`,
    resources: [['SYNCHRONIZER_ID', id]],
  })

export const reassignmentRefused = (reason: string): LedgerError =>
  new LedgerError({
    code: 'REASSIGNMENT_VALIDATION_FAILED',
    category: 'precondition',
    cause: reason,
  })

export const offsetAfterEnd = (offset: bigint, end: bigint): LedgerError =>
  new LedgerError({
    code: 'OFFSET_AFTER_LEDGER_END',
    category: 'outOfRange',
    cause: `The offset ${offset} lies after the end of the ledger, which is ${end}.`,
    context: { ledger_end: String(end) },
  })

export const listTooLong = (max: number): LedgerError =>
  new LedgerError({
    code: 'JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED',
    category: 'precondition',
    cause: `The list would have more than ${max} elements. Ask for fewer with ?limit=${max} and go on after the offset of the last one, or read the same path as a WebSocket stream.`,
    status: 413,
  })

export const pastPruned = (after: bigint, pruned: bigint): LedgerError =>
  new LedgerError({
    code: 'PARTICIPANT_PRUNED_DATA_ACCESSED',
    category: 'precondition',
    cause: `The request from offset ${after} precedes the pruned offset ${pruned}. Begin with the active contracts at ${pruned} or later; older updates are in the history of a scan.`,
    context: { earliest_offset: String(pruned) },
  })

export const staleStreamAuthorization = (): LedgerError =>
  new LedgerError({
    code: 'STALE_STREAM_AUTHORIZATION',
    category: 'contention',
    cause: 'The rights of the user have changed since the stream began. Open it again.',
  })

export const accessTokenExpired = (): LedgerError =>
  new LedgerError({
    code: 'ACCESS_TOKEN_EXPIRED',
    category: 'contention',
    cause: 'The token of the stream is no longer valid. Get a new one and open the stream again.',
  })

export const tooManyStreams = (max: number): LedgerError =>
  new LedgerError({
    code: 'MAXIMUM_NUMBER_OF_STREAMS',
    category: 'contention',
    cause: `This node already serves ${max} streams. Close those that are not needed, or open this one again later.`,
  })

export const contractEventsNotFound = (contractId: string): LedgerError =>
  new LedgerError({
    code: 'CONTRACT_EVENTS_NOT_FOUND',
    category: 'missing',
    cause: `There are no events of the contract ${contractId}, or none that the caller may read.`,
    resources: [['CONTRACT_ID', contractId]],
  })

export const updateNotFound = (): LedgerError =>
  new LedgerError({
    code: 'UPDATE_NOT_FOUND',
    category: 'missing',
    cause: 'There is no such update, or none that the caller may read.',
  })

export const notEnoughTraffic = (of: {
  memberId: string
  cost: bigint
  account: TrafficAccount
  available: { base: bigint; extra: bigint }
}): LedgerError => {
  const { memberId, cost, account, available } = of
  const sum = available.base + available.extra
  return new LedgerError({
    code: 'SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT',
    category: 'precondition',
    cause: `The submission costs ${cost} bytes of traffic, and ${memberId} has ${sum} (${available.base} of the base rate, ${available.extra} extra). Buy traffic, or wait until the base rate has refilled.`,
    context: {
      member: memberId,
      trafficCost: String(cost),
      extraTrafficLimit: String(account.purchased),
      extraTrafficConsumed: String(account.consumed),
      baseTrafficRemainder: String(available.base),
      availableTraffic: String(sum),
    },
  })
}

export const unknownInformees = (parties: string[]): LedgerError =>
  new LedgerError({
    code: 'UNKNOWN_INFORMEES',
    category: 'missing',
    cause: `The transaction needs parties that this ledger does not know: ${parties.slice(0, 8).join(', ')}. Allocate them first.`,
    resources: parties.map((party) => ['PARTY', party]),
  })
