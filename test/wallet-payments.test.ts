import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decimal } from '../src/values/decimal.ts'
import { forEachEngine } from './support/engines.ts'
import { checkLog, readLog, startWalletNode, type WalletNode } from './support/wallet.ts'

const PREAPPROVAL = '/v0/wallet/transfer-preapproval'
const SEND = '/v0/wallet/transfer-preapproval/send'
const TRAFFIC = '/v0/wallet/buy-traffic-requests'
const byParty = (party: string) =>
  `/v0/admin/transfer-preapprovals/by-party/${encodeURIComponent(party)}`

const totalOf = async (wallet: WalletNode, users: string[]) => {
  let sum = 0n
  for (const user of users) sum += await wallet.balance(user)
  return sum
}

forEachEngine((engine) => {
  test(`${engine.name}: a preapproval is created, used, cancelled and ends`, async (t) => {
    const wallet = await startWalletNode(t, { target: await engine.newTarget(t) })
    await wallet.register('alice')
    const bob = await wallet.register('bob')
    const body = { receiver_party_id: bob, amount: '2.25', deduplication_id: 'd1' }
    const early = await wallet.ask('alice', 'POST', SEND, body)
    assert.equal(early.status, 400)
    assert.match(String(early.body.error), /no preapproval/)

    const created = await wallet.post<Record<string, string>>('bob', PREAPPROVAL)
    const again = await wallet.ask('bob', 'POST', PREAPPROVAL)
    assert.equal(again.status, 409)
    assert.equal(
      again.body.transfer_preapproval_contract_id,
      created.transfer_preapproval_contract_id,
    )
    assert.equal((await wallet.ask('alice', 'GET', byParty(bob))).status, 403)
    await wallet.get('bob', byParty(bob))
    type Listed = { contracts: { contract_id: string }[] }
    const listed = await wallet.get<Listed>('participant_admin', '/v0/admin/transfer-preapprovals')
    assert.ok(
      listed.contracts.some((c) => c.contract_id === created.transfer_preapproval_contract_id),
    )

    const before = await wallet.balance('bob')
    const sent = await wallet.post('alice', SEND, { ...body, description: 'Grazie! 🍕' })
    assert.deepEqual(await wallet.post('alice', SEND, { ...body, description: 'Grazie! 🍕' }), sent)
    assert.equal((await wallet.ask('alice', 'POST', SEND, body)).status, 409, 'no description')
    assert.equal(await wallet.balance('bob'), before + decimal('2.25'), 'paid once')
    const [entry] = await checkLog(wallet, 'bob')
    assert.equal(entry?.description, 'Grazie! 🍕')
    assert.equal(entry?.transaction_subtype.choice, 'TransferPreapproval_Send')

    assert.equal((await wallet.ask('bob', 'DELETE', byParty(bob))).status, 200)
    assert.equal((await wallet.ask('bob', 'DELETE', byParty(bob))).status, 404)
    const late = await wallet.ask('alice', 'POST', SEND, { ...body, deduplication_id: 'd2' })
    assert.equal(late.status, 400)
    await wallet.post('bob', PREAPPROVAL)
    await wallet.post('alice', SEND, { ...body, deduplication_id: 'd2' })
    await checkLog(wallet, 'alice')
  })

  test(`${engine.name}: coins are tapped, traffic is bought, and what is missing is said`, async (t) => {
    const wallet = await startWalletNode(t, { target: await engine.newTarget(t) })
    const alice = await wallet.register('alice')
    const start = await wallet.balance('alice')
    const tapped = await wallet.post('alice', '/v0/wallet/tap', {
      amount: '15.2',
      command_id: 'tap-1',
    })
    const again = { amount: '15.2', command_id: 'tap-1' }
    assert.deepEqual(await wallet.post('alice', '/v0/wallet/tap', again), tapped)
    assert.equal(
      (await wallet.ask('alice', 'POST', '/v0/wallet/tap', { ...again, amount: '1' })).status,
      409,
    )
    type Balance = { amulet_price: string; effective_unlocked_qty: string; unlocked_usd: string }
    const held = await wallet.get<Balance>('alice', '/v0/wallet/balance')
    const price = decimal(held.amulet_price)
    assert.equal(
      (await wallet.balance('alice')) - start,
      (decimal('15.2') * 10n ** 10n) / price,
      'USD at the price of the round',
    )

    type Traffic = { domain_id: string; extra_traffic_remainder: number }
    const traffic = () => wallet.get<Traffic>('alice', '/v0/wallet/traffic-status')
    const { domain_id, extra_traffic_remainder: before } = await traffic()
    const wish = {
      receiving_validator_party_id: alice,
      domain_id,
      traffic_amount: 1_000_000,
      expires_at: Number((await wallet.now()) + 60_000_000n),
      tracking_id: 'traffic-1',
    }
    const bought = await wallet.post('alice', TRAFFIC, wish)
    assert.deepEqual(await wallet.post('alice', TRAFFIC, wish), bought)
    assert.equal((await traffic()).extra_traffic_remainder, before + 1_000_000)
    type Status = { status: string }
    const status = await wallet.post<Status>('alice', `${TRAFFIC}/traffic-1/status`)
    assert.equal(status.status, 'completed')
    assert.equal((await wallet.ask('alice', 'POST', `${TRAFFIC}/other/status`)).status, 404)
    const [entry] = await checkLog(wallet, 'alice')
    assert.equal(entry?.transaction_subtype.choice, 'AmuletRules_BuyMemberTraffic')

    for (const [change, sentence] of [
      [{ traffic_amount: 10 }, /At least 200000 bytes/],
      [{ traffic_amount: 9_000_000_000 }, /less than the/],
      [{ domain_id: 'other::1220' }, /synchronizer/],
      [{ receiving_validator_party_id: 'nobody::1220' }, /does not host/],
    ] as const) {
      const answer = await wallet.ask('alice', 'POST', TRAFFIC, {
        ...wish,
        ...change,
        tracking_id: 'traffic-2',
      })
      assert.equal(answer.status, 400, JSON.stringify(answer.body))
      assert.match(String(answer.body.error), sentence)
    }
    await wallet.post('alice', TRAFFIC, { ...wish, tracking_id: 'traffic-2' })
  })

  test(`${engine.name}: payments of many callers at once lose no coin, and log pages hold each once`, async (t) => {
    const wallet = await startWalletNode(t, { target: await engine.newTarget(t) })
    const users = ['alice', 'bob', 'carol']
    const parties: string[] = []
    for (const user of users) parties.push(await wallet.register(user))
    for (const user of ['alice', 'bob']) await wallet.post(user, PREAPPROVAL)
    const before = await totalOf(wallet, users)
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        wallet.ask(users[n % 3] as string, 'POST', SEND, {
          receiver_party_id: parties[(n + 1 + (n % 2)) % 3],
          amount: '1.0000000001',
          deduplication_id: `payment-${n}`,
        }),
      ),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    assert.equal(await totalOf(wallet, users), before)
    for (const user of users) {
      const whole = await checkLog(wallet, user)
      for (const size of [1, 50, 5000]) assert.deepEqual(await readLog(wallet, user, size), whole)
    }
  })
})
