import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { newDirectory } from './support/node.ts'
import { startCommand } from './support/node-process.ts'
import { checkLog, talkTo } from './support/wallet.ts'

const SEND = '/v0/wallet/transfer-preapproval/send'
const KILLS = 3
const PAYMENTS = 20

test('a node that is killed amid payments makes each of them once, and its log has all of them', async (t) => {
  const directory = newDirectory(t)
  const start = async () => {
    const node = await startCommand(t, ['--data', directory, '--seed', 'kill'])
    return talkTo(node, directory)
  }
  let wallet = await start()
  await wallet.register('alice')
  const bob = await wallet.register('bob')
  await wallet.post('bob', '/v0/wallet/transfer-preapproval')
  const total = (await wallet.balance('alice')) + (await wallet.balance('bob'))
  const pay = (n: number) =>
    wallet.ask('alice', 'POST', SEND, {
      receiver_party_id: bob,
      amount: '0.5',
      deduplication_id: `payment-${n}`,
      description: `payment-${n}`,
    })
  for (let kill = 0; kill < KILLS; kill += 1) {
    const underWay = Array.from({ length: PAYMENTS }, (_, n) => pay(n).catch(() => undefined))
    await wait(Math.random() * 150)
    await wallet.node.stop('SIGKILL')
    await Promise.all(underWay)
    wallet = await start()
    const sum = (await wallet.balance('alice')) + (await wallet.balance('bob'))
    assert.equal(sum, total, 'no coin is lost or minted')
    for (const user of ['alice', 'bob']) await checkLog(wallet, user)
  }
  for (let n = 0; n < PAYMENTS; n += 1) assert.equal((await pay(n)).status, 200)
  for (const user of ['alice', 'bob']) {
    const paid = (await checkLog(wallet, user))
      .map(({ description }) => description ?? '')
      .filter((description) => description.startsWith('payment-'))
    assert.equal(paid.length, PAYMENTS, `${user} has every payment`)
    assert.equal(new Set(paid).size, PAYMENTS, `${user} has none of them twice`)
  }
  assert.equal(await wallet.node.stop(), 0)
})
