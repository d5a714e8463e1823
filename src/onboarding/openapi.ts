type Schema = Record<string, unknown>

/** One operation of the sponsor's API. */
type Row = {
  id: string
  summary: string
  /** Whether a token of an administrator is needed. */
  admin?: true
  body?: { name: string; isRequired: boolean }
  query?: Record<string, Schema>
  /** The name of a schema; `text` and `nothing` are no JSON. */
  answer: string
  errors: number[]
}

const OPERATIONS: Record<string, Row> = {
  'GET /version': {
    id: 'getVersion',
    summary: 'The version of the software.',
    answer: 'Version',
    errors: [],
  },
  'POST /v0/onboard/validator': {
    id: 'onboardValidator',
    summary:
      'Admit a validator that presents a secret. Repeated by the same party, it is answered as before.',
    body: { name: 'Application', isRequired: true },
    answer: 'nothing',
    errors: [400, 401, 413, 503],
  },
  'POST /v0/devnet/onboard/validator/prepare': {
    id: 'devNetOnboardValidatorPrepare',
    summary: 'A secret for an hour, for anyone, on a development network.',
    answer: 'text',
    errors: [429, 501, 503],
  },
  'POST /v0/admin/validator/onboarding/prepare': {
    id: 'prepareValidatorOnboarding',
    summary: 'Issue a one-time secret. It is shown in this answer and never again.',
    admin: true,
    body: { name: 'SecretRequest', isRequired: false },
    answer: 'Issued',
    errors: [400, 413, 429, 503],
  },
  'GET /v0/admin/validator/onboarding/ongoing': {
    id: 'listOngoingValidatorOnboardings',
    summary:
      'Secrets that were issued and neither used nor expired; without the secrets themselves.',
    admin: true,
    answer: 'Ongoing',
    errors: [503],
  },
  'POST /v0/admin/validator/onboarding/revoke': {
    id: 'revokeValidatorOnboarding',
    summary: 'Revoke an unused secret, named by its contract or by itself.',
    admin: true,
    body: { name: 'RevokeRequest', isRequired: true },
    answer: 'Invitation',
    errors: [400, 404, 413, 503],
  },
  'GET /v0/admin/validator/licenses': {
    id: 'listValidatorLicenses',
    summary: 'The validators that have joined, by contract id.',
    admin: true,
    query: {
      limit: { type: 'integer', minimum: 1, maximum: 1000, default: 1000 },
      after: { type: 'string', description: '`next_page_token` of the page before.' },
    },
    answer: 'Licences',
    errors: [400, 503],
  },
  'GET /openapi.json': {
    id: 'getOpenApi',
    summary: 'This document.',
    answer: 'Document',
    errors: [],
  },
}

const ERRORS: Record<number, string> = {
  400: 'The request is wrong, or the secret is for somebody else; the sentence says what to mend.',
  401: 'The secret has expired, was used by another validator, or is unknown; with an administrator, the token is missing or wrong.',
  403: 'The user is not an administrator of the participant.',
  404: 'There is no such unused secret.',
  413: 'The request body is too large.',
  429: 'There are too many unused secrets. Repeat later.',
  500: 'An internal error; the operator finds it in the log under the id in the sentence.',
  501: 'The network is not a development network.',
  503: 'The node is starting, or does not get at its database. Repeat after `Retry-After`.',
}

const text: Schema = { type: 'string' }
const time: Schema = { type: 'string', format: 'date-time' }

/** An answer: every field is always there but for those that are said to be optional. */
const closed = (
  properties: Record<string, Schema>,
  optional: Record<string, Schema> = {},
): Schema => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
  additionalProperties: false,
})
const request = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: 'object',
  properties,
  required,
})
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
const listOf = (items: Schema): Schema => ({ type: 'array', items })

const secret: Schema = {
  type: 'string',
  maxLength: 4096,
  description: 'As it was issued: base64 of an object with `sponsoringSv`, `secret`, `partyHint`.',
}
const metadata: Schema = { type: 'string', maxLength: 256 }
const hint: Schema = { type: 'string', pattern: '^[A-Za-z0-9_-]{1,185}$' }
const invitation = { contract: ref('Contract'), secret_sha256: text, expires_at: time }
const partyHint = {
  party_hint: { ...hint, description: 'The only hint that the secret serves; absent for any.' },
}

const schemas: Record<string, Schema> = {
  Error: closed({ error: text }),
  Version: closed({ version: text, commit_ts: time }),
  Application: request(
    {
      party_id: { ...text, description: 'A party id: name::fingerprint.' },
      secret,
      version: metadata,
      contact_point: metadata,
      party_hint: text,
    },
    ['party_id', 'secret'],
  ),
  SecretRequest: request({
    expires_in: {
      type: 'integer',
      minimum: 1,
      default: 172_800,
      description: 'Seconds; 48 hours unless given.',
    },
    party_hint: hint,
  }),
  RevokeRequest: {
    oneOf: [request({ contract_id: text }, ['contract_id']), request({ secret }, ['secret'])],
  },
  Contract: closed({
    template_id: text,
    contract_id: text,
    payload: { type: 'object' },
    created_event_blob: text,
    created_at: time,
  }),
  Invitation: closed(invitation, partyHint),
  Issued: closed({ secret, ...invitation }, partyHint),
  Ongoing: closed({ ongoing_validator_onboardings: listOf(ref('Invitation')) }),
  Licences: closed({ validator_licenses: listOf(ref('Contract')) }, { next_page_token: text }),
  Document: { type: 'object' },
}

export type OpenApi = { paths: Record<string, Record<string, Schema>> } & Schema

/** The OpenAPI document of what stands under `/api/sv`. */
export function sponsorOpenApi(softwareVersion: string): OpenApi {
  const paths: OpenApi['paths'] = {}
  for (const [name, row] of Object.entries(OPERATIONS)) {
    const [method = '', path = ''] = name.split(' ')
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(row) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'SV API: sponsoring validators',
      version: '0.0.1',
      description: `How validators join the network of this node, served by Annals ${softwareVersion}.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/api/sv' }],
    tags: [{ name: 'external', description: 'Public; remains backward-compatible.' }],
    security: [],
    paths,
    components: {
      schemas,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  }
}

function describe({ id, summary, admin, body, query = {}, answer, errors }: Row): Schema {
  const statuses = [...errors, ...(admin ? [401, 403] : []), 500]
  const parameters = Object.entries(query).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema,
  }))
  return {
    operationId: id,
    tags: ['external'],
    summary,
    ...(admin ? { security: [{ bearer: [] }] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.isRequired,
            content: { 'application/json': { schema: ref(body.name) } },
          },
        }),
    responses: {
      200: success(answer),
      ...Object.fromEntries(statuses.map((status) => [status, refusal(status)])),
    },
  }
}

function success(answer: string): Schema {
  if (answer === 'nothing') return { description: 'Done; the body is empty.' }
  const type = answer === 'text' ? 'text/plain' : 'application/json'
  const schema = answer === 'text' ? text : ref(answer)
  return { description: 'Done.', content: { [type]: { schema } } }
}

function refusal(status: number): Schema {
  return {
    description: ERRORS[status] ?? '',
    content: { 'application/json': { schema: ref('Error') } },
  }
}
