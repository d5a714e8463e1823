import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { authenticationOff } from '../src/users/caller.ts'
import { ensureFirstUsers } from '../src/users/first-users.ts'
import { forEachEngine } from './support/engines.ts'
import { buildLedgerApi } from './support/ledger-api.ts'
import { openApiChecker } from './support/openapi-check.ts'

/** 5,000 on each engine. */
const RUNS = 5000

const id = fc.oneof(
  fc.constantFrom('alice', 'participant_admin', 'auth0|x', 'x@clients', 'idp1', 'p::1220', ''),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.constantFrom('\u0000', '__proto__', 'constructor', '../..', '%', "'; drop table users; --"),
)
const scalar = fc.oneof(
  id,
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constant([]),
  fc.constant({}),
)
const right = fc.oneof(
  fc.record({
    kind: fc.dictionary(
      fc.constantFrom('CanActAs', 'CanReadAs', 'ParticipantAdmin', 'Empty', '__proto__', 'x'),
      fc.oneof(scalar, fc.record({ value: fc.oneof(scalar, fc.record({ party: scalar })) })),
      { maxKeys: 2 },
    ),
  }),
  scalar,
)
const metadata = fc.oneof(
  scalar,
  fc.record(
    {
      resourceVersion: fc.oneof(scalar, fc.constantFrom('0', '1', '9'.repeat(19))),
      annotations: fc.oneof(scalar, fc.dictionary(id, scalar, { maxKeys: 3 })),
    },
    { requiredKeys: [] },
  ),
)
const things = fc.record(
  {
    id,
    party: id,
    identityProviderId: scalar,
    primaryParty: scalar,
    isDeactivated: scalar,
    metadata,
    localMetadata: metadata,
    issuer: scalar,
    jwksUrl: fc.oneof(scalar, fc.webUrl(), fc.constantFrom('http://a\u0000b/', 'file:///etc')),
    audience: scalar,
  },
  { requiredKeys: [] },
)
const mask = fc.record({
  paths: fc.array(
    fc.oneof(
      fc.constantFrom(
        'primary_party',
        'is_deactivated',
        'metadata',
        'metadata.annotations',
        'issuer',
        'audience',
        'jwks_url',
        'local_metadata',
      ),
      scalar,
    ),
    { maxLength: 3 },
  ),
})
const body = fc.oneof(
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 50 }) },
  { weight: 1, arbitrary: fc.json() },
  {
    weight: 6,
    arbitrary: fc
      .record(
        {
          userId: id,
          user: fc.oneof(things, scalar),
          rights: fc.oneof(fc.array(right, { maxLength: 4 }), scalar),
          identityProviderConfig: fc.oneof(things, scalar),
          partyDetails: fc.oneof(things, scalar),
          identityProviderId: scalar,
          sourceIdentityProviderId: scalar,
          targetIdentityProviderId: scalar,
          partyIdHint: scalar,
          updateMask: fc.oneof(mask, scalar),
        },
        { requiredKeys: [] },
      )
      .map((value) => JSON.stringify(value)),
  },
)
const segment = id.map((text) => {
  try {
    return encodeURIComponent(text)
  } catch {
    return '%ED%A0%80'
  }
})
const path = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(
        fc.constantFrom(
          '/v2/users',
          '/v2/users/ID',
          '/v2/users/ID/rights',
          '/v2/users/ID/identity-provider-id',
          '/v2/idps',
          '/v2/idps/ID',
          '/v2/parties',
          '/v2/parties/ID',
          '/v2/audit',
          '/v2/authenticated-user',
        ),
        segment,
        segment,
        fc.constantFrom(
          '',
          '?identity-provider-id=ID',
          '?pageToken=ID&pageSize=ID',
          '?pageSize=-1',
          '?pageSize=7&pageSize=8',
          '?filter-party=ID',
          '?parties=ID&parties=x',
          '?user=ID',
          '?ID',
        ),
      )
      .map(([base, one, two, query]) => base.replace('ID', one) + query.replaceAll('ID', two)),
  },
  { weight: 1, arbitrary: fc.webPath().map((text) => `/v2/${text}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('/v2/users/%', '/v2/users/%00', '/v2//users//', '/%2e%2e'),
  },
)

forEachEngine((engine) => {
  describe(`random requests on ${engine.name}`, () => {
    const cleanups: (() => Promise<void> | void)[] = []
    let app: FastifyInstance
    before(async () => {
      const db = await engine.open({ after: (clean) => void cleanups.push(clean) }, 'participant')
      await ensureFirstUsers(db)
      app = await buildLedgerApi({ db, authentication: authenticationOff })
    })
    after(async () => {
      await app.close()
      for (const clean of cleanups) await clean()
    })

    test(`${RUNS} bodies and paths never fail, and each answer is what the document says`, async () => {
      const check = openApiChecker()
      const statuses = new Map<number, number>()
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE', 'PUT'),
          path,
          body,
          async (method, url, payload) => {
            const hasBody = method !== 'GET'
            const answer = await app.inject({ method, url, ...(hasBody && { payload }) })
            statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1)
            assert.ok(answer.statusCode < 500, `${method} ${url} ${payload}: ${answer.body}`)
            check({ method, url, status: answer.statusCode, body: answer.body })
          },
        ),
        { numRuns: RUNS },
      )
      assert.ok((statuses.get(200) ?? 0) > RUNS / 50, 'enough of them reach the store')
    })
  })
})
