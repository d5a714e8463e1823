import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld } from './support/coin-world.ts'

test('the metrics tell how submissions ended, what the ledger holds and how the history follows', async (t) => {
  const { node, ledger, party, submit, tap } = await openWorld(t)
  const alice = party('alice')
  const scrape = async () => {
    const text = await (await fetch(node.urls.metrics)).text()
    const lines = text.split('\n').filter((line) => line.startsWith('annals_ledger_'))
    return new Map(
      lines.map((line) => {
        const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
        const outcome = /outcome="(\w+)"/.exec(labels)?.[1]
        const isBucket = name.endsWith('_bucket')
        return [
          isBucket ? line : outcome === undefined ? name : `${name} ${outcome}`,
          Number(value),
        ]
      }),
    )
  }
  const countActive = async () => {
    let count = 0
    for await (const page of ledger.activeAt({ offset: ledger.end, parties: 'any' })) {
      count += page.length
    }
    return count
  }
  const before = await scrape()
  const total = 'annals_ledger_submissions_total'
  for (const outcome of ['accepted', 'contended', 'duplicate', 'refused', 'failed']) {
    assert.equal(before.get(`${total} ${outcome}`), 0, 'seeding is not counted')
  }
  assert.equal(before.get('annals_ledger_active_contracts'), await countActive())
  for (let n = 0; n < 3; n += 1) await submit('alice', [alice], [tap(alice, '1')])
  await submit('alice', [alice], [tap(alice, '0')])
  const twice = { commandId: 'twice' }
  for (let n = 0; n < 2; n += 1) await submit('alice', [alice], [tap(alice, '1')], twice)
  while (node.history.view.updates < Number(ledger.end) - 2) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  const after = await scrape()
  assert.equal(after.get(`${total} accepted`), 4)
  assert.equal(after.get(`${total} refused`), 1)
  assert.equal(after.get(`${total} duplicate`), 1)
  assert.equal(after.get('annals_ledger_submission_duration_seconds_count'), 6)
  assert.equal(after.get('annals_ledger_commit_submissions_count'), 6)
  assert.equal(after.get('annals_ledger_commit_submissions_sum'), 6)
  assert.equal(after.get('annals_ledger_end_offset'), Number(ledger.end))
  assert.equal(after.get('annals_ledger_active_contracts'), await countActive())
  assert.ok((after.get('annals_ledger_following_lag_seconds_count') ?? 0) > 1)
  const behind = after.get('annals_ledger_following_behind_offsets') ?? Number.NaN
  assert.ok(behind >= 0 && behind <= 1)
})
