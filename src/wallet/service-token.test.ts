import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLIENT_SECRET, startOidcServer } from '../../test/support/oidc.ts'
import { clientCredentialsSource } from './client-credentials.ts'
import { fixedToken, NoServiceToken, openRenewedToken } from './service-token.ts'

const AUDIENCE = 'https://ledger-api.example'

test('a token that never changes is always there', async () => {
  assert.equal(await fixedToken('abc').get(), 'abc')
  assert.equal(await fixedToken(undefined).get(), undefined)
  assert.equal(fixedToken(undefined).fault(), undefined)
})

test('a token serves until it expires; then whoever asks makes the source be asked again', async (t) => {
  let now = 0
  let asked = 0
  let isAway = false
  const token = openRenewedToken({
    now: () => now,
    async source() {
      asked += 1
      if (isAway) throw new NoServiceToken('The provider is away.')
      return { token: `token-${asked}`, lifetimeMs: 100_000 }
    },
  })
  t.after(() => token.close())
  const many = await Promise.all(Array.from({ length: 10 }, () => token.get()))
  assert.deepEqual(new Set(many), new Set(['token-1']), 'all wait for one')
  assert.equal(asked, 1)
  isAway = true
  now = 98_000
  assert.equal(await token.get(), 'token-1')
  assert.equal(token.fault(), undefined)
  now = 99_500
  await assert.rejects(token.get(), /The provider is away/)
  assert.equal(token.fault(), 'The provider is away.')
  const before = asked
  await assert.rejects(token.get(), NoServiceToken)
  assert.equal(asked, before, 'a provider that is away is not stormed')
  isAway = false
  now += 1000
  assert.equal(await token.get(), `token-${before + 1}`)
  assert.equal(token.fault(), undefined)
})

test('a token is renewed in the background, before it expires', async (t) => {
  let asked = 0
  const token = openRenewedToken({
    source: async () => {
      asked += 1
      return { token: `token-${asked}`, lifetimeMs: 1600 }
    },
  })
  t.after(() => token.close())
  const first = await token.get()
  for (let last = first; last === first; ) {
    last = await token.get()
    assert.equal(token.fault(), undefined, 'there is never a moment without a token')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
})

test('client credentials are taken to a real provider; what it refuses is told without the secret', async (t) => {
  const provider = await startOidcServer(t, { clientId: 'validator', audience: AUDIENCE })
  const credentials = {
    url: `${provider.issuer}/.well-known/openid-configuration`,
    clientId: 'validator',
    clientSecret: { reveal: () => CLIENT_SECRET },
    audience: AUDIENCE,
    scope: undefined,
  }
  const signal = new AbortController().signal
  const { token, lifetimeMs } = await clientCredentialsSource(credentials, fetch)(signal)
  assert.equal(token.split('.').length, 3)
  assert.equal(lifetimeMs, 3_600_000)

  const wrong = { ...credentials, clientSecret: { reveal: () => 'not & the%secret' } }
  const refusal = async (of: typeof credentials): Promise<string> => {
    try {
      await clientCredentialsSource(of, fetch)(signal)
      return ''
    } catch (error) {
      assert.ok(error instanceof NoServiceToken)
      return error.message
    }
  }
  const said = await refusal(wrong)
  assert.match(said, /gives no token: status 401 \(invalid_client\)/)
  assert.ok(!said.includes('not & the%secret'))
  assert.match(
    await refusal({ ...credentials, url: `${provider.issuer}/jwks` }),
    /no token endpoint/,
  )
  assert.match(await refusal({ ...credentials, url: `${provider.issuer}/x` }), /status 404/)
  await provider.stop()
  assert.match(await refusal(credentials), /does not answer/)
})
