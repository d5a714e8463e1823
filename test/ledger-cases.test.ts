import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import type { Db } from '../src/db/db.ts'
import { authenticationOff, createAuthentication } from '../src/users/caller.ts'
import { ensureFirstUsers } from '../src/users/first-users.ts'
import { createProvider } from '../src/users/idps.ts'
import { selectProviderByIssuer } from '../src/users/idps-store.ts'
import { createRemoteKeySet } from '../src/users/key-set.ts'
import { insertParty } from '../src/users/parties-store.ts'
import { createTokenVerifier } from '../src/users/token.ts'
import { type Right, type RightKind, takesParty } from '../src/users/user.ts'
import { createUser } from '../src/users/users.ts'
import { forEachEngine } from './support/engines.ts'
import { buildLedgerApi, PARTICIPANT_ID } from './support/ledger-api.ts'
import {
  AUDIENCE,
  fetchOf,
  headersOf,
  ISSUER,
  JWKS_URL,
  type Keys,
  keySets,
  makeKeys,
} from './support/ledger-tokens.ts'
import { openApiChecker } from './support/openapi-check.ts'

type Request = {
  method: string
  path: string
  token: string
  body: unknown
  raw_body?: string
  headers?: Record<string, string>
}
type Given = string | { step: Request; expect_status: number }
type Case = {
  id: string
  given: Given[]
  request: Request
  expect: { status: number; code: string | null; body_contains: unknown }
}

const cases = JSON.parse(
  readFileSync(new URL('./data/ledger-cases.json', import.meta.url), 'utf8'),
) as Case[]
const TEN_KEYS = [
  'code',
  'cause',
  'correlationId',
  'traceId',
  'context',
  'resources',
  'errorCategory',
  'grpcCodeValue',
  'retryInfo',
  'definiteAnswer',
]
const setUp = { userId: undefined, identityProviderId: '', traceId: 'set-up' }

forEachEngine((engine) => {
  describe(`the cases of the ledger API on ${engine.name}`, () => {
    const cleanups: (() => Promise<void> | void)[] = []
    const checkAnswer = openApiChecker()
    let db: Db
    let keys: Keys
    before(async () => {
      db = await engine.open({ after: (clean) => void cleanups.push(clean) }, 'participant')
      keys = await makeKeys()
    })
    after(async () => {
      for (const clean of cleanups) await clean()
    })

    for (const one of cases) {
      test(`${one.id}: ${one.request.method} ${one.request.path.slice(0, 60)} with ${one.request.token} answers ${one.expect.status}`, async () => {
        await clear(db)
        const app = await buildWorld(db, keys, one)
        const send = async (request: Request) => {
          const payload = request.raw_body ?? bodyText(request.body)
          const answer = await app.inject({
            method: request.method as 'GET',
            url: request.path,
            headers: { ...(await headersOf(keys, request.token)), ...request.headers },
            ...(payload !== undefined && { payload }),
          })
          checkAnswer({
            method: request.method,
            url: request.path,
            status: answer.statusCode,
            body: answer.body,
          })
          return answer
        }
        for (const given of one.given) {
          if (typeof given === 'string') continue
          const answer = await send(given.step)
          assert.equal(answer.statusCode, given.expect_status, answer.body)
        }
        const answer = await send(one.request)
        assert.equal(answer.statusCode, one.expect.status, answer.body)
        const body = JSON.parse(answer.body) as Record<string, unknown>
        if (one.expect.status !== 200) assert.deepEqual(Object.keys(body), TEN_KEYS)
        if (one.expect.code !== null) assert.equal(body.code, one.expect.code, answer.body)
        checkContains(body, one.expect.body_contains, answer.body)
        await app.close()
      })
    }
  })
})

async function clear(db: Db): Promise<void> {
  for (const table of ['audit', 'user_rights', 'users', 'parties']) {
    await db.execute(`delete from ${table}`)
  }
  await db.execute('delete from identity_providers where issuer is not null')
  await ensureFirstUsers(db)
}

/** The world of a case: its providers, parties and users in the store, and a node before it. */
async function buildWorld(db: Db, keys: Keys, one: Case): Promise<FastifyInstance> {
  const words = one.given.filter((given) => typeof given === 'string')
  const tokens = [
    one.request.token,
    ...one.given.map((g) => (typeof g === 'string' ? '' : g.step.token)),
  ]
  const sets: Record<string, unknown> = keySets(keys)
  const target: { audience?: string; scope?: string } = { audience: AUDIENCE.default }
  const verifierOptions: { leewaySeconds?: number; lifetimeMaxSeconds?: number } = {}
  for (const word of words) {
    const [kind, rest = ''] = split(word, ':')
    if (kind === 'idp') await givenProvider(db, rest, sets)
    else if (kind === 'party') await givenParty(db, rest)
    else if (kind === 'user') await givenUser(db, rest)
    else if (word === 'cfg:max-token-lifetime=5m') verifierOptions.lifetimeMaxSeconds = 300
    else if (word === 'cfg:leeway.default=5') verifierOptions.leewaySeconds = 5
    else if (word === 'cfg:target-scope=S') Object.assign(target, { audience: '', scope: 'S' })
    else if (word === 'cfg:no-target') Object.assign(target, { audience: '' })
    else if (word === 'cfg:idp1-shares-default-keys') sets[JWKS_URL.idp1] = sets[JWKS_URL.default]
    else assert.equal(word, 'auth:disabled', 'the runner knows every word')
  }
  if (tokens.includes('idp1-admin'))
    await givenUser(db, 'idpadmin1@idp1;rights=IdentityProviderAdmin')
  if (words.includes('auth:disabled')) {
    return buildLedgerApi({ db, authentication: authenticationOff })
  }
  const fetch = fetchOf(sets as Parameters<typeof fetchOf>[0])
  const verifier = createTokenVerifier({
    defaultProvider: { keySet: createRemoteKeySet({ url: JWKS_URL.default, fetch }), ...target },
    providerByIssuer: (issuer) => selectProviderByIssuer(db, issuer),
    participantId: PARTICIPANT_ID,
    fetch,
    ...verifierOptions,
  })
  return buildLedgerApi({ db, authentication: createAuthentication({ db, verifier }) })
}

async function givenProvider(db: Db, text: string, sets: Record<string, unknown>): Promise<void> {
  const [id = '', ...options] = text.split(';')
  const known = id === 'idp1' || id === 'idp2' ? id : 'idp1'
  if (options.includes('jwks-unreachable')) delete sets[JWKS_URL[known]]
  await createProvider(db, setUp, {
    identityProviderId: id,
    isDeactivated: options.includes('deactivated'),
    issuer: ISSUER[known],
    jwksUrl: JWKS_URL[known],
    audience: options.includes('audience=') ? '' : AUDIENCE[known],
  })
}

async function givenParty(db: Db, text: string): Promise<void> {
  const [party = '', provider = ''] = text.split('@')
  await insertParty(db, {
    party,
    isLocal: true,
    localMetadata: { resourceVersion: '0', annotations: {} },
    identityProviderId: provider === 'default' ? '' : provider,
    createdAt: '2026-01-01T00:00:00.000000Z',
  })
}

async function givenUser(db: Db, text: string): Promise<void> {
  const [name = '', ...options] = text.split(';')
  const [id = '', provider = ''] = split(name, '@', name.lastIndexOf('@'))
  const option = (key: string) =>
    options.find((item) => item.startsWith(`${key}=`))?.slice(key.length + 1) ?? ''
  const annotations = new Map(
    option('ann')
      .split(',')
      .filter((item) => item !== '')
      .map((item) => split(item, ':') as [string, string])
      .map(([key, value]) => [key, value.replace(/^<(\d+) bytes>$/, (_, n) => 'x'.repeat(n))]),
  )
  const rights = option('rights')
    .split(',')
    .filter((item) => item !== '')
    .map((item): Right => {
      const [kind, party = ''] = split(item, ':')
      return { kind: kind as RightKind, party: takesParty(kind as RightKind) ? party : '' }
    })
  const draft = {
    id,
    primaryParty: option('primaryParty'),
    isDeactivated: options.includes('deactivated'),
    primaryPartyAuthentication: false,
    identityProviderId: provider === 'default' ? '' : provider,
    annotations,
  }
  await createUser(db, setUp, draft, { rights, partiesMustExist: false })
}

function bodyText(body: unknown): string | undefined {
  if (body === null || body === undefined) return undefined
  const rights = Array.from({ length: 1001 }, (_, n) => ({
    kind: { CanActAs: { value: { party: `p${n}` } } },
  }))
  return JSON.stringify(body, (_, value) =>
    value === '<1001 distinct CanActAs rights>' ? rights : value,
  )
}

/** Subset match, with the catalogue's own words for lists. */
function checkContains(body: Record<string, unknown>, wanted: unknown, raw: string): void {
  if (Array.isArray(wanted)) {
    for (const part of wanted) assert.ok(raw.includes(String(part)), raw)
    return
  }
  const ids = (list: unknown, key: string) =>
    ((list ?? []) as Record<string, string>[]).map((item) => item[key])
  for (const [key, value] of Object.entries(wanted as Record<string, unknown>)) {
    const userIds = ids(body.users, 'id')
    if (key === 'json_error_body') assert.deepEqual(Object.keys(body), TEN_KEYS)
    else if (key === 'users_ids') assert.deepEqual(userIds, value)
    else if (key === 'users_count') assert.equal(userIds.length, value)
    else if (key === 'users_ids_include') {
      for (const id of value as string[]) assert.ok(userIds.includes(id), raw)
    } else if (key === 'users_ids_exclude') {
      for (const id of value as string[]) assert.ok(!userIds.includes(id), raw)
    } else if (key === 'idp_ids') {
      assert.deepEqual(ids(body.identityProviderConfigs, 'identityProviderId'), value)
    } else assertSubset(body[key], value, `${key} of ${raw}`)
  }
}

function assertSubset(found: unknown, wanted: unknown, where: string): void {
  if (typeof wanted !== 'object' || wanted === null || Array.isArray(wanted)) {
    assert.deepEqual(found, wanted, where)
    return
  }
  for (const [key, value] of Object.entries(wanted)) {
    assertSubset((found as Record<string, unknown> | undefined)?.[key], value, where)
  }
}

function split(text: string, separator: string, at = text.indexOf(separator)): string[] {
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)]
}
