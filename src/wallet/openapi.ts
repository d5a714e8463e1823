import { ref, type Schema, schemas, text } from './openapi-schemas.ts'

/** The OpenAPI document of the wallet's part of the validator API: one row for each operation. */
type Row = {
  id: string
  summary: string
  body?: string
  /** Names of query parameters. */
  query?: string[]
  optionalQuery?: string[]
  answer: string
  /** Asked for without a token. */
  open?: true
  /** A 409 that says more than a sentence. */
  conflict?: string
}

const OPERATIONS: Record<string, Row> = {
  'POST /v0/register': {
    id: 'register',
    summary: "Give the token's user a party and a wallet, unless it has them.",
    answer: 'Party',
  },
  'GET /v0/validator-user': {
    id: 'getValidatorUserInfo',
    summary: "The party of this node's operator.",
    answer: 'ValidatorUser',
    open: true,
  },
  'GET /v0/feature-support': {
    id: 'featureSupport',
    summary: 'What this wallet can do.',
    answer: 'Features',
    open: true,
  },
  'GET /v0/wallet/user-status': {
    id: 'userStatus',
    summary: "Whether the token's user has a wallet.",
    answer: 'UserStatus',
  },
  'GET /v0/wallet/balance': {
    id: 'getBalance',
    summary: 'What the wallet holds, in coin and in USD.',
    answer: 'Balance',
  },
  'GET /v0/wallet/amulets': {
    id: 'list',
    summary: "The wallet's coins, one by one.",
    answer: 'Positions',
  },
  'POST /v0/wallet/transactions': {
    id: 'listTransactions',
    summary: 'The log, newest first; at most 1000 entries at a time.',
    body: 'TransactionsRequest',
    answer: 'Transactions',
  },
  'POST /v0/wallet/transfer-offers': {
    id: 'createTransferOffer',
    summary: 'Offer coins. When the receiver has accepted, the wallet pays by itself.',
    body: 'OfferRequest',
    answer: 'OfferCreated',
  },
  'GET /v0/wallet/transfer-offers': {
    id: 'listTransferOffers',
    summary: 'Open offers that the wallet has made or received.',
    answer: 'Offers',
  },
  'POST /v0/wallet/transfer-offers/{tracking_id}/status': {
    id: 'getTransferOfferStatus',
    summary: "How far one of the wallet's own offers has come.",
    answer: 'OfferStatus',
  },
  'POST /v0/wallet/transfer-offers/{contract_id}/accept': {
    id: 'acceptTransferOffer',
    summary: 'Accept an offer.',
    answer: 'OfferAccepted',
  },
  'POST /v0/wallet/transfer-offers/{contract_id}/reject': {
    id: 'rejectTransferOffer',
    summary: 'Reject an offer.',
    answer: 'Nothing',
  },
  'POST /v0/wallet/transfer-offers/{contract_id}/withdraw': {
    id: 'withdrawTransferOffer',
    summary: 'Take an own offer back.',
    answer: 'Nothing',
  },
  'GET /v0/wallet/accepted-transfer-offers': {
    id: 'listAcceptedTransferOffers',
    summary: 'Offers that were accepted and wait for the payment.',
    answer: 'AcceptedOffers',
  },
  'POST /v0/wallet/transfer-preapproval': {
    id: 'createTransferPreapproval',
    summary: 'Agree beforehand to whatever is sent.',
    answer: 'PreapprovalCreated',
    conflict: 'PreapprovalExists',
  },
  'POST /v0/wallet/transfer-preapproval/send': {
    id: 'transferPreapprovalSend',
    summary: 'Pay a receiver who has agreed beforehand.',
    body: 'SendRequest',
    answer: 'Sent',
  },
  'POST /v0/wallet/tap': {
    id: 'tap',
    summary: 'Take coins out of nothing, on a development network.',
    body: 'TapRequest',
    answer: 'Tapped',
  },
  'POST /v0/wallet/buy-traffic-requests': {
    id: 'createBuyTrafficRequest',
    summary: 'Buy traffic for the participant with coins of the wallet.',
    body: 'TrafficRequest',
    answer: 'TrafficRequested',
  },
  'POST /v0/wallet/buy-traffic-requests/{tracking_id}/status': {
    id: 'getBuyTrafficRequestStatus',
    summary: 'What has become of a purchase.',
    answer: 'TrafficRequestStatus',
  },
  'GET /v0/wallet/traffic-status': {
    id: 'getTrafficStatus',
    summary: 'Extra traffic of the participant: bought, used, left.',
    answer: 'TrafficStatus',
  },
  'GET /v0/admin/users': {
    id: 'listUsers',
    summary: 'Users that have a wallet on this node.',
    answer: 'Users',
  },
  'POST /v0/admin/users': {
    id: 'onboardUser',
    summary: 'Give a user a party and a wallet.',
    body: 'OnboardRequest',
    answer: 'Party',
  },
  'POST /v0/admin/users/offboard': {
    id: 'offboardUser',
    summary: 'Take the wallet of a user away; its party keeps what it holds.',
    query: ['username'],
    answer: 'Nothing',
  },
  'GET /v0/admin/automations': {
    id: 'listAutomations',
    summary: 'What automations did and will do; with dry_run also what they would do now.',
    optionalQuery: ['dry_run'],
    answer: 'Automations',
  },
  'GET /v0/admin/transfer-preapprovals': {
    id: 'listTransferPreapprovals',
    summary: 'Preapprovals that this node provides.',
    answer: 'Preapprovals',
  },
  'GET /v0/admin/transfer-preapprovals/by-party/{receiver-party}': {
    id: 'lookupTransferPreapprovalByParty',
    summary: 'The preapproval of a receiver. Receivers may ask for their own.',
    answer: 'Preapproval',
  },
  'DELETE /v0/admin/transfer-preapprovals/by-party/{receiver-party}': {
    id: 'cancelTransferPreapprovalByParty',
    summary: 'Cancel the preapproval of a receiver. Receivers may cancel their own.',
    answer: 'Nothing',
  },
}

const ERRORS: Record<number, string> = {
  400: 'The request is wrong, or the ledger refuses it; the sentence says what to mend.',
  401: 'There is no valid token for the audience of the validator.',
  403: 'The user may not do this.',
  404: 'There is no such thing, the user has no wallet, or wallets are switched off.',
  409: 'Another request has the same tracking id, or somebody else was quicker.',
  413: 'The request body is too large.',
  429: 'Too much is under way, or the traffic reserve holds it back. Repeat later.',
  500: 'An internal error; the operator finds it in the log under the id in the sentence.',
  503: 'The participant, the scan or the provider does not answer at the moment. Repeat later.',
}

export type OpenApi = { paths: Record<string, Record<string, Schema>> } & Schema

export function walletOpenApi(softwareVersion: string): OpenApi {
  const paths: OpenApi['paths'] = {}
  for (const [name, row] of Object.entries(OPERATIONS)) {
    const [method = '', path = ''] = name.split(' ')
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(path, row) }
  }
  paths['/openapi.json'] = {
    get: {
      operationId: 'getOpenApi',
      tags: ['external'],
      summary: 'This document.',
      security: [],
      responses: { 200: json({ type: 'object' }, 'The OpenAPI document.') },
    },
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Validator API: wallets',
      version: '0.0.1',
      description: `Wallets of a node, served by Annals ${softwareVersion}. Amounts are decimal texts.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/api/validator' }],
    tags: [{ name: 'external', description: 'Public; remains backward-compatible.' }],
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  }
}

function describe(path: string, row: Row): Schema {
  const parameters = [
    ...[...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => parameter(name ?? '', 'path')),
    ...(row.query ?? []).map((name) => parameter(name, 'query')),
    ...(row.optionalQuery ?? []).map((name) => ({
      ...parameter(name, 'query'),
      required: false,
    })),
  ]
  const responses: Record<string, Schema> = { 200: json(ref(row.answer), 'Done.') }
  for (const [status, sentence] of Object.entries(ERRORS)) {
    const isSpecial = status === '409' && row.conflict !== undefined
    const schema = isSpecial
      ? { oneOf: [ref('Error'), ref(row.conflict ?? 'Error')] }
      : ref('Error')
    responses[status] = json(schema, sentence)
  }
  return {
    operationId: row.id,
    tags: ['external'],
    summary: row.summary,
    ...(row.open ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(row.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: ref(row.body) } },
          },
        }),
    responses,
  }
}

function parameter(name: string, place: 'path' | 'query'): Schema {
  return { name, in: place, required: true, schema: text }
}

function json(schema: Schema, description: string): Schema {
  return { description, content: { 'application/json': { schema } } }
}
