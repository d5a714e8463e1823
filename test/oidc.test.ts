import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAuthentication } from '../src/users/authentication.ts'
import { ensureFirstUsers } from '../src/users/first-users.ts'
import { forEachEngine } from './support/engines.ts'
import { buildLedgerApi, PARTICIPANT_ID } from './support/ledger-api.ts'
import { moveBody } from './support/ledger-world.ts'
import { startOidcServer } from './support/oidc.ts'

const OLD_AUDIENCE = 'https://ledger.example/old'
const NEW_AUDIENCE = 'https://ledger.example/new'
const CLIENT = 'validator-backend'

forEachEngine((engine) => {
  test(`a company changes its OpenID provider while the node runs on ${engine.name}`, async (t) => {
    const old = await startOidcServer(t, { clientId: CLIENT, audience: OLD_AUDIENCE })
    const fresh = await startOidcServer(t, { clientId: CLIENT, audience: NEW_AUDIENCE })
    const db = await engine.open(t, 'participant')
    await ensureFirstUsers(db, { serviceUser: CLIENT })
    const fetchOutcomes: string[] = []
    const authentication = await openAuthentication({
      db,
      participantId: PARTICIPANT_ID,
      defaultProvider: { jwksUrl: old.jwksUrl, audience: OLD_AUDIENCE },
      events: { onKeySetFetch: (outcome) => void fetchOutcomes.push(outcome) },
    })
    const app = await buildLedgerApi({ db, authentication })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    t.after(() => app.close())
    const call = async (token: string, method: string, path: string, body?: object) => {
      const response = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${token}` },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as { user: { id: string } } }
    }

    const first = await old.token()
    const me = await call(first, 'GET', '/v2/authenticated-user')
    assert.equal(me.status, 200)
    assert.equal(me.body.user.id, CLIENT)

    // Rotation: a token of the new key is accepted at once, one of the withdrawn key is not.
    await old.stop()
    await old.startWithNewKey()
    const second = await old.token()
    assert.equal((await call(second, 'GET', '/v2/users')).status, 200)
    assert.equal((await call(first, 'GET', '/v2/users')).status, 401)

    // Outage: known keys go on.
    await old.stop()
    assert.equal((await call(second, 'GET', '/v2/users')).status, 200)

    const identityProviderConfig = {
      identityProviderId: 'new',
      issuer: fresh.issuer,
      jwksUrl: fresh.jwksUrl,
      audience: NEW_AUDIENCE,
    }
    const created = await call(second, 'POST', '/v2/idps', { identityProviderConfig })
    assert.equal(created.status, 200)
    const third = await fresh.token()
    assert.equal((await call(third, 'GET', '/v2/idps')).status, 403)
    const path = `/v2/users/${CLIENT}/identity-provider-id`
    assert.equal((await call(second, 'PATCH', path, moveBody('', 'new'))).status, 200)
    assert.equal((await call(second, 'GET', '/v2/idps')).status, 403)
    assert.equal((await call(third, 'GET', '/v2/idps')).status, 200)
    assert.deepEqual(
      fetchOutcomes,
      ['ok', 'ok', 'ok', 'ok'],
      'first use, rotation, the withdrawn key, the new provider',
    )
  })
})
