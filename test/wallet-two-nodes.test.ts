import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretOf } from '../src/config/secret.ts'
import { decimal } from '../src/values/decimal.ts'
import { forEachEngine } from './support/engines.ts'
import { testConfig } from './support/node.ts'
import { checkLog, startWalletNode, until } from './support/wallet.ts'

const OFFERS = '/v0/wallet/transfer-offers'
const OPERATOR = 'participant_admin'

forEachEngine((engine) => {
  test(`${engine.name}: the wallets of two nodes pay each other by offers and preapprovals`, async (t) => {
    const one = await startWalletNode(t, { target: await engine.newTarget(t) })
    const { auth, identity } = testConfig(t)
    const token = secretOf(await one.token(OPERATOR))
    const nothing = { url: undefined, clientId: undefined, clientSecret: undefined }
    const ledgerApi = { user: OPERATOR, ...nothing, audience: undefined, scope: undefined, token }
    const two = await startWalletNode(t, {
      target: await engine.newTarget(t),
      empty: true,
      simTime: false,
      seed: 'second',
      config: {
        auth: { ...auth, ledgerApi },
        identity: { ...identity, partyHint: 'second-validator-1' },
      },
      wallet: { participantUrl: one.node.urls.ledger, scanUrl: one.node.urls.scan },
    })
    type Operator = { party_id: string }
    const { party_id: second } = await two.get<Operator>('', '/v0/validator-user')
    assert.match(second, /^second-validator-1::/)
    const alice = await one.register('alice')
    const zoe = await two.register('zoe')
    assert.equal(await two.balance('zoe'), 0n)
    assert.equal((await one.ask('zoe', 'GET', '/v0/wallet/balance')).status, 404, 'not there')

    await one.post('alice', OFFERS, {
      receiver_party_id: zoe,
      amount: '40',
      description: 'to another node',
      expires_at: Number((await one.now()) + 3_600_000_000n),
      tracking_id: 'across',
    })
    type Offers = { offers: { contract_id: string }[] }
    const seen = () => two.get<Offers>('zoe', OFFERS)
    await until(async () => (await seen()).offers.length === 1, 'the offer')
    const [offer] = (await seen()).offers
    await two.post('zoe', `${OFFERS}/${offer?.contract_id}/accept`)
    await until(async () => (await two.balance('zoe')) === decimal('40'), 'the coins')

    await one.post('alice', '/v0/wallet/transfer-preapproval')
    const back = { receiver_party_id: alice, amount: '15', deduplication_id: 'back' }
    await two.post('zoe', '/v0/wallet/transfer-preapproval/send', back)
    await until(
      async () => (await checkLog(one, 'alice'))[0]?.amount === '15.0000000000',
      'it back',
    )
    assert.equal(await two.balance('zoe'), decimal('25'))
    await checkLog(two, 'zoe')

    const short = await two.ask('zoe', 'POST', OFFERS, {
      receiver_party_id: alice,
      amount: '1',
      description: '',
      expires_at: Number(await one.now()),
      tracking_id: 'past',
    })
    assert.equal(short.status, 400, 'the time is that of the participant')

    await one.node.close()
    const away = await two.ask('zoe', 'POST', '/v0/wallet/tap', { amount: '1' })
    assert.equal(away.status, 503)
    assert.match(String(away.body.error), /cannot be reached/)
    await until(async () => {
      const ready = await fetch(`${two.node.urls.validator}/readyz`)
      const text = await ready.text()
      return ready.status === 503 && text.includes('do not follow the ledger')
    }, 'readiness to say it')
  })
})
