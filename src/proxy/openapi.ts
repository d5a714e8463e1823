import { schemas as scanSchemas } from '../scan/openapi-schemas.ts'
import { OPERATIONS, type Operation, PAGE_SIZE_MAX } from './operations.ts'

type Schema = Record<string, unknown>
type Document = { paths: Record<string, Record<string, Schema>> } & Schema

/** What the document says of an operation besides its path and id. */
type Row = {
  summary: string
  /** Undefined is whatever the scans answer. */
  answer?: Schema
  body?: Schema
  query?: string[]
}

const POINTER = '#/components/schemas/'
/** Schemas of the scan API stand under names of their own beside those of the validator. */
const PREFIX = 'Scan'

const ref = (name: string): Schema => ({ $ref: `${POINTER}${name}` })
const rounds: Schema = { type: 'array', items: ref('MaybeCachedContract') }
const ENCODING = ['ledger_value_encoding']
const anObject: Schema = { type: 'object' }

const pageOf = (answer: string): Row => ({
  summary: 'A page of updates: as many as the scans agree on from the first one on.',
  body: {
    allOf: [ref('UpdateHistoryRequest'), { properties: { page_size: { maximum: PAGE_SIZE_MAX } } }],
  },
  answer: ref(answer),
})

const ROWS: Record<Operation['id'], Row> = {
  scanProxyGetDsoPartyId: {
    summary: 'The party that governs the network.',
    answer: ref('DsoPartyId'),
  },
  scanProxyGetDsoInfo: { summary: 'Who governs the network, and its rules.' },
  scanProxyListScans: { summary: 'The scans of the network.', answer: ref('ScanList') },
  scanProxyGetAmuletRules: {
    summary: 'The rules of the network.',
    answer: {
      type: 'object',
      properties: { amulet_rules: ref('MaybeCachedContract') },
      required: ['amulet_rules'],
    },
  },
  scanProxyGetOpenAndIssuingMiningRounds: {
    summary: 'The rounds, with the price of the coin, in the order of their contract ids.',
    answer: {
      type: 'object',
      properties: { open_mining_rounds: rounds, issuing_mining_rounds: rounds },
      required: ['open_mining_rounds', 'issuing_mining_rounds'],
    },
  },
  scanProxyLookupFeaturedAppRight: { summary: 'Whether an app is featured.' },
  scanProxyLookupTransferPreapprovalByParty: {
    summary: 'The transfer preapproval of a receiver.',
    answer: ref('TransferPreapproval'),
  },
  scanProxyLookupTransferCommandCounterByParty: { summary: 'The transfer counter of a sender.' },
  scanProxyLookupTransferCommandStatus: {
    summary: 'What became of a transfer command.',
    query: ['sender', 'nonce'],
  },
  scanProxyGetMemberTrafficStatus: {
    summary: 'What extra traffic a member has bought and used.',
    answer: ref('MemberTrafficStatus'),
  },
  scanProxyListAnsEntries: { summary: 'Names.', query: ['name_prefix', 'page_size'] },
  scanProxyLookupAnsEntryByParty: { summary: 'The name of a party.' },
  scanProxyLookupAnsEntryByName: { summary: 'The party of a name.' },
  scanProxyGetAnsRules: { summary: 'The rules of names.', body: anObject },
  scanProxyGetHoldingsSummaryAt: { summary: 'What parties held at a time.', body: anObject },
  scanProxyListUnclaimedDevelopmentFundCoupons: { summary: 'Coupons of the development fund.' },
  scanProxyGetUpdateHistoryV1: pageOf('UpdateHistoryResponse'),
  scanProxyGetUpdateHistoryV2: pageOf('UpdateHistoryResponseV2'),
  scanProxyGetUpdateByIdV1: {
    summary: 'One transaction by its id.',
    query: ENCODING,
    answer: ref('Transaction'),
  },
  scanProxyGetUpdateByIdV2: {
    summary: 'One transaction by its id.',
    query: ENCODING,
    answer: ref('TransactionV2'),
  },
  scanProxyGetUpdateByHash: {
    summary: 'An externally signed transaction by the hash that was signed.',
    query: ENCODING,
    answer: ref('TransactionV2'),
  },
}

const ERRORS: Record<number | 'default', string> = {
  400: 'The request is wrong, here or by agreement of the scans; the sentence says what to mend.',
  404: 'The scans agree that there is no such thing.',
  413: 'The request body is too large.',
  500: 'An internal error; the operator finds it in the log under the id in the sentence.',
  502: 'The scans do not agree, or too few of them answer.',
  503: 'The node is starting, or too many reads are under way. Repeat after `Retry-After`.',
  default: 'What the scans refuse alike, in their words.',
}

/** The validator's document with the reads of the network beside what it has. */
export function withScanProxy(document: Document): Document {
  const paths = { ...document.paths }
  for (const operation of OPERATIONS) {
    const path = `/v0/scan-proxy${operation.path.replaceAll(/:(\w+)/g, '{$1}')}`
    const method = operation.method.toLowerCase()
    paths[path] = { ...paths[path], [method]: opened(describe(operation)) as Schema }
  }
  const info = document.info as Schema
  const components = document.components as { schemas: Record<string, Schema> }
  return {
    ...document,
    info: { ...info, title: 'Validator API' },
    paths,
    components: { ...components, schemas: { ...components.schemas, ...neededSchemas(paths) } },
  }
}

function describe({ id, path, method }: Operation): Schema {
  const { summary, query = [], body, answer = anObject } = ROWS[id]
  const parameters = [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true })),
    ...query.map((name) => ({ name, in: 'query', required: false })),
  ].map((parameter) => ({ ...parameter, schema: { type: 'string' } }))
  const content = body && { 'application/json': { schema: body } }
  return {
    operationId: id,
    tags: ['external'],
    summary,
    security: [],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(method === 'GET' ? {} : { requestBody: { required: true, content } }),
    responses: {
      200: json('What the scans agree on.', answer),
      ...Object.fromEntries(
        Object.entries(ERRORS).map(([status, sentence]) => [status, json(sentence, ref('Error'))]),
      ),
    },
  }
}

function json(description: string, schema: Schema): Schema {
  return { description, content: { 'application/json': { schema } } }
}

/** Scans may say more than we know of, and the proxy passes it on: nothing is closed here. */
function opened(part: unknown): unknown {
  if (typeof part === 'string') {
    return part.startsWith(POINTER) ? `${POINTER}${PREFIX}${part.slice(POINTER.length)}` : part
  }
  if (Array.isArray(part)) return part.map(opened)
  if (typeof part !== 'object' || part === null) return part
  return Object.fromEntries(
    Object.entries(part)
      .filter(([name, value]) => !(name === 'additionalProperties' && value === false))
      .map(([name, value]) => [name, opened(value)]),
  )
}

/** The schemas of the scan that the paths name, and those that these name in turn. */
function neededSchemas(paths: Document['paths']): Record<string, Schema> {
  const needed: Record<string, Schema> = {}
  const visit = (part: unknown) => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(
      /"#\/components\/schemas\/Scan(\w+)"/g,
    )) {
      const schema = scanSchemas[name]
      if (schema === undefined || `${PREFIX}${name}` in needed) continue
      const own = opened(schema) as Schema
      needed[`${PREFIX}${name}`] = own
      visit(own)
    }
  }
  visit(paths)
  return needed
}
