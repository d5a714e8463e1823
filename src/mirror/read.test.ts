import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, createAnsweringScans } from '../../test/support/answering-scans.ts'
import { createPeers, type Peer, type Peers } from './peers.ts'
import type { Trust } from './quorum.ts'
import { readAgreed } from './read.ts'

const QUESTION = { method: 'GET', path: '/v0/dso' } as const
const HOSTS = ['a.test', 'b.test', 'c.test', 'd.test']
const ok = (json: unknown): Answer => ({ status: 200, json })

test('three of four agree: that is the answer, and the other is noted', async () => {
  const peers = scans((host) =>
    ok(host === 'd.test' ? { dso: 'liar' } : { dso: 'DSO', more: null }),
  )
  for (let n = 0; n < 20; n += 1) {
    const answer = await readAgreed(peers, QUESTION)
    assert.equal(answer.kind, 'agreed')
    assert.deepEqual(answer.kind === 'agreed' && answer.json, { dso: 'DSO', more: null })
  }
  assert.ok(peers.record(peerOf('d.test')).dissents > 0)
})

test('key order and null do not matter, numbers are exact', async () => {
  const texts = ['{"a":1,"n":9007199254740993}', '{"n":9007199254740993,"b":null,"a":1}']
  const peers = scans((host) => ok(raw(texts[HOSTS.indexOf(host) % 2] as string)))
  const answer = await readAgreed(peers, QUESTION)
  assert.equal(answer.kind === 'agreed' && (answer.json as { n: bigint }).n, 9007199254740993n)
  const different = ['{"n":9007199254740993}', '{"n":9007199254740992}', '{"n":1}', '{"n":2}']
  const others = scans((host) => ok(raw(different[HOSTS.indexOf(host)] as string)))
  assert.equal((await readAgreed(others, QUESTION)).kind, 'none')
})

test('four different answers are none', async () => {
  const answer = await readAgreed(
    scans((host) => ok(host)),
    QUESTION,
  )
  assert.equal(answer.kind, 'none')
  assert.match(
    answer.kind === 'none' ? answer.reason : '',
    /4 of 4 scans answered, but no 2 of them alike/,
  )
})

test('one of four that can be reached is too few, and two that agree are enough', async () => {
  const one = await readAgreed(
    scans((host) => (host === 'a.test' ? ok(1) : 'away')),
    QUESTION,
  )
  assert.match(
    one.kind === 'none' ? one.reason : '',
    /Only 1 of 4 scans can be used, which are fewer than the 2/,
  )
  const two = await readAgreed(
    scans((host) => (host < 'c' ? ok(1) : 'away')),
    QUESTION,
  )
  assert.equal(two.kind, 'agreed')
})

test('the same refusal of enough scans is a refusal, and no data', async () => {
  const answer = await readAgreed(
    scans(() => ({ status: 404, json: { error: 'no' } })),
    QUESTION,
  )
  assert.deepEqual([answer.kind, answer.kind === 'refused' && answer.status], ['refused', 404])
})

test('equal overload is no answer', async () => {
  for (const status of [429, 500, 503]) {
    const answer = await readAgreed(
      scans(() => ({ status, json: {} })),
      QUESTION,
    )
    assert.equal(answer.kind, 'none')
  }
})

test('scans that hang are not waited for when others agree', async () => {
  const peers = scans((host) => (host === 'a.test' ? 'hangs' : ok(1)))
  const stop = new AbortController()
  const answer = await readAgreed(peers, { ...QUESTION, signal: stop.signal })
  assert.equal(answer.kind, 'agreed')
  stop.abort()
})

test('2f+1 of four needs three, and a threshold as many as it says', async () => {
  const half = (host: string) => ok(host < 'c' ? 'one' : 'other')
  const strict = scans(half, { mode: 'all', agreement: '2f+1' })
  assert.equal((await readAgreed(strict, QUESTION)).kind, 'none')
  const chosen = scans((host) => ok(host < 'd' ? 1 : 2), { mode: 'chosen', threshold: 3 })
  assert.equal((await readAgreed(chosen, QUESTION)).kind, 'agreed')
})

function scans(
  answer: (host: string) => Answer,
  trust: Trust = { mode: 'all', agreement: 'f+1' },
): Peers {
  const { exchange } = createAnsweringScans(answer)
  return createPeers({ exchange, trust, list: HOSTS.map(peerOf), perSecondMax: 100_000 })
}

function peerOf(host: string): Peer {
  return { base: `http://${host}/api/scan`, svName: host }
}

/** JSON that is sent with the digits that it is written with. */
function raw(text: string): unknown {
  const { rawJSON } = JSON as unknown as { rawJSON(digits: string): unknown }
  return JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' ? rawJSON(context?.source as string) : value,
  )
}
