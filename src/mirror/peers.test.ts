import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exchange } from '../http/exchange.ts'
import { SCAN_LIMITS } from '../scan/client.ts'
import { createPeers, type Peer } from './peers.ts'

const [A, B, C] = ['a', 'b', 'c'].map((name) => ({
  base: `http://${name}.test/api/scan`,
  svName: name,
})) as [Peer, Peer, Peer]
const PAGE = { method: 'POST', path: '/v1/updates', body: '{}' } as const
const LOOKUP = { method: 'GET', path: '/v2/updates/1220' } as const

test('a scan that wants to be left alone is, for as long as it says', async () => {
  const { peers, clock, asked } = setUp({ status: 429, retryAfter: '60' })
  await peers.ask(A, PAGE, { limits: SCAN_LIMITS })
  clock.now += 59_000
  const answer = await peers.ask(A, LOOKUP, { limits: SCAN_LIMITS })
  assert.equal(answer.kind === 'fault' && answer.fault, 'resting')
  assert.deepEqual(peers.order().at(-1), A)
  clock.now += 2_000
  await peers.ask(A, PAGE, { limits: SCAN_LIMITS })
  assert.equal(asked.length, 2)
})

test('one that fails is asked ever more seldom, and at once again after an answer', async () => {
  const { peers, clock, asked, behave } = setUp({ status: 500 })
  const rests: number[] = []
  for (let n = 0; n < 12; n += 1) {
    await peers.ask(A, PAGE, { limits: SCAN_LIMITS })
    const before = asked.length
    let waited = 0
    while (asked.length === before) {
      clock.now += 250
      waited += 250
      if (peers.order().at(-1) !== A || peers.order()[0] === A) break
    }
    rests.push(waited)
    clock.now += 60_000
  }
  assert.ok(
    rests.every((rest, n) => n === 0 || rest >= (rests[n - 1] as number)),
    rests.join(),
  )
  assert.ok((rests.at(-1) as number) <= 30_250)
  behave({ status: 200 })
  await peers.ask(A, PAGE, { limits: SCAN_LIMITS })
  assert.equal(peers.record(A).failuresInRow, 0)
})

test('an incomplete scan refuses pages and is still asked for everything else', async () => {
  const { peers, behave } = setUp({ status: 503, retryAfter: '60' })
  await peers.ask(A, PAGE, { limits: SCAN_LIMITS })
  behave({ status: 200 })
  assert.equal((await peers.ask(A, PAGE, { limits: SCAN_LIMITS })).kind, 'fault')
  assert.equal((await peers.ask(A, LOOKUP, { limits: SCAN_LIMITS })).kind, 'answer')
})

test('who was contradicted is asked after the others, and not for ever', () => {
  const { peers, clock } = setUp({ status: 200 })
  peers.noteDissent(B)
  for (let n = 0; n < 20; n += 1) assert.deepEqual(peers.order().at(-1), B)
  clock.now += 11 * 60_000
  assert.notDeepEqual(peers.order().at(-1), B)
})

test('a new list keeps what is known of those who stay', () => {
  const { peers } = setUp({ status: 200 })
  peers.noteDissent(A)
  peers.set([A, C])
  assert.deepEqual(peers.list(), [A, C])
  assert.equal(peers.record(A).dissents, 1)
  peers.set([B])
  peers.set([A])
  assert.equal(peers.record(A).dissents, 0)
})

function setUp(first: { status: number; retryAfter?: string }) {
  const clock = { now: 0 }
  const asked: string[] = []
  let behaviour = first
  const exchange: Exchange = async (url, { onHead }) => {
    asked.push(url)
    const { status, retryAfter } = behaviour
    onHead(status, (name) => (name === 'retry-after' ? retryAfter : undefined))
  }
  const peers = createPeers({
    exchange,
    trust: { mode: 'all', agreement: 'f+1' },
    list: [A, B, C],
    random: () => 0.5,
    now: () => clock.now,
    perSecondMax: 100_000,
  })
  const behave = (next: { status: number }) => {
    behaviour = next
  }
  return { peers, clock, asked, behave }
}
