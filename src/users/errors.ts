import { LedgerError } from '../http/ledger-error.ts'

/** The refusals of this part, one function each. Codes and categories are stable; wording is not. */

export const unauthenticated = (detail: string): LedgerError =>
  new LedgerError({
    code: 'UNAUTHENTICATED',
    category: 'unauthenticated',
    cause: 'The request carries no valid token.',
    headers: { 'www-authenticate': 'Bearer' },
    detail,
  })

export const permissionDenied = (detail: string): LedgerError =>
  new LedgerError({
    code: 'PERMISSION_DENIED',
    category: 'denied',
    cause: 'The caller may not do this.',
    detail,
  })

export const notAcceptable = (): LedgerError =>
  new LedgerError({
    code: 'NOT_ACCEPTABLE',
    category: 'invalid',
    cause: 'The answer is application/json, which the Accept header excludes.',
    status: 406,
  })

export const invalidArgument = (reason: string): LedgerError =>
  new LedgerError({
    code: 'INVALID_ARGUMENT',
    category: 'invalid',
    cause: `The submitted request has invalid arguments: ${reason}`,
  })

export const invalidField = (field: string, reason: string): LedgerError =>
  new LedgerError({
    code: 'INVALID_FIELD',
    category: 'invalid',
    cause: `The submitted request has a field with invalid value: Invalid field ${field}: ${reason}`,
    context: { field_name: field },
  })

export const missingField = (field: string): LedgerError =>
  new LedgerError({
    code: 'MISSING_FIELD',
    category: 'invalid',
    cause: `The submitted request is missing a mandatory field: ${field}`,
    context: { field_name: field },
  })

export const invalidToken = (field: string, reason: string): LedgerError =>
  new LedgerError({
    code: 'INVALID_TOKEN',
    category: 'invalid',
    cause: `The submitted token has a field with invalid value: Invalid field ${field}: ${reason}`,
    context: { ledger_api_error: 'invalid token' },
  })

/** Clients recognise a node without authentication by the first words of this cause. */
export const missingUserId = (): LedgerError =>
  new LedgerError({
    code: 'INVALID_TOKEN',
    category: 'invalid',
    cause:
      'The submitted request is missing a user-id: this node runs without authentication, so there is no authenticated user',
  })

export const userNotFound = (operation: string, userId: string): LedgerError =>
  new LedgerError({
    code: 'USER_NOT_FOUND',
    category: 'missing',
    cause: `${operation} failed for unknown user "${userId}"`,
    resources: [['USER', userId]],
  })

export const userAlreadyExists = (userId: string): LedgerError =>
  new LedgerError({
    code: 'USER_ALREADY_EXISTS',
    category: 'exists',
    cause: `creating user failed, as user "${userId}" already exists`,
    resources: [['USER', userId]],
  })

export const tooManyUserRights = (operation: string, userId: string): LedgerError =>
  new LedgerError({
    code: 'TOO_MANY_USER_RIGHTS',
    category: 'precondition',
    cause: `${operation} failed, as user "${userId}" would have too many rights.`,
    resources: [['USER', userId]],
  })

export const invalidUserUpdate = (userId: string, reason: string): LedgerError =>
  new LedgerError({
    code: 'INVALID_USER_UPDATE_REQUEST',
    category: 'invalid',
    cause: `Update operation for user '${userId}' failed: ${reason}`,
    resources: [['USER', userId]],
  })

export const concurrentUserUpdate = (userId: string): LedgerError =>
  new LedgerError({
    code: 'CONCURRENT_USER_UPDATE_DETECTED',
    category: 'contention',
    cause: `Update operation for user '${userId}' failed due to a concurrent update to the same user. Read the user again and repeat with its new resourceVersion.`,
    resources: [['USER', userId]],
  })

export const userAnnotationsTooLarge = (userId: string): LedgerError =>
  new LedgerError({
    code: 'MAX_USER_ANNOTATIONS_SIZE_EXCEEDED',
    category: 'precondition',
    cause: `The annotations of user '${userId}' would exceed 256 KiB.`,
    resources: [['USER', userId]],
  })

export const unknownProvider = (id: string): LedgerError =>
  invalidArgument(`Provided identity_provider_id ${id} has not been found.`)

export const providerNotFound = (operation: string, id: string): LedgerError =>
  new LedgerError({
    code: 'IDP_CONFIG_NOT_FOUND',
    category: 'missing',
    cause: `${operation} failed for unknown identity provider id="${id}"`,
    resources: [['IDENTITY_PROVIDER_CONFIG', id]],
  })

export const providerAlreadyExists = (id: string): LedgerError =>
  new LedgerError({
    code: 'IDP_CONFIG_ALREADY_EXISTS',
    category: 'exists',
    cause: `creating identity provider config failed, as identity provider "${id}" already exists`,
    resources: [['IDENTITY_PROVIDER_CONFIG', id]],
  })

export const issuerAlreadyExists = (operation: string, issuer: string): LedgerError =>
  new LedgerError({
    code: 'IDP_CONFIG_ISSUER_ALREADY_EXISTS',
    category: 'exists',
    cause: `${operation} failed, as identity provider with issuer "${issuer}" already exists`,
    resources: [['IDENTITY_PROVIDER_CONFIG', issuer]],
  })

export const tooManyProviders = (id: string): LedgerError =>
  new LedgerError({
    code: 'TOO_MANY_IDENTITY_PROVIDER_CONFIGS',
    category: 'precondition',
    cause: 'creating identity provider config failed. A node holds at most 16; delete one first.',
    resources: [['IDENTITY_PROVIDER_CONFIG', id]],
  })

export const invalidProviderUpdate = (id: string, reason: string): LedgerError =>
  new LedgerError({
    code: 'INVALID_IDENTITY_PROVIDER_UPDATE_REQUEST',
    category: 'invalid',
    cause: `Update operation for identity provider config '${id}' failed: ${reason}`,
    resources: [['IDENTITY_PROVIDER_CONFIG', id]],
  })

export const providerInUse = (id: string, held: { users: number; parties: number }): LedgerError =>
  new LedgerError({
    code: 'IDP_CONFIG_IN_USE',
    category: 'precondition',
    cause: `deleting identity provider config failed, as identity provider "${id}" still has ${count(held.users, 'user', 'users')} and ${count(held.parties, 'party', 'parties')}. Move its users to another provider first.`,
    context: { users: String(held.users), parties: String(held.parties) },
    resources: [['IDENTITY_PROVIDER_CONFIG', id]],
  })

export const unknownParties = (parties: string[]): LedgerError =>
  new LedgerError({
    code: 'UNKNOWN_RESOURCE',
    category: 'missing',
    cause: `The submitted request refers to a non-existing PARTIES: ${parties.slice(0, 8).join(', ')}`,
    resources: [['PARTIES', parties.join(',')]],
  })

export const partyNotFound = (party: string): LedgerError =>
  new LedgerError({
    code: 'PARTY_NOT_FOUND',
    category: 'missing',
    cause: `updating party failed for unknown party "${party}"`,
    resources: [['PARTY', party]],
  })

export const invalidPartyUpdate = (party: string, reason: string): LedgerError =>
  new LedgerError({
    code: 'INVALID_PARTY_DETAILS_UPDATE_REQUEST',
    category: 'invalid',
    cause: `Update operation for party '${party}' failed: ${reason}`,
    resources: [['PARTY', party]],
  })

export const concurrentPartyUpdate = (party: string): LedgerError =>
  new LedgerError({
    code: 'CONCURRENT_PARTY_DETAILS_UPDATE_DETECTED',
    category: 'contention',
    cause: `Update operation for party '${party}' failed due to a concurrent update to the same party. Read the party again and repeat with its new resourceVersion.`,
    resources: [['PARTY', party]],
  })

export const partyAnnotationsTooLarge = (party: string): LedgerError =>
  new LedgerError({
    code: 'MAX_PARTY_DETAILS_ANNOTATIONS_SIZE_EXCEEDED',
    category: 'precondition',
    cause: `The annotations of party '${party}' would exceed 256 KiB.`,
    resources: [['PARTY', party]],
  })

const count = (number: number, one: string, many: string): string =>
  `${number} ${number === 1 ? one : many}`
