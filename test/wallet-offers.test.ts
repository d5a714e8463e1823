import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { decimal, printDecimal } from '../src/values/decimal.ts'
import { forEachEngine } from './support/engines.ts'
import { checkLog, startWalletNode, until, type WalletNode } from './support/wallet.ts'

const HOUR_MICROS = 3_600_000_000n
const OFFERS = '/v0/wallet/transfer-offers'

async function offer(
  wallet: WalletNode,
  of: { from: string; to: string; amount: string; lifeMicros?: bigint; trackingId?: string },
) {
  const trackingId = of.trackingId ?? randomUUID()
  const { offer_contract_id: contractId } = await wallet.post<{ offer_contract_id: string }>(
    of.from,
    OFFERS,
    {
      receiver_party_id: of.to,
      amount: of.amount,
      description: 'for lunch',
      expires_at: Number((await wallet.now()) + (of.lifeMicros ?? HOUR_MICROS)),
      tracking_id: trackingId,
    },
  )
  const status = () =>
    wallet.post<{ status: string; failure_kind?: string; withdrawn_reason?: string }>(
      of.from,
      `${OFFERS}/${trackingId}/status`,
    )
  return { contractId, trackingId, status }
}

const openOffers = async (wallet: WalletNode, user: string) => {
  const { offers } = await wallet.get<{ offers: { contract_id: string }[] }>(user, OFFERS)
  return offers.map(({ contract_id }) => contract_id)
}

forEachEngine((engine) => {
  test(`${engine.name}: an offer is made, accepted and paid, and both logs tell of it`, async (t) => {
    const wallet = await startWalletNode(t, { target: await engine.newTarget(t) })
    const alice = await wallet.register('alice')
    const bob = await wallet.register('bob')
    const before = { alice: await wallet.balance('alice'), bob: await wallet.balance('bob') }
    const made = await offer(wallet, { from: 'alice', to: bob, amount: '12.5' })
    assert.equal((await made.status()).status, 'created')
    assert.ok((await openOffers(wallet, 'alice')).includes(made.contractId))
    assert.ok((await openOffers(wallet, 'bob')).includes(made.contractId))

    const path = `${OFFERS}/${made.contractId}/accept`
    const accepted = await wallet.post('bob', path)
    assert.deepEqual(await wallet.post('bob', path), accepted, 'a repeated acceptance is the same')
    await until(async () => (await made.status()).status === 'completed', 'the payment')
    const amount = decimal('12.5')
    await until(async () => (await wallet.balance('bob')) === before.bob + amount, 'the coins')
    assert.equal(await wallet.balance('alice'), before.alice - amount)

    const [sent] = await checkLog(wallet, 'alice')
    const [received] = await checkLog(wallet, 'bob')
    assert.equal(sent?.transaction_id, received?.transaction_id)
    assert.deepEqual(
      [sent?.amount, received?.amount, sent?.tracking_id],
      [printDecimal(-amount), printDecimal(amount), made.trackingId],
    )
    assert.deepEqual(sent?.sender, { party: alice, amount: printDecimal(-amount) })
    assert.deepEqual(sent?.receivers, [{ party: bob, amount: printDecimal(amount) }])
  })

  test(`${engine.name}: an offer can be rejected, withdrawn, or run out of time`, async (t) => {
    const wallet = await startWalletNode(t, { target: await engine.newTarget(t) })
    await wallet.register('alice')
    const bob = await wallet.register('bob')
    const held = await wallet.balance('alice')
    const rejected = await offer(wallet, { from: 'alice', to: bob, amount: '1' })
    const withdrawn = await offer(wallet, { from: 'alice', to: bob, amount: '2' })
    const late = await offer(wallet, { from: 'alice', to: bob, amount: '3' })

    const notHers = await wallet.ask('alice', 'POST', `${OFFERS}/${rejected.contractId}/reject`)
    assert.equal(notHers.status, 404, 'only the receiver rejects')
    await wallet.post('bob', `${OFFERS}/${rejected.contractId}/reject`)
    await wallet.post('bob', `${OFFERS}/${rejected.contractId}/reject`)
    assert.deepEqual(await rejected.status(), { status: 'failed', failure_kind: 'rejected' })
    const notHis = await wallet.ask('bob', 'POST', `${OFFERS}/${withdrawn.contractId}/withdraw`)
    assert.equal(notHis.status, 404, 'only the sender withdraws')
    await wallet.post('alice', `${OFFERS}/${withdrawn.contractId}/withdraw`)
    assert.equal((await withdrawn.status()).failure_kind, 'withdrawn')
    const gone = await wallet.ask('bob', 'POST', `${OFFERS}/${withdrawn.contractId}/accept`)
    assert.equal(gone.status, 404)
    assert.match(String(gone.body.error), /no open transfer offer/)

    await wallet.advance('1h')
    const refused = await wallet.ask('bob', 'POST', `${OFFERS}/${late.contractId}/accept`)
    assert.ok([400, 404, 409].includes(refused.status), 'too late, or just being expired')
    await until(async () => (await late.status()).failure_kind === 'expired', 'the expiry')
    assert.ok(!(await openOffers(wallet, 'bob')).includes(late.contractId))
    assert.equal(await wallet.balance('alice'), held, 'nothing was paid')
  })

  test(`${engine.name}: many callers with one tracking id make one offer`, async (t) => {
    const wallet = await startWalletNode(t, { target: await engine.newTarget(t) })
    await wallet.register('alice')
    const bob = await wallet.register('bob')
    const before = (await openOffers(wallet, 'alice')).length
    const body = {
      receiver_party_id: bob,
      amount: '3',
      description: '',
      expires_at: Number((await wallet.now()) + HOUR_MICROS),
      tracking_id: 'one and only',
    }
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        wallet.ask('alice', 'POST', OFFERS, n % 3 === 2 ? { ...body, amount: '4' } : body),
      ),
    )
    const made = new Set(
      answers.filter(({ status }) => status === 200).map(({ body }) => JSON.stringify(body)),
    )
    assert.equal(made.size, 1, 'all who succeeded have the same offer')
    const others = answers.filter(({ status }) => status !== 200)
    assert.ok(others.length > 0)
    for (const { status, body } of others) {
      assert.equal(status, 409)
      assert.match(String(body.error), /tracking id one and only/)
    }
    assert.equal((await openOffers(wallet, 'alice')).length, before + 1)

    await wallet.advance('25h')
    assert.equal((await wallet.ask('alice', 'POST', OFFERS, body)).status, 200)
    const changed = { ...body, description: 'another' }
    assert.equal((await wallet.ask('alice', 'POST', OFFERS, changed)).status, 409)
    assert.equal(
      (await openOffers(wallet, 'alice')).length,
      before,
      'it expired; no other was made',
    )
  })
})
