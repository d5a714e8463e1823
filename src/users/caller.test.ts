import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import Fastify from 'fastify'
import { forEachEngine } from '../../test/support/engines.ts'
import {
  AUDIENCE,
  ISSUER,
  JWKS_URL,
  type Keys,
  makeKey,
  makeKeys,
  nowSeconds,
  sign,
} from '../../test/support/ledger-tokens.ts'
import {
  type LedgerWorld,
  moveBody,
  openWorld,
  providerBody,
} from '../../test/support/ledger-world.ts'
import type { Db } from '../db/db.ts'
import {
  authenticationOff,
  type Caller,
  canActAs,
  canExecuteAs,
  canReadAs,
  guardChange,
  tokenOf,
} from './caller.ts'
import { unauthenticated } from './errors.ts'
import type { Right } from './user.ts'

const ME = '/v2/authenticated-user'

forEachEngine((engine) => {
  describe(`a caller that comes again, on ${engine.name}`, () => {
    const cleanups: (() => Promise<void> | void)[] = []
    let keys: Keys
    let db: Db
    let world: LedgerWorld
    let outcomes: string[]
    let skew: number
    before(async () => {
      keys = await makeKeys()
    })
    beforeEach(async () => {
      db = await engine.open({ after: (clean) => void cleanups.push(clean) }, 'participant')
      outcomes = []
      skew = 0
      world = await openWorld({
        db,
        keys,
        now: () => Date.now() + skew,
        events: { onTokenCheck: (outcome) => void outcomes.push(outcome) },
      })
      await world.call('POST', '/v2/idps', { body: providerBody('idp1') })
      await world.call('POST', '/v2/idps', { body: providerBody('idp2') })
      await world.call('POST', '/v2/users', {
        body: { user: { id: 'bob', identityProviderId: 'idp1' } },
      })
    })
    after(async () => {
      for (const clean of cleanups) await clean()
    })

    const statusOf = async (token: string, url = ME) =>
      (await world.call('GET', url, { token })).status
    const patchProvider = (changes: object, paths: string[]) =>
      world.call('PATCH', '/v2/idps/idp1', {
        body: {
          identityProviderConfig: { identityProviderId: 'idp1', ...changes },
          updateMask: { paths },
        },
      })

    test('is verified once and then remembered', async () => {
      outcomes.length = 0
      for (let round = 0; round < 5; round++) assert.equal(await statusOf('idp1-bob'), 200)
      assert.deepEqual(outcomes, ['verified', 'cached', 'cached', 'cached', 'cached'])
    })

    test('is refused as soon as its remembered token has expired', async () => {
      const claims = { sub: 'participant_admin', aud: AUDIENCE.default, exp: nowSeconds() + 60 }
      const token = await sign({ key: keys.k0, claims })
      assert.equal(await statusOf(token), 200)
      skew = 61_000
      assert.equal(await statusOf(token), 401)
    })

    test('is refused after its provider was deactivated, and accepted when it is back', async () => {
      assert.equal(await statusOf('idp1-bob'), 200)
      await patchProvider({ isDeactivated: true }, ['is_deactivated'])
      assert.equal(await statusOf('idp1-bob'), 401)
      await patchProvider({ isDeactivated: false }, ['is_deactivated'])
      assert.equal(await statusOf('idp1-bob'), 200)
    })

    test('is refused after its provider got another issuer, audience or key set', async () => {
      const changes: [object, string][] = [
        [{ issuer: 'https://other.example/' }, 'issuer'],
        [{ audience: 'other' }, 'audience'],
        [{ jwksUrl: JWKS_URL.idp2 }, 'jwks_url'],
      ]
      for (const [change, path] of changes) {
        assert.equal(await statusOf('idp1-bob'), 200, path)
        await patchProvider(change, [path])
        assert.equal(await statusOf('idp1-bob'), 401, path)
        await patchProvider(providerBody('idp1').identityProviderConfig, [path])
      }
    })

    test('is refused after its key was withdrawn, and its new key is accepted', async () => {
      assert.equal(await statusOf('idp1-bob'), 200)
      const rotated = await makeKey('k1-new', 'RS256')
      world.published[JWKS_URL.idp1] = [rotated.jwk]
      const claims = { iss: ISSUER.idp1, aud: AUDIENCE.idp1, sub: 'bob', exp: nowSeconds() + 60 }
      assert.equal(await statusOf(await sign({ key: rotated, claims })), 200)
      assert.equal(await statusOf('idp1-bob'), 401)
    })

    test('is accepted through an outage of its key set, while new keys are refused', async () => {
      assert.equal(await statusOf('idp1-bob'), 200)
      world.published[JWKS_URL.idp1] = undefined
      skew = 10 * 60_000
      const claims = { iss: ISSUER.idp1, aud: AUDIENCE.idp1, sub: 'bob', exp: nowSeconds() + 7200 }
      assert.equal(await statusOf(await sign({ key: keys.k1, claims })), 200)
      const stranger = await makeKey('k1-new', 'RS256')
      assert.equal(await statusOf(await sign({ key: stranger, claims })), 401)
      world.published[JWKS_URL.idp1] = [keys.k1.jwk, stranger.jwk]
      skew += 60_000
      assert.equal(await statusOf(await sign({ key: stranger, claims })), 200)
    })

    test('is refused from the next request on after its user was moved, deactivated or deleted', async () => {
      assert.equal(await statusOf('idp1-bob'), 200)
      assert.equal(await statusOf('idp2-bob'), 403)
      const moved = await world.call('PATCH', '/v2/users/bob/identity-provider-id', {
        body: moveBody('idp1', 'idp2'),
      })
      assert.equal(moved.status, 200)
      assert.equal(await statusOf('idp1-bob'), 403)
      assert.equal(await statusOf('idp2-bob'), 200)
      await world.call('PATCH', '/v2/users/bob', {
        body: {
          user: { id: 'bob', identityProviderId: 'idp2', isDeactivated: true },
          updateMask: { paths: ['is_deactivated'] },
        },
      })
      assert.equal(await statusOf('idp2-bob'), 403)
      await world.call('DELETE', '/v2/users/bob?identity-provider-id=idp2')
      assert.equal(await statusOf('idp2-bob'), 403)
    })

    test('has new rights with the next request, and loses them the same way', async () => {
      const body = {
        identityProviderId: 'idp1',
        rights: [{ kind: { ParticipantAdmin: { value: {} } } }],
      }
      assert.equal(await statusOf('idp1-bob', '/v2/idps'), 403)
      await world.call('POST', '/v2/users/bob/rights', { body })
      assert.equal(await statusOf('idp1-bob', '/v2/idps'), 200)
      await world.call('PATCH', '/v2/users/bob/rights', { body })
      assert.equal(await statusOf('idp1-bob', '/v2/idps'), 403)
    })

    test('of a named provider does not make the default provider fetch its keys', async () => {
      await statusOf('admin')
      world.fetches.length = 0
      for (let round = 0; round < 5; round++) {
        const claims = {
          iss: ISSUER.idp1,
          aud: AUDIENCE.idp1,
          sub: 'bob',
          exp: nowSeconds() + 60 + round,
        }
        assert.equal(await statusOf(await sign({ key: keys.k1, claims })), 200)
      }
      assert.ok(!world.fetches.includes(JWKS_URL.default), world.fetches.join())
    })
  })
})

test('a token comes as a bearer token or as a sub-protocol, and never twice', () => {
  assert.equal(tokenOf(['Authorization', 'Bearer a.b.c']), 'a.b.c')
  assert.equal(tokenOf(['AUTHORIZATION', 'bEaReR   a.b.c ']), 'a.b.c')
  assert.equal(tokenOf(['Sec-WebSocket-Protocol', 'daml.ws.auth, jwt.token.a.b.c']), 'a.b.c')
  assert.equal(
    tokenOf(['Authorization', 'Bearer x', 'Sec-WebSocket-Protocol', 'jwt.token.y']),
    'x',
    'the bearer token wins',
  )
  for (const headers of [
    [],
    ['Authorization', ''],
    ['Authorization', 'Bearer'],
    ['Authorization', 'Bearer a', 'authorization', 'Bearer b'],
    ['X', 'authorization', 'Bearer a', 'Bearer b'],
    ['Sec-WebSocket-Protocol', 'jwt.token.'],
  ]) {
    assert.throws(() => tokenOf(headers), { code: 'UNAUTHENTICATED' }, headers.join())
  }
})

test('a change makes callers be read again, a refused one does not', async () => {
  let forgotten = 0
  const app = Fastify()
  const forget = () => {
    forgotten += 1
  }
  const refuse = () => Promise.reject(unauthenticated('no token'))
  const open = { ...authenticationOff, forget }
  app.post(
    '/open',
    guardChange(open, () => {}),
    async () => ({}),
  )
  app.post(
    '/shut',
    guardChange({ authenticate: refuse, forget }, () => {}),
    async () => ({}),
  )
  await app.inject({ method: 'POST', url: '/shut' })
  assert.equal(forgotten, 0)
  await app.inject({ method: 'POST', url: '/open' })
  assert.equal(forgotten, 1)
})

test('rights of parties include one another as the protocol says', () => {
  const holding = (...rights: Right[]): Caller => ({ userId: 'u', identityProviderId: '', rights })
  const allowed = (caller: Caller) =>
    [canActAs, canReadAs, canExecuteAs].map((can) => can(caller, 'p'))
  assert.deepEqual(allowed(holding({ kind: 'CanActAs', party: 'p' })), [true, true, true])
  assert.deepEqual(allowed(holding({ kind: 'CanReadAs', party: 'p' })), [false, true, false])
  assert.deepEqual(allowed(holding({ kind: 'CanExecuteAs', party: 'p' })), [false, false, true])
  assert.deepEqual(allowed(holding({ kind: 'CanActAs', party: 'q' })), [false, false, false])
  assert.deepEqual(allowed(holding({ kind: 'CanActAsAnyParty', party: '' })), [true, true, true])
  assert.deepEqual(allowed(holding({ kind: 'CanReadAsAnyParty', party: '' })), [false, true, false])
  assert.deepEqual(allowed(holding({ kind: 'ParticipantAdmin', party: '' })), [false, false, false])
})
