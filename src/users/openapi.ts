import { closed, flag, lax, listOf, ref, type Schema, schemas, text } from './openapi-schemas.ts'

/** The OpenAPI document of the ledger API: one row for each operation. */
type Operation = {
  summary: string
  query?: Record<string, Schema>
  body?: Schema
  answer: Schema
  /** Asked for without a token. */
  open?: true
  tag?: string
}

const count: Schema = { type: 'integer' }
const pageSize: Schema = { type: 'integer', format: 'int32', minimum: 0 }
const paging = { pageSize, pageToken: text }
const provider = { 'identity-provider-id': text }
const listQuery = { limit: count, stream_idle_timeout_ms: count }
const nothing = closed({})
const oneUser = closed({ user: ref('User') })
const rightsBody = lax({
  userId: text,
  identityProviderId: text,
  rights: listOf(ref('RightRequest')),
})
const mask = ref('UpdateMask')
const oneProvider = closed({ identityProviderConfig: ref('IdentityProviderConfig') })
const oneParty = closed({ partyDetails: ref('PartyDetails') })

const operations: Record<string, Operation> = {
  'GET /v2/users': {
    summary: 'List the users of one identity provider, by id.',
    query: { ...paging, ...provider },
    answer: closed({ users: listOf(ref('User')), nextPageToken: text }),
  },
  'POST /v2/users': {
    summary: 'Create a user with its first rights.',
    body: lax({ user: ref('UserRequest'), rights: listOf(ref('RightRequest')) }),
    answer: oneUser,
  },
  'GET /v2/users/{user-id}': { summary: 'Get a user.', query: provider, answer: oneUser },
  'PATCH /v2/users/{user-id}': {
    summary: 'Change the fields of a user that the mask names.',
    body: lax({ user: ref('UserRequest'), updateMask: mask }),
    answer: oneUser,
  },
  'DELETE /v2/users/{user-id}': { summary: 'Delete a user.', query: provider, answer: nothing },
  'GET /v2/users/{user-id}/rights': {
    summary: 'List the rights of a user.',
    query: provider,
    answer: closed({ rights: listOf(ref('Right')) }),
  },
  'POST /v2/users/{user-id}/rights': {
    summary: 'Grant rights; the answer has those that are new.',
    body: rightsBody,
    answer: closed({ newlyGrantedRights: listOf(ref('Right')) }),
  },
  'PATCH /v2/users/{user-id}/rights': {
    summary: 'Revoke rights; the answer has those that were held.',
    body: rightsBody,
    answer: closed({ newlyRevokedRights: listOf(ref('Right')) }),
  },
  'PATCH /v2/users/{user-id}/identity-provider-id': {
    summary: 'Move a user from one identity provider to another.',
    body: lax({ userId: text, sourceIdentityProviderId: text, targetIdentityProviderId: text }),
    answer: nothing,
  },
  'GET /v2/authenticated-user': {
    summary: 'Get the user of the token.',
    query: provider,
    answer: oneUser,
  },
  'GET /v2/idps': {
    summary: 'List the identity providers, by id.',
    answer: closed({ identityProviderConfigs: listOf(ref('IdentityProviderConfig')) }),
  },
  'POST /v2/idps': {
    summary: 'Create an identity provider.',
    body: lax({ identityProviderConfig: ref('IdentityProviderConfigRequest') }),
    answer: oneProvider,
  },
  'GET /v2/idps/{idp-id}': { summary: 'Get an identity provider.', answer: oneProvider },
  'PATCH /v2/idps/{idp-id}': {
    summary: 'Change the fields of an identity provider that the mask names.',
    body: lax({ identityProviderConfig: ref('IdentityProviderConfigRequest'), updateMask: mask }),
    answer: oneProvider,
  },
  'DELETE /v2/idps/{idp-id}': {
    summary: 'Delete an identity provider that has no users and no parties.',
    answer: nothing,
  },
  'GET /v2/parties': {
    summary: 'List the known parties, by id.',
    query: { ...paging, ...provider, 'filter-party': text },
    answer: closed({ partyDetails: listOf(ref('PartyDetails')), nextPageToken: text }),
  },
  'POST /v2/parties': {
    summary: 'Allocate a party on this participant.',
    body: lax({
      partyIdHint: text,
      localMetadata: lax({ resourceVersion: text, annotations: { type: 'object' } }),
      identityProviderId: text,
      synchronizerId: text,
      userId: text,
    }),
    answer: oneParty,
  },
  'GET /v2/parties/participant-id': {
    summary: 'Get the id of this participant.',
    answer: closed({ participantId: text }),
  },
  'GET /v2/parties/{party}': {
    summary: 'Get parties; those that are unknown are left out.',
    query: { ...provider, parties: listOf(text) },
    answer: closed({ partyDetails: listOf(ref('PartyDetails')) }),
  },
  'PATCH /v2/parties/{party}': {
    summary: 'Change the local metadata of a party.',
    body: lax({ partyDetails: ref('PartyDetailsRequest'), updateMask: mask }),
    answer: oneParty,
  },
  'GET /v2/version': {
    summary: 'Get the version of the ledger API and its limits.',
    open: true,
    answer: closed({
      version: text,
      features: closed({
        experimental: closed({
          staticTime: closed({ supported: flag }),
          commandInspectionService: closed({ supported: flag }),
        }),
        userManagement: closed({
          supported: flag,
          maxRightsPerUser: count,
          maxUsersPageSize: count,
        }),
        partyManagement: closed({ maxPartiesPageSize: count }),
        offsetCheckpoint: closed({
          maxOffsetCheckpointEmissionDelay: closed({ seconds: count, nanos: count }),
        }),
        packageFeature: closed({ maxVettedPackagesPageSize: count }),
      }),
    }),
  },
  'GET /v2/state/connected-synchronizers': {
    summary: 'List the synchronizers that this participant is connected to.',
    answer: closed({
      connectedSynchronizers: listOf(
        closed({ synchronizerAlias: text, synchronizerId: text, permission: text }),
      ),
    }),
  },
  'POST /v2/commands/submit-and-wait': {
    summary: 'Submit commands as one transaction and wait until it is durable.',
    body: ref('Commands'),
    answer: closed({ updateId: text, completionOffset: count }),
  },
  'POST /v2/commands/submit-and-wait-for-transaction': {
    summary: 'Submit commands as one transaction; the answer has the transaction.',
    body: lax({ commands: ref('Commands'), transactionFormat: { type: 'object' } }),
    answer: closed({ transaction: { type: 'object' } }),
  },
  'POST /v2/commands/submit-and-wait-for-reassignment': {
    summary: 'Unassign a contract from its synchronizer, or assign it to another.',
    body: lax({ reassignmentCommands: { type: 'object' } }),
    answer: closed({ reassignment: { type: 'object' } }),
  },
  'POST /v2/commands/completions': {
    summary: 'List the completions of commands after an offset; a WebSocket streams them.',
    query: listQuery,
    body: lax({ userId: text, parties: listOf(text), beginExclusive: count }),
    answer: listOf({ type: 'object' }),
  },
  'GET /v2/state/ledger-end': {
    summary: 'Get the offset of the last update.',
    answer: closed({ offset: count }),
  },
  'GET /v2/state/latest-pruned-offsets': {
    summary: 'Get the offset up to which updates were pruned; 0 is none.',
    answer: closed({
      participantPrunedUpToInclusive: count,
      allDivulgedContractsPrunedUpToInclusive: count,
    }),
  },
  'POST /v2/state/active-contracts': {
    summary: 'List the contracts that were active at an offset; a WebSocket streams them.',
    query: listQuery,
    body: lax({ eventFormat: { type: 'object' }, activeAtOffset: count }),
    answer: listOf({ type: 'object' }),
  },
  'POST /v2/state/active-contracts-page': {
    summary: 'Page through the contracts that were active at an offset.',
    body: lax({
      eventFormat: { type: 'object' },
      activeAtOffset: count,
      maxPageSize: count,
      pageToken: text,
    }),
    answer: {
      type: 'object',
      properties: {
        activeContracts: listOf({ type: 'object' }),
        activeAtOffset: count,
        nextPageToken: text,
      },
      required: ['activeContracts', 'activeAtOffset'],
      additionalProperties: false,
    },
  },
  'POST /v2/updates': {
    summary: 'List the updates after an offset; a WebSocket streams them as they come.',
    query: listQuery,
    body: lax({ beginExclusive: count, endInclusive: count, updateFormat: { type: 'object' } }),
    answer: listOf({ type: 'object' }),
  },
  'POST /v2/updates/update-by-id': {
    summary: 'Get one update.',
    body: lax({ updateId: text, updateFormat: { type: 'object' } }),
    answer: { type: 'object' },
  },
  'POST /v2/updates/update-by-offset': {
    summary: 'Get the update at an offset.',
    body: lax({ offset: count, updateFormat: { type: 'object' } }),
    answer: { type: 'object' },
  },
  'POST /v2/updates/transaction-by-id': {
    summary: 'Get one transaction.',
    body: lax({ updateId: text, transactionFormat: { type: 'object' } }),
    answer: { type: 'object' },
  },
  'POST /v2/updates/transaction-by-offset': {
    summary: 'Get the transaction at an offset.',
    body: lax({ offset: count, transactionFormat: { type: 'object' } }),
    answer: { type: 'object' },
  },
  'POST /v2/updates/flats': {
    summary: 'List the transactions after an offset, as older clients ask for them.',
    query: listQuery,
    body: lax({ beginExclusive: count, endInclusive: count, filter: { type: 'object' } }),
    answer: listOf({ type: 'object' }),
  },
  'POST /v2/events/events-by-contract-id': {
    summary: 'Tell how a contract came and went.',
    body: lax({ contractId: text, eventFormat: { type: 'object' } }),
    answer: { type: 'object' },
  },
  'GET /v2/audit': {
    summary: 'List administrative changes, newest first; of one user, identity provider or party.',
    query: { ...paging, user: text, idp: text, party: text },
    answer: closed({ entries: listOf(ref('AuditEntry')), nextPageToken: text }),
    tag: 'internal',
  },
  'GET /readyz': { summary: 'Whether this node is ready to serve requests.', answer: text },
  'GET /livez': { summary: 'Whether this process runs.', open: true, answer: {} },
}

export type OpenApiDocument = {
  openapi: string
  info: Record<string, unknown>
  security: unknown[]
  paths: Record<string, Record<string, Schema>>
  components: { schemas: Record<string, Schema>; securitySchemes: Schema }
}

export const ledgerOpenApi = (version: string): OpenApiDocument => {
  const paths: OpenApiDocument['paths'] = {}
  for (const [name, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = name.split(' ')
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: describe(method, path, operation),
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Ledger API: users, identity providers, parties and the ledger',
      description:
        'JSON bodies are read whatever their Content-Type. Every failure is a LedgerError with all of its ten fields; 401 and 403 tell nothing but a correlation id for the operator.',
      version,
    },
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  }
}

const describe = (method: string, path: string, operation: Operation): Schema => {
  const pathParameters = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: text,
  }))
  const queryParameters = Object.entries(operation.query ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema,
  }))
  return {
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^a-zA-Z0-9]+/g, '-').replace(/-$/, '')}`,
    summary: operation.summary,
    tags: [operation.tag ?? 'external'],
    ...(operation.open && { security: [] }),
    parameters: [...pathParameters, ...queryParameters],
    ...(operation.body && {
      requestBody: { required: true, content: { 'application/json': { schema: operation.body } } },
    }),
    responses: {
      200: {
        description: 'Done.',
        content: { 'application/json': { schema: operation.answer } },
      },
      default: {
        description: 'Refused or failed.',
        content: { 'application/json': { schema: ref('LedgerError') } },
      },
    },
  }
}
