import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretOf } from '../src/config/secret.ts'
import { testConfig } from './support/node.ts'
import { CLIENT_SECRET, startOidcServer } from './support/oidc.ts'
import { startWalletNode, until } from './support/wallet.ts'

const CLIENT = 'validator'
const AUDIENCE = 'https://ledger-api.example'
/** Renewed after less than three seconds, and over after four. */
const TTL_SECONDS = 5

test('wallets come to the participant by client credentials, and outlive a provider that is away', async (t) => {
  const provider = await startOidcServer(t, {
    clientId: CLIENT,
    audience: AUDIENCE,
    ttlSeconds: TTL_SECONDS,
  })
  const { auth } = testConfig(t)
  const ledgerApi = {
    user: CLIENT,
    url: `${provider.issuer}/.well-known/openid-configuration`,
    clientId: CLIENT,
    clientSecret: secretOf(CLIENT_SECRET),
    audience: AUDIENCE,
    scope: 'daml_ledger_api',
    token: undefined,
  }
  const participant = { jwksUrl: provider.jwksUrl, targetAudience: AUDIENCE }
  const config = { auth: { ...auth, participant, ledgerApi, ledgerApiUser: CLIENT } }
  const wallet = await startWalletNode(t, { config, wallet: { users: ['operator'] } })
  const { validator } = wallet.node.urls
  const readiness = async () => {
    const response = await fetch(`${validator}/readyz`)
    return { status: response.status, text: await response.text() }
  }
  const tap = () => wallet.ask('operator', 'POST', '/v0/wallet/tap', { amount: '1' })
  assert.equal((await tap()).status, 200)
  assert.equal((await readiness()).status, 200)

  await provider.stop()
  assert.equal((await tap()).status, 200, 'the token still serves')
  await until(async () => (await tap()).status === 503, 'the token to expire')
  const refused = await tap()
  assert.match(String(refused.body.error), /provider http:\/\/127\.0\.0\.1:\d+ does not answer/)
  await until(async () => (await readiness()).status === 503, 'readiness to say so')
  const { text } = await readiness()
  assert.match(text, /wallet: The OpenID Connect provider .* does not answer/)
  assert.ok(!text.includes(CLIENT_SECRET))

  await provider.startWithNewKey()
  await until(async () => (await tap()).status === 200, 'a new token')
  await until(async () => (await readiness()).status === 200, 'readiness')
})
