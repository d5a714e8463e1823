import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHistory } from '../src/history/history.ts'
import { findNetwork } from '../src/ledger/network.ts'
import { tap } from '../src/ledger/payments.ts'
import { type Following, startFollowing } from '../src/scan/follow.ts'
import { decimal } from '../src/values/decimal.ts'
import { openTestLedger, partyOf } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { post, startTestNode } from './support/node.ts'
import { createReplay } from './support/replay.ts'

type Item = Parameters<ReturnType<typeof createReplay>['read']>[0]

/** What an idle node promises. */
const LAG_MS_MAX = 50

const fail = (error: unknown) => {
  throw error
}

forEachEngine((engine) => {
  test(`the history goes on without gap or repeat wherever its follower stopped, on ${engine.name}`, async (t) => {
    const { ledger, network } = await openTestLedger(t, await engine.open(t, 'participant'))
    const appDb = await engine.open(t, 'app')
    let following: Following | undefined
    const pay = () => tap(ledger, network, { receiver: partyOf('alice'), amount: decimal('1') })
    for (let round = 0; round < 12; round += 1) {
      const history = await openHistory({ db: appDb, cacheBytes: 1_000_000 })
      following = startFollowing({ ledger, history, onError: fail })
      const paid = Promise.all(Array.from({ length: 10 + round }, pay))
      // Stops before, while or after the payments are taken over.
      if (round % 3 === 0) await paid
      if (round % 3 === 1) await following.caughtUp()
      await following.close()
      await paid
    }
    const history = await openHistory({ db: appDb, cacheBytes: 1_000_000 })
    following = startFollowing({ ledger, history, onError: fail })
    await following.caughtUp()
    await following.close()
    assert.equal(history.view.lastOffset, ledger.end)
    const updates = await ledger.updatesAfter(0n, 10_000)
    assert.equal(history.view.last?.recordTime, updates.at(-1)?.recordTime)
    assert.equal(history.view.updates, updates.length)
  })
})

test('a reader who pages while payments run sees every update once and in order', async (t) => {
  const node = await startTestNode(t, { empty: false })
  const { ledger } = node
  assert.ok(ledger)
  const dso = await dsoOf(ledger)
  const network = await findNetwork(ledger, dso)
  assert.ok(network)
  const receiver = dso.replace('DSO::', 'alice::')
  let isPaying = true
  const paying = (async () => {
    for (let n = 0; n < 60; n += 1) {
      await Promise.all(
        Array.from({ length: 5 }, () => tap(ledger, network, { receiver, amount: 1n })),
      )
    }
    isPaying = false
  })()
  const seen: string[] = []
  const replay = createReplay()
  let after: object | undefined
  for (;;) {
    const wasPaying = isPaying
    const body = { page_size: 7, ledger_value_encoding: 'protobuf_json', after }
    const answer = await post(`${node.urls.scan}/v1/updates`, body)
    const page = answer.body as { transactions: Item[] }
    for (const item of page.transactions) {
      seen.push(item.update_id)
      replay.read(item)
      after = {
        after_migration_id: item.migration_id ?? item.event?.migration_id,
        after_record_time: item.record_time,
      }
    }
    if (page.transactions.length === 0 && !wasPaying && BigInt(seen.length) === ledger.end) break
  }
  await paying
  const updates = await ledger.updatesAfter(0n, 100_000)
  assert.deepEqual(
    seen,
    updates.map(({ updateId }) => updateId),
  )
  const active: string[] = []
  for await (const page of ledger.activeAt({ offset: ledger.end, parties: 'any' })) {
    active.push(...page.map(({ contractId }) => contractId))
  }
  assert.deepEqual(active.toSorted(), [...replay.live.keys()].toSorted())
})

test('an idle node shows an update in its history within 50 milliseconds', async (t) => {
  const node = await startTestNode(t, { empty: false })
  const { ledger, history } = node
  assert.ok(ledger)
  const dso = await dsoOf(ledger)
  const network = await findNetwork(ledger, dso)
  assert.ok(network)
  const receiver = dso.replace('DSO::', 'bob::')
  const lags: number[] = []
  for (let n = 0; n < 15; n += 1) {
    const { recordTime } = await tap(ledger, network, { receiver, amount: 1n })
    const startedAt = performance.now()
    while (history.view.last?.recordTime !== recordTime) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    lags.push(performance.now() - startedAt)
  }
  const median = lags.toSorted((a, b) => a - b)[7] as number
  assert.ok(median < LAG_MS_MAX, `the lag is ${lags.map((ms) => ms.toFixed(1)).join(', ')} ms`)
})

async function dsoOf(ledger: NonNullable<Awaited<ReturnType<typeof startTestNode>>['ledger']>) {
  const [first] = await ledger.updatesAfter(0n, 1)
  return first?.witnesses.parties[0] as string
}
