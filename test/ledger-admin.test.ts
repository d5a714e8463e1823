import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Db } from '../src/db/db.ts'
import { ledgerOpenApi } from '../src/users/openapi.ts'
import { insertParty } from '../src/users/parties-store.ts'
import { forEachEngine } from './support/engines.ts'
import { PARTICIPANT_ID, SYNCHRONIZER_ID } from './support/ledger-api.ts'
import { type Keys, makeKeys, tokenOf } from './support/ledger-tokens.ts'
import { type LedgerWorld, moveBody, openWorld, providerBody } from './support/ledger-world.ts'
import { openApiChecker } from './support/openapi-check.ts'

type Entry = {
  action: string
  caller: { userId: string; identityProviderId: string }
  subject: { kind: string; id: string }
  before: unknown
  after: unknown
  traceId: string
}

const right = (kind: string, party?: string) => ({
  kind: { [kind]: { value: party === undefined ? {} : { party } } },
})

forEachEngine((engine) => {
  describe(`administration over the ledger API on ${engine.name}`, () => {
    const cleanups: (() => Promise<void> | void)[] = []
    const check = openApiChecker()
    let db: Db
    let keys: Keys
    let world: LedgerWorld
    /** A request of an administrator whose answer must have the status and follow the document. */
    const ask = async (
      status: number,
      method: string,
      url: string,
      options: { token?: string; body?: unknown } = {},
    ) => {
      const answer = await world.call(method, url, options)
      assert.equal(answer.status, status, `${method} ${url}: ${answer.text}`)
      check({ method, url, status, body: answer.text })
      return answer.body
    }
    before(async () => {
      db = await engine.open({ after: (clean) => void cleanups.push(clean) }, 'participant')
      keys = await makeKeys()
      world = await openWorld({ db, keys })
      await ask(200, 'POST', '/v2/idps', { body: providerBody('idp1') })
      await ask(200, 'POST', '/v2/idps', { body: providerBody('idp2') })
      await ask(200, 'POST', '/v2/users', {
        body: {
          user: { id: 'idpadmin1', identityProviderId: 'idp1' },
          rights: [right('IdentityProviderAdmin')],
        },
      })
    })
    after(async () => {
      await world.app.close()
      for (const clean of cleanups) await clean()
    })

    test('pages of users follow one another whatever is created or deleted before the mark', async () => {
      for (let n = 10; n < 25; n++) {
        const user = { id: `page-${n}`, identityProviderId: 'idp2' }
        await ask(200, 'POST', '/v2/users', { body: { user } })
      }
      const seen: string[] = []
      let pageToken = ''
      let pages = 0
      do {
        const url = `/v2/users?pageSize=5&identity-provider-id=idp2&pageToken=${pageToken}`
        const page = await ask(200, 'GET', url)
        seen.push(...(page.users as { id: string }[]).map(({ id }) => id))
        pageToken = String(page.nextPageToken)
        if (pages === 0) {
          await ask(200, 'DELETE', '/v2/users/page-11?identity-provider-id=idp2')
          const user = { id: 'page-00', identityProviderId: 'idp2' }
          await ask(200, 'POST', '/v2/users', { body: { user } })
        }
        pages += 1
      } while (pageToken !== '')
      assert.deepEqual(
        seen,
        Array.from({ length: 15 }, (_, n) => `page-${n + 10}`),
      )
      assert.equal(pages, 4, 'a full last page is followed by an empty one')
      assert.equal((await ask(200, 'GET', '/v2/users?pageSize=1000000')).nextPageToken, '')
      await ask(400, 'GET', '/v2/users?pageSize=-1')
      await ask(400, 'GET', '/v2/users?pageSize=x')
    })

    test('an update changes what its mask names, merges annotations and counts the version', async () => {
      const user = { id: 'upd', metadata: { annotations: { a: '1', b: '2' } } }
      await ask(200, 'POST', '/v2/users', { body: { user } })
      const update = (changes: object, paths: string[], status = 200) =>
        ask(status, 'PATCH', '/v2/users/upd', {
          body: { user: { id: 'upd', ...changes }, updateMask: { paths } },
        })
      const merged = await update(
        { metadata: { annotations: { a: '', c: '3' } }, primaryParty: 'ignored' },
        ['metadata.annotations'],
      )
      assert.deepEqual(merged.user, {
        id: 'upd',
        primaryParty: '',
        isDeactivated: false,
        identityProviderId: '',
        primaryPartyAuthentication: false,
        metadata: { resourceVersion: '1', annotations: { b: '2', c: '3' } },
      })
      const stale = await update(
        { metadata: { resourceVersion: '0' }, primaryParty: 'p' },
        ['primary_party'],
        409,
      )
      assert.equal(stale.code, 'CONCURRENT_USER_UPDATE_DETECTED')
      await update({ metadata: { resourceVersion: '1' }, primaryParty: 'p' }, ['primary_party'])
      assert.equal(
        (await update({ metadata: { resourceVersion: 'x' } }, ['primary_party'], 400)).code,
        'INVALID_FIELD',
      )
      assert.equal(
        (await update({}, ['primary_party', 'primary_party'], 400)).code,
        'INVALID_USER_UPDATE_REQUEST',
      )
    })

    test('nobody can delete, deactivate or dethrone itself', async () => {
      await ask(400, 'DELETE', '/v2/users/participant_admin')
      const user = { id: 'participant_admin', isDeactivated: true }
      const updateMask = { paths: ['is_deactivated'] }
      await ask(400, 'PATCH', '/v2/users/participant_admin', { body: { user, updateMask } })
      const rights = [right('ParticipantAdmin')]
      await ask(400, 'PATCH', '/v2/users/participant_admin/rights', { body: { rights } })
      await ask(200, 'GET', '/v2/idps')
    })

    test('an identity provider admin administers its own provider and nothing else', async () => {
      const token = 'idp1-admin'
      await ask(200, 'POST', '/v2/users', { token, body: { user: { id: 'mine' } } })
      const mine = await ask(200, 'GET', '/v2/users/mine', { token })
      assert.equal((mine.user as { identityProviderId: string }).identityProviderId, 'idp1')
      const other = { user: { id: 'other', identityProviderId: 'idp2' } }
      await ask(403, 'POST', '/v2/users', { token, body: other })
      await ask(403, 'GET', '/v2/users?identity-provider-id=idp2', { token })
      await ask(403, 'GET', '/v2/users/participant_admin', { token })
      await ask(403, 'POST', '/v2/idps', { token, body: providerBody('idp1') })
      await ask(403, 'GET', '/v2/audit', { token })
      await ask(403, 'PATCH', '/v2/users/mine/identity-provider-id', {
        token,
        body: moveBody('idp1', ''),
      })
      const strange = { rights: [right('CanActAs', 'nobody::1220')] }
      const refused = await ask(404, 'POST', '/v2/users/mine/rights', { token, body: strange })
      assert.equal(refused.code, 'UNKNOWN_RESOURCE')
      const execute = { rights: [right('CanExecuteAs', 'nobody::1220')] }
      await ask(200, 'POST', '/v2/users/mine/rights', { token, body: execute })
      await ask(200, 'DELETE', '/v2/users/mine', { token })
    })

    test('an allocated party can be acted as by its user, and others see it blinded', async () => {
      await ask(200, 'POST', '/v2/users', { body: { user: { id: 'actor' } } })
      const body = {
        partyIdHint: 'acme',
        userId: 'actor',
        localMetadata: { annotations: { k: 'v' } },
        synchronizerId: SYNCHRONIZER_ID,
      }
      const { partyDetails } = await ask(200, 'POST', '/v2/parties', { body })
      const party = (partyDetails as { party: string }).party
      assert.equal(party, `acme::${PARTICIPANT_ID.split('::')[1]}`)
      const { rights } = await ask(200, 'GET', '/v2/users/actor/rights')
      assert.deepEqual(rights, [right('CanActAs', party)])
      assert.equal((await ask(400, 'POST', '/v2/parties', { body })).code, 'INVALID_ARGUMENT')
      const url = `/v2/parties/${encodeURIComponent(party)}`
      const blind = await ask(200, 'GET', url, { token: 'idp1-admin' })
      assert.deepEqual(blind.partyDetails, [
        {
          party,
          isLocal: false,
          localMetadata: { resourceVersion: '', annotations: {} },
          identityProviderId: '',
        },
      ])
      const patch = (annotations: object, resourceVersion: string, status: number) =>
        ask(status, 'PATCH', url, {
          body: {
            partyDetails: { party, localMetadata: { annotations, resourceVersion } },
            updateMask: { paths: ['local_metadata.annotations'] },
          },
        })
      const patched = await patch({ k: '', z: '1' }, '0', 200)
      assert.deepEqual((patched.partyDetails as { localMetadata: object }).localMetadata, {
        resourceVersion: '1',
        annotations: { z: '1' },
      })
      await patch({}, '0', 409)
      const listed = await ask(200, 'GET', '/v2/parties?filter-party=acm&pageSize=1')
      assert.equal((listed.partyDetails as object[]).length, 1)
      assert.notEqual(listed.nextPageToken, '')
      await ask(400, 'GET', '/v2/parties?pageSize=10001')
    })

    test('a user reads the parties that it has a right on, and no others', async () => {
      for (const party of ['r1::1220', 'r2::1220']) {
        await insertParty(db, {
          party,
          isLocal: true,
          localMetadata: { resourceVersion: '0', annotations: {} },
          identityProviderId: '',
          createdAt: '2026-01-01T00:00:00.000000Z',
        })
      }
      const rights = [right('CanReadAs', 'r1::1220')]
      await ask(200, 'POST', '/v2/users', { body: { user: { id: 'alice' }, rights } })
      await ask(200, 'GET', '/v2/parties/r1::1220', { token: 'alice' })
      await ask(403, 'GET', '/v2/parties/r2::1220', { token: 'alice' })
      await ask(403, 'GET', '/v2/parties/r1::1220?parties=r2::1220', { token: 'alice' })
      await ask(403, 'GET', '/v2/parties', { token: 'alice' })
    })

    test('a provider with users is not deleted, and the refusal says how many', async () => {
      const refused = await ask(400, 'DELETE', '/v2/idps/idp2')
      assert.equal(refused.code, 'IDP_CONFIG_IN_USE')
      assert.match(String(refused.cause), /still has 15 users and 0 parties/)
    })

    test('the seventeenth provider is refused', async () => {
      const create = (n: number, status: number) =>
        ask(status, 'POST', '/v2/idps', {
          body: {
            identityProviderConfig: {
              identityProviderId: `extra-${n}`,
              issuer: `https://extra.example/${n}`,
              jwksUrl: 'https://extra.example/jwks',
            },
          },
        })
      for (let n = 3; n <= 16; n++) await create(n, 200)
      assert.equal((await create(17, 400)).code, 'TOO_MANY_IDENTITY_PROVIDER_CONFIGS')
      for (let n = 3; n <= 16; n++) await ask(200, 'DELETE', `/v2/idps/extra-${n}`)
    })

    test('a key set URL with credentials, another scheme or nothing to fetch is refused', async () => {
      const urls = ['https://u:p@x.example/', 'https://u@x.example/', 'file:///etc', 'x', 'http://']
      for (const jwksUrl of urls) {
        const identityProviderConfig = { identityProviderId: 'bad', issuer: 'bad', jwksUrl }
        const refused = await ask(400, 'POST', '/v2/idps', { body: { identityProviderConfig } })
        assert.equal(refused.code, 'INVALID_FIELD', jwksUrl)
      }
    })

    test('every change is in the audit once, with who, what, before and after, and no secret', async () => {
      const token = await tokenOf(keys, 'admin')
      const newest = async () =>
        ((await ask(200, 'GET', '/v2/audit?pageSize=1')).entries as Entry[])[0]
      const config = {
        identityProviderId: 'audited',
        issuer: 'https://audited.example/',
        jwksUrl: 'https://audited.example/jwks?key=sesame',
      }
      const user = { id: 'audited', metadata: { annotations: { a: '1' } } }
      const rights = { rights: [right('CanReadAs', 'p::1')] }
      const changes: [string, string, string, unknown][] = [
        ['identity-provider.create', 'POST', '/v2/idps', { identityProviderConfig: config }],
        [
          'identity-provider.update',
          'PATCH',
          '/v2/idps/audited',
          {
            identityProviderConfig: { ...config, audience: 'x' },
            updateMask: { paths: ['audience', 'jwks_url'] },
          },
        ],
        ['user.create', 'POST', '/v2/users', { user }],
        [
          'user.update',
          'PATCH',
          '/v2/users/audited',
          { user: { id: 'audited', primaryParty: 'p' }, updateMask: { paths: ['primary_party'] } },
        ],
        ['user.rights.grant', 'POST', '/v2/users/audited/rights', rights],
        ['user.rights.revoke', 'PATCH', '/v2/users/audited/rights', rights],
        [
          'user.identity-provider.move',
          'PATCH',
          '/v2/users/audited/identity-provider-id',
          moveBody('', 'audited'),
        ],
        ['user.delete', 'DELETE', '/v2/users/audited?identity-provider-id=audited', undefined],
        ['identity-provider.delete', 'DELETE', '/v2/idps/audited', undefined],
        ['party.allocate', 'POST', '/v2/parties', { partyIdHint: 'audited' }],
      ]
      const countEntries = async () =>
        Number((await db.query<{ n: number }>('select count(*) as n from audit'))[0]?.n)
      for (const [action, method, url, body] of changes) {
        const before = await countEntries()
        const answer = await world.app.inject({
          method: method as 'GET',
          url,
          headers: {
            authorization: `Bearer ${token}`,
            traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
          },
          ...(body !== undefined && { payload: JSON.stringify(body) }),
        })
        assert.equal(answer.statusCode, 200, answer.body)
        assert.equal(await countEntries(), before + 1, action)
        const entry = await newest()
        assert.equal(entry?.action, action)
        assert.deepEqual(entry?.caller, { userId: 'participant_admin', identityProviderId: '' })
        assert.equal(entry?.traceId, '0af7651916cd43dd8448eb211c80319c')
        assert.equal(entry?.before === null, /create|grant|allocate/.test(action), action)
        assert.equal(entry?.after === null, /delete|revoke/.test(action), action)
      }
      const refusedBefore = await countEntries()
      await ask(404, 'DELETE', '/v2/users/audited')
      await ask(403, 'PATCH', '/v2/users/idpadmin1/identity-provider-id', {
        body: moveBody('', ''),
      })
      await ask(200, 'POST', '/v2/users/idpadmin1/rights', {
        body: { identityProviderId: 'idp1', rights: [right('IdentityProviderAdmin')] },
      })
      assert.equal(await countEntries(), refusedBefore, 'what changes nothing leaves no entry')

      const whole = JSON.stringify(await db.query('select * from audit'))
      assert.ok(!whole.includes('sesame'))
      assert.ok(!whole.includes('eyJ'), 'no token')
      const moves = await ask(200, 'GET', '/v2/audit?user=audited')
      assert.equal((moves.entries as Entry[]).length, 6)
      await ask(400, 'GET', '/v2/audit?user=a&idp=b')
      await ask(400, 'GET', '/v2/audit?pageToken=x')
      const first = await ask(200, 'GET', '/v2/audit?pageSize=2')
      const second = await ask(200, 'GET', `/v2/audit?pageSize=2&pageToken=${first.nextPageToken}`)
      const ids = [...(first.entries as { id: string }[]), ...(second.entries as { id: string }[])]
      assert.equal(new Set(ids.map(({ id }) => id)).size, 4)
    })

    test('a node tells its version to anyone and its synchronizer to its users', async () => {
      const version = await world.app.inject('/v2/version')
      check({ method: 'GET', url: '/v2/version', status: 200, body: version.body })
      assert.match(version.json().version, /^3\.5\./)
      const body = await ask(200, 'GET', '/v2/state/connected-synchronizers')
      const [first] = body.connectedSynchronizers as { synchronizerId: string }[]
      assert.equal(first?.synchronizerId, SYNCHRONIZER_ID)
      assert.equal((await world.app.inject('/v2/state/connected-synchronizers')).statusCode, 401)
    })

    test('the document is served, and every operation of it is there', async () => {
      const served = await world.app.inject('/openapi.json')
      assert.deepEqual(served.json(), JSON.parse((await world.app.inject('/docs/openapi')).body))
      for (const [path, methods] of Object.entries(ledgerOpenApi('x').paths)) {
        if (path === '/readyz' || path === '/livez') continue
        for (const method of Object.keys(methods)) {
          const answer = await world.app.inject({
            method: method as 'GET',
            url: path.replaceAll(/\{[^}]+\}/g, 'x'),
          })
          assert.ok([200, 401].includes(answer.statusCode), `${method} ${path}: ${answer.body}`)
        }
      }
    })

    test('percent-encoded ids work, also long ones', async () => {
      for (const id of ['auth0|abc', 'x@clients', 'a:b', "it's", `${'|'.repeat(128)}`]) {
        await ask(200, 'POST', '/v2/users', { body: { user: { id } } })
        const url = `/v2/users/${encodeURIComponent(id)}`
        const { user } = await ask(200, 'GET', url)
        assert.equal((user as { id: string }).id, id)
        await ask(200, 'PATCH', `${url}/identity-provider-id`, { body: moveBody('', 'idp1') })
        await ask(200, 'DELETE', `${url}?identity-provider-id=idp1`)
      }
    })
  })
})
