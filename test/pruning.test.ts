import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCron } from '../src/config/cron.ts'
import { readEventFormat } from '../src/ledger/event-format.ts'
import { coinsOf, tap, transfer } from '../src/ledger/payments.ts'
import { pruneBetween, selectSchedule } from '../src/ledger/prune-store.ts'
import { readActiveContracts, readCompletions, readUpdates } from '../src/ledger/streams.ts'
import { decimal } from '../src/values/decimal.ts'
import { COIN, formatOf, openWorld } from './support/coin-world.ts'
import { openTestLedger, partyOf, type TestLedger } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory, post, startTestNode } from './support/node.ts'

const cron = parseCron('0 0 3 * * ?')
assert.ok('value' in cron)
const PRUNING = { cron: cron.value, maxDurationMs: 300_000, retentionMs: 30 * 86_400_000 }

type World = Awaited<ReturnType<typeof openWorld>>

/** Moves the clock of the node; what is due then runs. */
async function setTime(
  { node, tokenOf }: Pick<World, 'node' | 'tokenOf'>,
  body: object,
): Promise<void> {
  const authorization = `Bearer ${await tokenOf('alice')}`
  const answer = await post(`${node.urls.ledger}/v2/time`, body, { authorization })
  assert.equal(answer.status, 200)
}

async function prunedOffset({ ask }: World): Promise<number> {
  const { body } = await ask('alice', '/v2/state/latest-pruned-offsets')
  assert.equal(body.allDivulgedContractsPrunedUpToInclusive, body.participantPrunedUpToInclusive)
  return body.participantPrunedUpToInclusive as number
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 10_000; !(await condition()); ) {
    assert.ok(Date.now() < end, 'it did not happen')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('the schedule prunes by the driven clock; reads below are refused; history and contracts stay; without the block it is cleared', async (t) => {
  const dataDirectory = newDirectory(t)
  const options = { dataDirectory, simTime: true, seed: 'pruning' }
  const world = await openWorld(t, { ...options, config: { pruning: PRUNING } })
  const { node, ask, party, submit, tap: tapCommand, ledger, tokenOf } = world
  const alice = party('alice')
  const old = Number(ledger.end)
  const page = async () => {
    const { body } = await post(`${node.urls.scan}/v2/updates`, { page_size: 10_000 })
    return (body as { transactions: unknown[] }).transactions
  }
  const history = await page()
  const coins = await world.active('alice', alice, COIN)
  assert.equal(await prunedOffset(world), 0)
  await setTime(world, { set: '2026-02-02T02:59:59Z' })
  assert.equal((await submit('alice', [alice], [tapCommand(alice, '1')])).status, 200)
  assert.equal(await prunedOffset(world), 0)
  await until(async () => (await page()).length === history.length + 1)

  // A long export is under way all the while.
  const exported = await fetch(`${node.urls.scan}/v2/updates`, {
    method: 'POST',
    body: JSON.stringify({ page_size: 10_000 }),
  })
  await setTime(world, { advance: '1s' })
  await until(async () => (await prunedOffset(world)) === old)
  const { transactions } = (await exported.json()) as { transactions: unknown[] }
  assert.deepEqual(transactions.slice(0, -1), history)
  assert.deepEqual(await page(), transactions)
  assert.equal((await world.active('alice', alice, COIN)).length, coins.length + 1)

  const format = formatOf(alice)
  const updateFormat = {
    includeTransactions: { eventFormat: format, transactionShape: 'TRANSACTION_SHAPE_ACS_DELTA' },
  }
  for (const [path, body] of [
    ['/v2/updates', { beginExclusive: 0, updateFormat }],
    ['/v2/updates', { beginExclusive: old - 1, updateFormat }],
    ['/v2/state/active-contracts', { activeAtOffset: old - 1, eventFormat: format }],
    ['/v2/commands/completions', { beginExclusive: 0, parties: [alice] }],
  ] as const) {
    const answer = await ask('alice', path, body)
    assert.equal(answer.status, 400, path)
    const { code, errorCategory, context } = answer.body
    assert.equal(code, 'PARTICIPANT_PRUNED_DATA_ACCESSED')
    assert.equal(errorCategory, 9)
    assert.equal((context as Record<string, string>).earliest_offset, String(old))
  }
  const at = { activeAtOffset: old, eventFormat: format }
  assert.equal((await ask('alice', '/v2/state/active-contracts', at)).status, 200)
  const later = await ask('alice', '/v2/updates', { beginExclusive: old, updateFormat })
  assert.equal((later.body as unknown as unknown[]).length, 1)
  const metrics = await (await fetch(node.urls.metrics)).text()
  assert.match(metrics, new RegExp(`annals_pruned_offsets_total\\S* ${old}\n`))
  assert.match(metrics, /annals_pruning_runs_total\{.*outcome="reached".*\} 1\n/)
  await until(async () =>
    /daml_pruning_max_event_age\S* 0\.000\d+\n/.test(await (await fetch(node.urls.metrics)).text()),
  )
  await node.close()

  const again = await startTestNode(t, { ...options, empty: false })
  assert.ok(again.ledger)
  await setTime({ node: again, tokenOf }, { set: '2026-06-01T03:01:00Z' })
  assert.equal(await again.ledger.pruned(), BigInt(old))
  assert.equal(await selectSchedule(again.ledger.db), undefined)
})

forEachEngine((engine) => {
  const on = `, on ${engine.name}`
  const alice = partyOf('alice')

  async function openFilled(t: Parameters<typeof openTestLedger>[0]): Promise<TestLedger> {
    const world = await openTestLedger(t, await engine.open(t, 'participant'))
    const { ledger, network } = world
    await Promise.all(
      Array.from({ length: 450 }, (_, n) =>
        tap(ledger, network, { receiver: alice, amount: decimal('1'), commandId: `c${n}` }),
      ),
    )
    return world
  }

  test(`who reads while the ledger is pruned gets everything or a refusal, never a gap${on}`, async (t) => {
    const world = await openFilled(t)
    const { ledger } = world
    const format = readEventFormat(ledger, formatOf(alice))
    const signal = new AbortController().signal
    const range = { after: 0n, until: ledger.end, signal }
    const pruned = { code: 'PARTICIPANT_PRUNED_DATA_ACCESSED' }
    const updates = readUpdates(ledger, range, {
      transactions: { format, shape: 'delta' },
      reassignments: undefined,
    })
    const completions = readCompletions(ledger, range, { userId: '', parties: [alice] })
    const active = readActiveContracts(ledger, { offset: 200n, format })
    const [held] = await coinsOf(ledger, alice)
    assert.ok(held)
    const readers = [updates, completions, active]
    for (const reader of readers) assert.equal((await reader.next()).done, false)
    await transfer(ledger, world.network, {
      sender: alice,
      receiver: partyOf('bob'),
      amount: decimal('1'),
      inputs: [{ tag: 'InputAmulet', value: held.contractId }],
    })
    assert.ok(await pruneBetween(ledger.db, 0n, ledger.end - 1n))
    for (const reader of readers) {
      await assert.rejects(async () => {
        for await (const _ of reader);
      }, pruned)
    }
  })
})
