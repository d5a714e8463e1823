import { schemas } from './openapi-schemas.ts'

/** The specification's version of the scan interface. */
const INTERFACE_VERSION = '0.0.1'

type Json = Record<string, unknown>

const TAGS = [
  { name: 'external', description: 'Public; remains backward-compatible.' },
  { name: 'internal', description: 'For other nodes; not stable.' },
  { name: 'deprecated', description: 'Will be removed in a future release.' },
  { name: 'pre-alpha', description: 'Highly unstable; not for production.' },
]

/** The OpenAPI document of what stands under `/api/scan`. */
export function scanOpenApi(softwareVersion: string): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Scan API',
      version: INTERFACE_VERSION,
      description: `The ordered history of ledger updates, served by Annals ${softwareVersion}.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/api/scan' }],
    tags: TAGS,
    security: [],
    paths: paths(),
    components: { schemas },
  }
}

function paths(): Json {
  const page = (version: 0 | 1 | 2, operationId: string, summary: string): Json => ({
    post: operation({
      operationId,
      tag: version === 2 ? 'external' : 'deprecated',
      summary,
      body: version === 0 ? 'UpdateHistoryRequestV0' : 'UpdateHistoryRequest',
      ok: version === 2 ? 'UpdateHistoryResponseV2' : 'UpdateHistoryResponse',
      errors: [400, 413, 500, 503],
    }),
  })
  const byId = (version: 0 | 1 | 2, operationId: string): Json => ({
    get: operation({
      operationId,
      tag: version === 2 ? 'external' : 'deprecated',
      summary: 'One transaction by its id. Reassignments are not found here.',
      parameters: [
        pathParameter('update_id'),
        ...(version === 0
          ? [queryParameter('lossless', { type: 'boolean' })]
          : encodingParameters()),
      ],
      ok: version === 2 ? 'TransactionV2' : 'Transaction',
      errors: [400, 404, 500, 503],
    }),
  })
  return {
    '/v0/updates': page(0, 'getUpdateHistory', 'Pages of updates, import updates included.'),
    '/v1/updates': page(1, 'getUpdateHistoryV1', 'Pages of updates, consistent across scans.'),
    '/v2/updates': page(2, 'getUpdateHistoryV2', 'Pages of updates, consistent across scans.'),
    '/v0/updates/{update_id}': byId(0, 'getUpdateById'),
    '/v1/updates/{update_id}': byId(1, 'getUpdateByIdV1'),
    '/v2/updates/{update_id}': byId(2, 'getUpdateByIdV2'),
    '/v2/updates/hash/{hash}': {
      get: operation({
        operationId: 'getUpdateByHash',
        tag: 'external',
        summary: 'An externally signed transaction by the hash that was signed.',
        parameters: [pathParameter('hash'), ...encodingParameters()],
        ok: 'TransactionV2',
        errors: [400, 404, 500, 503],
      }),
    },
    '/v0/backfilling/migration-info': {
      post: operation({
        operationId: 'getMigrationInfo',
        tag: 'internal',
        summary: 'What this node holds of a migration.',
        body: 'MigrationInfoRequest',
        ok: 'MigrationInfo',
        errors: [400, 404, 500, 503],
      }),
    },
    '/v0/backfilling/updates-before': {
      post: operation({
        operationId: 'getUpdatesBefore',
        tag: 'internal',
        summary: 'Updates of a synchronizer before a time, newest first, in the lossless encoding.',
        body: 'UpdatesBeforeRequest',
        ok: 'UpdateHistoryResponse',
        errors: [400, 500, 503],
      }),
    },
    '/v0/backfilling/import-updates': {
      post: operation({
        operationId: 'getImportUpdates',
        tag: 'internal',
        summary: 'Import updates of a migration in the order of their contracts.',
        body: 'ImportUpdatesRequest',
        ok: 'UpdateHistoryResponse',
        errors: [400, 500, 503],
      }),
    },
    '/v0/backfilling/status': simpleGet('getBackfillingStatus', 'internal', 'BackfillingStatus'),
    '/v0/scans': simpleGet('listScans', 'external', 'ScanList'),
    ...networkPaths(),
    '/version': simpleGet('getVersion', 'external', 'Version'),
    '/status': simpleGet('getStatus', 'external', 'Status'),
    '/readyz': { get: probe('isReady', 'Whether the node is ready to serve requests.') },
    '/livez': { get: probe('isLive', 'Whether the process runs.') },
    '/openapi.json': {
      get: {
        operationId: 'getOpenApi',
        tags: ['external'],
        summary: 'This document.',
        responses: { 200: json({ type: 'object' }, 'The OpenAPI document.') },
      },
    },
  }
}

/** What the network's contracts say; 404 on a node without a ledger of its own. */
function networkPaths(): Json {
  return {
    '/v0/dso-party-id': {
      get: operation({
        operationId: 'getDsoPartyId',
        tag: 'external',
        summary: 'The party that governs the network.',
        ok: 'DsoPartyId',
        errors: [404, 500, 503],
      }),
    },
    '/v0/amulet-rules': {
      post: operation({
        operationId: 'getAmuletRules',
        tag: 'internal',
        summary: 'The rules of the network, with the traffic parameters.',
        body: 'AmuletRulesRequest',
        ok: 'AmuletRules',
        errors: [400, 404, 413, 500, 503],
      }),
    },
    '/v0/open-and-issuing-mining-rounds': {
      post: operation({
        operationId: 'getOpenAndIssuingMiningRounds',
        tag: 'external',
        summary: 'The rounds that are open, with the price of the coin.',
        body: 'MiningRoundsRequest',
        ok: 'MiningRounds',
        errors: [400, 404, 413, 500, 503],
      }),
    },
    '/v0/transfer-preapprovals/by-party/{party}': {
      get: operation({
        operationId: 'lookupTransferPreapprovalByParty',
        tag: 'internal',
        summary: 'The newest transfer preapproval of a receiver that has not expired.',
        parameters: [pathParameter('party')],
        ok: 'TransferPreapproval',
        errors: [404, 500, 503],
      }),
    },
    '/v0/domains/{domain_id}/members/{member_id}/traffic-status': {
      get: operation({
        operationId: 'getMemberTrafficStatus',
        tag: 'external',
        summary: 'What extra traffic a member has bought and used on a synchronizer.',
        parameters: [pathParameter('domain_id'), pathParameter('member_id')],
        ok: 'MemberTrafficStatus',
        errors: [400, 404, 500, 503],
      }),
    },
  }
}

function operation(o: {
  operationId: string
  tag: string
  summary: string
  parameters?: Json[]
  body?: string
  ok: string
  errors: number[]
}): Json {
  const responses: Json = { 200: json(reference(o.ok), 'Success.') }
  for (const status of o.errors) responses[status] = json(reference('Error'), ERRORS[status] ?? '')
  return {
    operationId: o.operationId,
    tags: [o.tag],
    ...(o.tag === 'deprecated' ? { deprecated: true } : {}),
    summary: o.summary,
    ...(o.parameters === undefined ? {} : { parameters: o.parameters }),
    ...(o.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: reference(o.body) } },
          },
        }),
    responses,
  }
}

const ERRORS: Record<number, string> = {
  400: 'The request is wrong; the sentence says what to mend.',
  404: 'There is no such thing.',
  413: 'The request body is too large.',
  500: 'An internal error; the operator finds it in the log under the id in the sentence.',
  503: 'The store does not answer at the moment.',
}

function simpleGet(operationId: string, tag: string, ok: string): Json {
  const summary = schemas[ok]?.description as string
  return { get: operation({ operationId, tag, summary, ok, errors: [500] }) }
}

function probe(operationId: string, summary: string): Json {
  return {
    operationId,
    tags: ['external'],
    summary,
    responses: {
      200: { description: 'Yes.', content: { 'text/plain': { schema: { type: 'string' } } } },
      503: json(reference('Error'), 'No; the sentence names what fails.'),
    },
  }
}

function json(schema: Json, description: string): Json {
  return { description, content: { 'application/json': { schema } } }
}

function reference(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

function pathParameter(name: string): Json {
  return { name, in: 'path', required: true, schema: { type: 'string' } }
}

function queryParameter(name: string, schema: Json): Json {
  return { name, in: 'query', required: false, schema }
}

function encodingParameters(): Json[] {
  return ['ledger_value_encoding', 'daml_value_encoding'].map((name) =>
    queryParameter(name, reference('LedgerValueEncoding')),
  )
}
