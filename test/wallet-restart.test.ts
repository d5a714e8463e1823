import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseCron } from '../src/config/cron.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory, testConfig } from './support/node.ts'
import { checkLog, readLog, startWalletNode, until } from './support/wallet.ts'

const SEND = '/v0/wallet/transfer-preapproval/send'

forEachEngine((engine) => {
  test(`${engine.name}: log, users and tracking ids survive a restart, and what happened meanwhile is caught up`, async (t) => {
    const dataDirectory = newDirectory(t)
    const target = await engine.newTarget(t)
    const one = await startWalletNode(t, { dataDirectory, target })
    await one.register('alice')
    const bob = await one.register('bob')
    await one.post('bob', '/v0/wallet/transfer-preapproval')
    const payment = { receiver_party_id: bob, amount: '1.5', deduplication_id: 'first' }
    const sent = await one.post('alice', SEND, payment)
    const before = await checkLog(one, 'alice')
    await one.node.close()

    const without = await startWalletNode(t, {
      dataDirectory,
      target,
      wallet: { enabled: false },
    })
    await tapAlone(without.ledger, bob)
    await without.node.close()

    const two = await startWalletNode(t, { dataDirectory, target })
    assert.deepEqual(await checkLog(two, 'alice'), before)
    assert.deepEqual(await two.post('alice', SEND, payment), sent)
    assert.equal((await two.ask('alice', 'POST', SEND, { ...payment, amount: '2' })).status, 409)
    const [newest] = await checkLog(two, 'bob')
    assert.equal(newest?.amount, '77.0000000000', 'what the wallet was not there for')
  })

  test(`${engine.name}: the log outlives pruning`, async (t) => {
    const dataDirectory = newDirectory(t)
    const target = await engine.newTarget(t)
    const cron = parseCron('0 0/10 * * * ?')
    assert.ok('value' in cron)
    const pruning = { cron: cron.value, maxDurationMs: 300_000, retentionMs: 172_800_000 }
    const options = { dataDirectory, target, config: { pruning } }
    const one = await startWalletNode(t, options)
    await one.register('alice')
    await one.post('alice', '/v0/wallet/tap', { amount: '3' })
    const before = await checkLog(one, 'alice')
    type Pruned = { participantPrunedUpToInclusive: number }
    const pruned = async () =>
      (await one.ledger<Pruned>('GET', '/v2/state/latest-pruned-offsets'))
        .participantPrunedUpToInclusive
    await one.advance('72h')
    await until(async () => {
      if ((await pruned()) > 20) return true
      await one.advance('1m')
      return false
    }, 'pruning')
    assert.deepEqual(await readLog(one, 'alice'), before)
    const bob = await one.register('bob')
    assert.match(bob, /^bob::/)
    assert.ok((await one.balance('bob')) > 0n, 'a late wallet has its coins all the same')
    await one.node.close()

    const two = await startWalletNode(t, options)
    assert.deepEqual(await checkLog(two, 'alice'), before)
    await two.post('alice', '/v0/wallet/tap', { amount: '3' })
    assert.equal((await checkLog(two, 'alice')).length, before.length + 1)
  })
})

/** A tap that no wallet knows of. */
async function tapAlone(
  ledger: <T>(method: string, path: string, body?: object) => Promise<T>,
  receiver: string,
): Promise<void> {
  type Active = {
    contractEntry: { JsActiveContract: { createdEvent: { contractId: string } } }
  }[]
  const dso = receiver.replace(/^[^:]+/, 'DSO')
  const find = async (templateId: string) => {
    const identifierFilter = { TemplateFilter: { value: { templateId } } }
    const eventFormat = { filtersByParty: { [dso]: { cumulative: [{ identifierFilter }] } } }
    const list = await ledger<Active>('POST', '/v2/state/active-contracts', { eventFormat })
    return list[0]?.contractEntry.JsActiveContract.createdEvent.contractId
  }
  const rules = '#splice-amulet:Splice.AmuletRules:AmuletRules'
  const choiceArgument = {
    receiver,
    amount: '77',
    openRound: await find('#splice-amulet:Splice.Round:OpenMiningRound'),
  }
  const ExerciseCommand = {
    templateId: rules,
    contractId: await find(rules),
    choice: 'AmuletRules_DevNet_Tap',
    choiceArgument,
  }
  await ledger('POST', '/v2/commands/submit-and-wait', {
    commandId: 'alone',
    actAs: [receiver],
    commands: [{ ExerciseCommand }],
  })
}

test('the log and the tracking ids outlive a synchronizer migration', async (t) => {
  const dataDirectory = newDirectory(t)
  const one = await startWalletNode(t, { dataDirectory })
  await one.register('alice')
  const bob = await one.register('bob')
  await one.post('bob', '/v0/wallet/transfer-preapproval')
  const payment = { receiver_party_id: bob, amount: '1.5', deduplication_id: 'before' }
  const sent = await one.post('alice', SEND, payment)
  const before = await checkLog(one, 'alice')
  await one.node.close()

  const { migration, databases } = testConfig(t, { dataDirectory })
  const two = await startWalletNode(t, {
    dataDirectory,
    config: {
      migration: { ...migration, id: 1n, migrating: true },
      databases: {
        ...databases,
        participant: { engine: 'sqlite', file: join(dataDirectory, 'participant_1.sqlite') },
      },
    },
  })
  assert.deepEqual(await checkLog(two, 'alice'), before)
  assert.deepEqual(await two.post('alice', SEND, payment), sent)
  await two.post('alice', SEND, { ...payment, deduplication_id: 'after' })
  assert.equal((await checkLog(two, 'alice')).length, before.length + 1)
  await checkLog(two, 'bob')
})
