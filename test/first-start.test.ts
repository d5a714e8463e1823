import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { newDirectory, post, startTestNode } from './support/node.ts'
import { runCommand, startCommand } from './support/node-process.ts'

/** The issue of a first start: somebody looks at the node a second later. */
const SEED_MS_MAX = 1000

test('the first start seeds a lively network with people, offers and reassignments', async (t) => {
  const data = newDirectory(t)
  const node = await startCommand(t, ['--data', data])
  const { body } = await post(`${node.urls.scan}/v1/updates`, { page_size: 1000 })
  const text = JSON.stringify(body)
  for (const name of [
    '"Archive"',
    'AmuletRules_Transfer',
    'TransferOffer_Accept',
    'TransferOffer_Reject',
    'TransferPreapproval_Send',
    'TransferInstruction_Accept',
    '"interface_id":',
    '"reassignment_counter":2',
    'MemberTraffic',
    'ValidatorLicense',
    'alice::1220',
  ]) {
    assert.ok(text.includes(name), `${name} occurs`)
  }
  assert.equal(await node.stop(), 0)
  const again = await startCommand(t, ['--data', data])
  const second = await post(`${again.urls.scan}/v1/updates`, { page_size: 1000 })
  assert.deepEqual(second.body, body)
  assert.equal(await again.stop(), 0)
  const verified = await runCommand(['verify', '--data', data])
  assert.equal(verified.code, 0, verified.stderr)
})

test('a seed makes the network the same each time, to the byte', async (t) => {
  const pages: unknown[] = []
  for (const seed of ['one', 'one', 'two']) {
    const node = await startCommand(t, ['--data', newDirectory(t), '--seed', seed])
    const { body } = await post(`${node.urls.scan}/v1/updates`, { page_size: 1000 })
    pages.push(body)
    await node.stop()
  }
  assert.deepEqual(pages[0], pages[1])
  assert.notDeepEqual(pages[0], pages[2])
})

test('seeding takes less than a second', async (t) => {
  const startedAt = performance.now()
  const empty = await startTestNode(t)
  const emptyMs = performance.now() - startedAt
  assert.equal(empty.ledger?.end, 0n)
  const seeded = await startTestNode(t, { empty: false })
  const seedMs = performance.now() - startedAt - 2 * emptyMs
  assert.ok(seeded.isSeeded && seeded.history.view.updates > 50)
  assert.ok(seedMs < SEED_MS_MAX, `it took ${seedMs} ms`)
})

test('annals demo keeps a running network lively, and its history goes on being sound', async (t) => {
  const data = newDirectory(t)
  const node = await startCommand(t, ['--data', data])
  const before = await countUpdates(node.urls.scan)
  const args = ['demo', '--data', data, '--url', node.urls.ledger, '--rate', '200', '--count', '60']
  const demo = await runCommand(args)
  assert.equal(demo.code, 0, demo.stderr)
  assert.match(demo.stderr, /^60 payments were made/m)
  let after = before
  while (after < before + 60) after = await countUpdates(node.urls.scan)
  assert.equal(after, before + 60)
  await node.stop()
  const verified = await runCommand(['verify', '--data', data])
  assert.equal(verified.code, 0, verified.stderr)
})

test('annals demo without a node says a sentence with the remedy', async (t) => {
  const data = newDirectory(t)
  // The first is a port that programs may not ask for over HTTP.
  for (const [url, reason] of [
    ['http://127.0.0.1:1', 'bad port|ECONNREFUSED'],
    ['http://127.0.0.1:59999', 'ECONNREFUSED'],
  ] as const) {
    const { code, stderr } = await runCommand(['demo', '--data', data, '--url', url])
    assert.equal(code, 3)
    assert.match(
      stderr,
      new RegExp(
        `^annals: The node at \\S+ cannot be reached \\((${reason})\\)\\. Check --url, and that the node runs: \`annals start\` starts one\\.\\n$`,
      ),
    )
  }
})

test('the example users of the manual do not collide with the seeded people', async (t) => {
  const data = newDirectory(t)
  const node = await startCommand(t, ['--data', data])
  const token = (await runCommand(['token', '--data', data])).stdout.trim()
  const env = { ANNALS_URL: node.urls.ledger, ANNALS_TOKEN: token }
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const [, args = ''] = /^npx annals (users create .*)$/m.exec(readme) ?? []
  const created = await runCommand(args.split(' '), { env })
  assert.equal(created.code, 0, created.stderr)
  const { stdout: help } = await runCommand(['users', '--help'])
  assert.doesNotMatch(help, /users create (alice|bob|carol)\b/)
})

async function countUpdates(scan: string): Promise<number> {
  const { body } = await post(`${scan}/v1/updates`, { page_size: 10_000 })
  return (body as { transactions: unknown[] }).transactions.length
}
