import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWalletNode } from './support/wallet.ts'

const HEX = 'ab'.repeat(69)

test('whatever is wrong with a request is a sentence', async (t) => {
  const wallet = await startWalletNode(t)
  await wallet.register('alice')
  const bob = await wallet.register('bob')
  const expires_at = Number((await wallet.now()) + 60_000_000n)
  const offer = {
    receiver_party_id: bob,
    amount: '1',
    description: 'x',
    expires_at,
    tracking_id: 'bad',
  }
  const offers = '/v0/wallet/transfer-offers'
  const transactions = '/v0/wallet/transactions'
  const cases: [path: string, body: unknown, status?: number][] = [
    [offers, ''],
    [offers, '{'],
    [offers, '[]'],
    [offers, 'null'],
    [offers, '"text"'],
    [offers, {}],
    ...[
      1,
      0.1,
      '',
      '0',
      '-1',
      '1e3',
      '1.00000000001',
      '١',
      ' 1',
      `${'9'.repeat(29)}`,
      null,
      {},
    ].map((amount): [string, unknown] => [offers, { ...offer, amount }]),
    ...['', 7, null, 'no party!', 'bob', 'bob::', 'x'.repeat(256)].map(
      (receiver_party_id): [string, unknown] => [offers, { ...offer, receiver_party_id }],
    ),
    ...[0, -1, 1.5, '', 'soon', expires_at - 60_000_001, 1e18, null].map(
      (expires_at): [string, unknown] => [offers, { ...offer, expires_at }],
    ),
    ...['', 1, null, 'x'.repeat(256), '\u0000', '\ud800'].map((tracking_id): [string, unknown] => [
      offers,
      { ...offer, tracking_id },
    ]),
    [offers, { ...offer, description: 'x'.repeat(1001) }],
    [offers, { ...offer, description: 5 }],
    [offers, { ...offer, receiver_party_id: 'nobody::1220abcd' }, 404],
    ['/v0/wallet/tap', { amount: '0' }],
    ['/v0/wallet/tap', { amount: 5 }],
    ['/v0/wallet/tap', { amount: `${'9'.repeat(28)}.9999999999` }],
    ['/v0/wallet/transfer-preapproval/send', { ...offer, deduplication_id: '' }],
    [transactions, {}],
    [transactions, { page_size: 0 }],
    [transactions, { page_size: -1 }],
    [transactions, { page_size: 'all' }],
    [transactions, { page_size: 5, begin_after_id: 'unknown:0' }],
    [transactions, { page_size: 5, begin_after_id: 7 }],
    [`${offers}/xyz/accept`, undefined],
    [`${offers}/abc/accept`, undefined],
    [`${offers}/${HEX}/accept`, undefined, 404],
    [`${offers}/${HEX}/reject`, undefined, 404],
    [`${offers}/${HEX}/withdraw`, undefined, 404],
    [`${offers}/${'ab'.repeat(300)}/withdraw`, undefined],
    [`${offers}/unknown/status`, undefined, 404],
    ['/v0/wallet/buy-traffic-requests', { ...offer, traffic_amount: 0 }],
  ]
  for (const [path, body, status = 400] of cases) {
    const answer = await wallet.ask('alice', 'POST', path, body)
    const shown = `${path} ${JSON.stringify(body)?.slice(0, 120)}: ${JSON.stringify(answer.body)}`
    assert.equal(answer.status, status, shown)
    assert.match(String(answer.body.error), /^[A-Za-z].*\.$/s, shown)
  }
  const huge = JSON.stringify({ ...offer, description: 'x'.repeat(2 * 1024 * 1024) })
  assert.equal((await wallet.ask('alice', 'POST', offers, huge)).status, 413)
  assert.equal((await wallet.ask('alice', 'PUT', offers, {})).status, 405)
  const before = await wallet.balance('alice')
  const poor = { receiver_party_id: bob, amount: '99999999', deduplication_id: 'poor' }
  await wallet.post('bob', '/v0/wallet/transfer-preapproval')
  const refused = await wallet.ask('alice', 'POST', '/v0/wallet/transfer-preapproval/send', poor)
  assert.equal(refused.status, 400)
  assert.match(String(refused.body.error), /less than the 99999999 that are needed/)
  assert.equal(await wallet.balance('alice'), before)
})

test('what many ask for at the same time is done once, and each is told', async (t) => {
  const wallet = await startWalletNode(t)
  const thirty = <T>(ask: () => Promise<T>) => Promise.all(Array.from({ length: 30 }, ask))
  const parties = await thirty(() => wallet.register('erin'))
  assert.equal(new Set(parties).size, 1)
  const [party] = parties
  await wallet.post('erin', '/v0/wallet/transfer-preapproval')
  const path = `/v0/admin/transfer-preapprovals/by-party/${party}`
  const statuses = (await thirty(() => wallet.ask('erin', 'DELETE', path))).map(
    ({ status }) => status,
  )
  assert.deepEqual(statuses.toSorted(), [200, ...Array(29).fill(404)])
})

test('a transfer in the log has every field that deployed wallets give it', async (t) => {
  const wallet = await startWalletNode(t)
  await wallet.register('alice')
  type Log = { items: Record<string, unknown>[] }
  const { items } = await wallet.post<Log>('alice', '/v0/wallet/transactions', { page_size: 100 })
  const transfers = items.filter(({ transaction_type }) => transaction_type === 'transfer')
  assert.ok(transfers.length > 0)
  const fields = ['sender', 'receivers', 'holding_fees', 'app_rewards_used', 'sv_rewards_used']
  const more = ['validator_rewards_used', 'development_fund_coupons_used', 'date', 'event_id']
  for (const transfer of transfers) {
    for (const field of [...fields, ...more]) assert.notEqual(transfer[field], undefined, field)
  }
})
