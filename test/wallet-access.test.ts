import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mintDevToken, readDevKey } from '../src/users/dev-key.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory, testConfig } from './support/node.ts'
import { startWalletNode, until, type WalletNode } from './support/wallet.ts'

const BALANCE = '/v0/wallet/balance'
const OFFERS = '/v0/wallet/transfer-offers'

type Rights = { rights: { kind: { CanActAs?: { value: { party: string } } } }[] }
const partiesOf = async (wallet: WalletNode, user: string) => {
  const { rights } = await wallet.ledger<Rights>('GET', `/v2/users/${user}/rights`)
  return rights.flatMap(({ kind }) => kind.CanActAs?.value.party ?? [])
}
const change = (wallet: WalletNode, method: string, user: string, party: string) =>
  wallet.ledger(method, `/v2/users/${user}/rights`, {
    userId: user,
    rights: [{ kind: { CanActAs: { value: { party } } } }],
  })

test('a wallet takes tokens for its audience from users who have one', async (t) => {
  const wallet = await startWalletNode(t)
  const { node, dataDirectory } = wallet
  const key = await readDevKey(dataDirectory)
  assert.ok(key !== undefined)
  const statusWith = async (authorization: string | undefined) => {
    const headers = authorization === undefined ? {} : { authorization }
    const response = await fetch(node.urls.validator + BALANCE, { headers })
    const { error } = (await response.json()) as { error: string }
    assert.match(error, /^The request carries no valid token\. Send one/)
    return response.status
  }
  const other = { userId: 'alice', ttlSeconds: 60, audience: 'https://other.example' }
  assert.equal(await statusWith(undefined), 401)
  assert.equal(await statusWith('Bearer nonsense'), 401)
  assert.equal(await statusWith(`Bearer ${await mintDevToken(key, other)}`), 401)
  const past = { ...other, audience: 'https://annals.localhost', nowSeconds: 1_000_000 }
  assert.equal(await statusWith(`Bearer ${await mintDevToken(key, past)}`), 401)

  const stranger = await wallet.ask('alice', 'GET', BALANCE)
  assert.equal(stranger.status, 404)
  assert.match(String(stranger.body.error), /register gives it one/)
  const status = await wallet.get<{ user_onboarded: boolean }>('alice', '/v0/wallet/user-status')
  assert.equal(status.user_onboarded, false)
  const alice = await wallet.register('alice')
  assert.equal(await wallet.register('alice'), alice, 'registering again changes nothing')
  await wallet.get('alice', BALANCE)

  await change(wallet, 'PATCH', 'alice', alice)
  await until(async () => (await wallet.ask('alice', 'GET', BALANCE)).status === 403, 'no right')
  await change(wallet, 'POST', 'alice', alice)
  await until(async () => (await wallet.ask('alice', 'GET', BALANCE)).status === 200, 'the right')
  await wallet.ledger('PATCH', '/v2/users/alice', {
    user: { id: 'alice', isDeactivated: true },
    updateMask: { paths: ['is_deactivated'] },
  })
  await until(async () => (await wallet.ask('alice', 'GET', BALANCE)).status === 403, 'deactivated')
})

test('new users get parties of their own, and administrators take wallets away', async (t) => {
  const wallet = await startWalletNode(t)
  const first = await wallet.register('auth0|0123.x')
  const second = await wallet.register('auth0_0123_x')
  const third = await wallet.register('DSO')
  assert.equal(new Set([first, second, third]).size, 3)
  assert.match(first, /^auth0_0123_x-[0-9a-f]{12}::1220/)
  assert.match(second, /^auth0_0123_x::1220/)
  assert.match(third, /^DSO-[0-9a-f]{12}::1220/, 'a name that is taken is not handed out')
  assert.equal(await wallet.balance('DSO'), 0n)
  await wallet.post('DSO', '/v0/wallet/tap', { amount: '1' })

  const admin = 'participant_admin'
  assert.equal((await wallet.ask('DSO', 'GET', '/v0/admin/users')).status, 403)
  const { party_id } = await wallet.post<{ party_id: string }>(admin, '/v0/admin/users', {
    name: 'dora',
  })
  assert.match(party_id, /^dora::/)
  const { usernames } = await wallet.get<{ usernames: string[] }>(admin, '/v0/admin/users')
  assert.deepEqual(usernames, ['DSO', 'auth0_0123_x', 'auth0|0123.x', 'dora', admin])
  await wallet.post(admin, '/v0/admin/users/offboard?username=dora')
  assert.equal(
    (await wallet.ask(admin, 'POST', '/v0/admin/users/offboard?username=dora')).status,
    404,
  )
  assert.ok(!(await partiesOf(wallet, 'dora')).includes(party_id))
  await until(async () => (await wallet.ask('dora', 'GET', BALANCE)).status === 404, 'dora leaves')
  const uninvited = await wallet.ask('dora', 'POST', '/v0/register')
  assert.equal(uninvited.status, 403, 'who was sent away does not let itself in')
  assert.match(String(uninvited.body.error), /An administrator gives it a wallet/)
  const back = await wallet.post<{ party_id: string }>(admin, '/v0/admin/users', { name: 'dora' })
  assert.equal(back.party_id, party_id, 'who comes back has the same party')

  const user = { id: 'late', isDeactivated: true }
  await wallet.ledger('POST', '/v2/users', { user, rights: [] })
  const late = await wallet.ask('late', 'POST', '/v0/register')
  assert.equal(late.status, 403)
  assert.match(String(late.body.error), /is deactivated/)
  assert.deepEqual(await partiesOf(wallet, 'late'), [])
})

forEachEngine((engine) => {
  test(`${engine.name}: users of the configuration act for the operator as long as it names them`, async (t) => {
    const dataDirectory = newDirectory(t)
    const target = await engine.newTarget(t)
    const users = ['auth0|op-1', 'op-2', 'alice']
    const one = await startWalletNode(t, { dataDirectory, target, wallet: { users } })
    type Operator = { party_id: string; user_name: string }
    const { party_id: operator } = await one.get<Operator>('', '/v0/validator-user')
    for (const user of users) {
      assert.ok((await partiesOf(one, encodeURIComponent(user))).includes(operator), user)
      assert.equal(await one.balance(user), await one.balance('op-2'))
    }
    await one.get('op-2', '/v0/admin/users')
    const kept = await one.ask('op-2', 'POST', '/v0/admin/users/offboard?username=alice')
    assert.equal(kept.status, 409)
    await change(one, 'POST', 'bob', operator)
    await one.node.close()

    const next = { dataDirectory, target, wallet: { users: ['op-2', 'bob'] } }
    const two = await startWalletNode(t, next)
    assert.equal((await two.ask('auth0|op-1', 'GET', BALANCE)).status, 404)
    assert.deepEqual(await partiesOf(two, encodeURIComponent('auth0|op-1')), [])
    assert.ok(!(await partiesOf(two, 'alice')).includes(operator), 'alice keeps her own alone')
    assert.equal((await partiesOf(two, 'alice')).length, 1)
    await two.balance('bob')
    await two.node.close()

    const three = await startWalletNode(t, { dataDirectory, target, wallet: { users: ['op-2'] } })
    assert.ok(
      (await partiesOf(three, 'bob')).includes(operator),
      'a right that somebody else gave is not taken away',
    )
    assert.equal((await three.ask('bob', 'GET', BALANCE)).status, 404)
  })
})

test('a node without wallets says so, and one without authentication asks for no token', async (t) => {
  const off = await startWalletNode(t, { wallet: { enabled: false } })
  for (const [method, path] of [
    ['GET', BALANCE],
    ['POST', '/v0/register'],
    ['POST', OFFERS],
    ['GET', '/v0/admin/users'],
    ['GET', '/v0/validator-user'],
  ] as const) {
    const answer = await off.ask('', method, path, method === 'POST' ? {} : undefined)
    assert.equal(answer.status, 404, path)
    assert.match(String(answer.body.error), /enableWallet/)
  }
  await off.node.close()

  const { auth } = testConfig(t)
  const open = await startWalletNode(t, { config: { auth: { ...auth, disabled: true } } })
  await open.get('', BALANCE)
  await open.get('', '/v0/admin/users')
  await open.post('', '/v0/wallet/tap', { amount: '1' })
})
