import { RIGHT_KIND_NAMES, takesParty } from './user.ts'

/** JSON Schemas of what the ledger API takes and gives. Answers are closed, requests stay open. */
export type Schema = Record<string, unknown>

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
export const text: Schema = { type: 'string' }
export const flag: Schema = { type: 'boolean' }
export const listOf = (items: Schema): Schema => ({ type: 'array', items })
const nullable = (type: string): Schema => ({ type: [type, 'null'] })
const textMap: Schema = { type: 'object', additionalProperties: text }

/** An answer: every field is always there, and there is no other. */
export const closed = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

/** A request: fields may be left out or `null`, unknown ones are ignored. */
export const lax = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      { anyOf: [schema, { type: 'null' }] },
    ]),
  ),
})

const metadata = { resourceVersion: text, annotations: textMap }
const user = {
  id: text,
  primaryParty: text,
  isDeactivated: flag,
  identityProviderId: text,
  primaryPartyAuthentication: flag,
}
const provider = {
  identityProviderId: text,
  isDeactivated: flag,
  issuer: text,
  jwksUrl: text,
  audience: text,
}
const party = { party: text, isLocal: flag, identityProviderId: text }

const rightOf = (kind: (typeof RIGHT_KIND_NAMES)[number]): Schema =>
  closed({ [kind]: closed({ value: takesParty(kind) ? closed({ party: text }) : closed({}) }) })

export const schemas: Record<string, Schema> = {
  Commands: lax({
    commands: listOf({
      type: 'object',
      description: 'One of CreateCommand, ExerciseCommand and CreateAndExerciseCommand.',
    }),
    commandId: text,
    actAs: listOf(text),
    readAs: listOf(text),
    userId: text,
    workflowId: text,
    submissionId: text,
    synchronizerId: text,
    disclosedContracts: listOf({ type: 'object' }),
    deduplicationPeriod: { type: 'object' },
  }),
  Metadata: closed(metadata),
  User: closed({ ...user, metadata: ref('Metadata') }),
  UserRequest: lax({ ...user, metadata: lax(metadata) }),
  Right: closed({ kind: { oneOf: RIGHT_KIND_NAMES.map(rightOf) } }),
  RightRequest: {
    type: 'object',
    description: `{"kind": {"<kind>": {"value": {"party": "…"}}}} with one kind of ${RIGHT_KIND_NAMES.join(', ')}; only those of one party have \`party\`.`,
    properties: { kind: { type: 'object' } },
  },
  UpdateMask: {
    type: 'object',
    description: 'The fields to change, in snake case.',
    properties: { paths: listOf(text) },
  },
  IdentityProviderConfig: closed(provider),
  IdentityProviderConfigRequest: lax(provider),
  PartyDetails: closed({ ...party, localMetadata: ref('Metadata') }),
  PartyDetailsRequest: lax({ ...party, localMetadata: lax(metadata) }),
  AuditEntry: closed({
    id: text,
    at: { type: 'string', format: 'date-time' },
    caller: closed({ userId: nullable('string'), identityProviderId: text }),
    action: text,
    subject: closed({ kind: { enum: ['user', 'identity-provider', 'party'] }, id: text }),
    before: nullable('object'),
    after: nullable('object'),
    traceId: text,
  }),
  LedgerError: closed({
    code: text,
    cause: text,
    correlationId: nullable('string'),
    traceId: nullable('string'),
    context: textMap,
    resources: listOf({ type: 'array', items: text, minItems: 2, maxItems: 2 }),
    errorCategory: { type: 'integer' },
    grpcCodeValue: nullable('integer'),
    retryInfo: nullable('string'),
    definiteAnswer: nullable('boolean'),
  }),
}
