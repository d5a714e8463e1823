import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JWK } from 'jose'
import { makeKey } from '../../test/support/ledger-tokens.ts'
import {
  createLocalKeySet,
  createRemoteKeySet,
  KEYS_MAX_AGE_MS,
  RETRY_AFTER_MS,
  STALE_KEYS_MAX_AGE_MS,
  UNKNOWN_KEY_REST_MS,
} from './key-set.ts'

const [a, b] = await Promise.all([makeKey('a', 'ES256'), makeKey('b', 'ES256')])
const wantA = { algorithm: 'ES256', kid: 'a' }
const wantB = { algorithm: 'ES256', kid: 'b' }

/** A key set over a provider that the test controls, with a clock that it moves. */
function setUp(first: JWK[] | undefined) {
  const world = {
    published: first as JWK[] | undefined,
    time: 1_000_000,
    fetches: 0,
    outcomes: [] as string[],
    log: [] as string[],
  }
  const keySet = createRemoteKeySet({
    url: 'https://provider.example/jwks?secret=1',
    now: () => world.time,
    fetch: async () => {
      world.fetches += 1
      if (world.published === undefined) throw new TypeError('fetch failed')
      return Response.json({ keys: world.published })
    },
    onFetch: (outcome) => void world.outcomes.push(outcome),
    log: {
      info: (record, message) => void world.log.push(`${message} ${JSON.stringify(record)}`),
      error: (record, message) => void world.log.push(`${message} ${JSON.stringify(record)}`),
    },
  })
  return { world, keySet }
}

test('keys are fetched once and then served from memory', async () => {
  const { world, keySet } = setUp([a.jwk])
  const found = await Promise.all(Array.from({ length: 50 }, () => keySet.find(wantA)))
  assert.ok(found.every((key) => key?.kid === 'a'))
  await keySet.find(wantA)
  assert.equal(world.fetches, 1)
})

test('a rotated key is found by one fetch, also right after the first one', async () => {
  const { world, keySet } = setUp([a.jwk])
  const key = await keySet.find(wantA)
  world.published = [b.jwk]
  assert.equal((await keySet.find(wantB))?.kid, 'b')
  assert.equal(world.fetches, 2)
  assert.ok(key && !keySet.holds(key), 'the key that was withdrawn is no longer held')
})

test('a key that did not change is the same after a fetch', async () => {
  const { world, keySet } = setUp([a.jwk])
  const key = await keySet.find(wantA)
  world.published = [a.jwk, b.jwk]
  await keySet.find(wantB)
  assert.ok(key && keySet.holds(key))
})

test('a key id under which another key is published is no longer the same', async () => {
  const { world, keySet } = setUp([a.jwk])
  const key = await keySet.find(wantA)
  world.published = [{ ...b.jwk, kid: 'a' }]
  await keySet.find({ algorithm: 'ES256', kid: 'c' })
  assert.ok(key && !keySet.holds(key))
})

test('one unknown key id causes one fetch, however often it comes', async () => {
  const { world, keySet } = setUp([a.jwk])
  await keySet.find(wantA)
  for (let round = 0; round < 100; round++) await keySet.find(wantB)
  await Promise.all(Array.from({ length: 100 }, () => keySet.find(wantB)))
  assert.equal(world.fetches, 2)
  world.time += UNKNOWN_KEY_REST_MS
  await keySet.find(wantB)
  assert.equal(world.fetches, 3)
})

test('invented key ids do not cause a storm of fetches', async () => {
  const { world, keySet } = setUp([a.jwk])
  await keySet.find(wantA)
  for (let round = 0; round < 1000; round++) {
    await keySet.find({ algorithm: 'ES256', kid: `invented-${round}` })
  }
  assert.ok(world.fetches <= 4, `${world.fetches} fetches`)
})

test('known() does not fetch for an unknown key', async () => {
  const { world, keySet } = setUp([a.jwk])
  await keySet.known(wantA)
  assert.equal(await keySet.known(wantB), undefined)
  assert.equal(world.fetches, 1)
})

test('an outage fails closed, rests between tries, is told once and ends by itself', async () => {
  const { world, keySet } = setUp(undefined)
  for (let round = 0; round < 20; round++) assert.equal(await keySet.find(wantA), undefined)
  assert.equal(world.fetches, 1)
  world.time += RETRY_AFTER_MS
  assert.equal(await keySet.find(wantA), undefined)
  assert.equal(world.fetches, 2)
  assert.equal(world.log.length, 1)
  assert.match(world.log[0] ?? '', /cannot be fetched.*provider\.example/)
  assert.ok(!world.log.join().includes('secret'))
  world.published = [a.jwk]
  world.time += RETRY_AFTER_MS
  assert.equal((await keySet.find(wantA))?.kid, 'a')
  assert.deepEqual(world.outcomes, ['failed', 'failed', 'ok'])
  assert.match(world.log[1] ?? '', /can be fetched again/)
})

test('a provider that hangs holds up only who needs its keys', async () => {
  const { world, keySet } = setUp(undefined)
  await keySet.known(wantA)
  world.time += RETRY_AFTER_MS
  let answer = (_: JWK[]): void => {}
  const hanging = createRemoteKeySet({
    url: 'https://provider.example/jwks',
    now: () => world.time,
    fetch: async () => {
      world.fetches += 1
      if (world.fetches === 2) throw new TypeError('fetch failed')
      const keys = await new Promise<JWK[]>((resolve) => {
        answer = resolve
      })
      return Response.json({ keys })
    },
  })
  await hanging.known(wantA)
  world.time += RETRY_AFTER_MS
  assert.equal(await hanging.known(wantA), undefined, 'nobody waits here')
  const waiting = hanging.find(wantA)
  answer([a.jwk])
  assert.equal((await waiting)?.kid, 'a')
})

test('known keys go on serving through an outage, but not for ever', async () => {
  const { world, keySet } = setUp([a.jwk])
  const key = await keySet.find(wantA)
  world.published = undefined
  world.time += KEYS_MAX_AGE_MS
  assert.equal(await keySet.find(wantA), key)
  world.time += STALE_KEYS_MAX_AGE_MS - KEYS_MAX_AGE_MS - 1
  assert.equal(await keySet.find(wantA), key)
  world.time += 1
  assert.equal(await keySet.find(wantA), undefined)
})

test('old keys are fetched again in the background', async () => {
  const { world, keySet } = setUp([a.jwk])
  const key = await keySet.find(wantA)
  world.published = [b.jwk]
  world.time += KEYS_MAX_AGE_MS
  assert.ok(key && keySet.holds(key), 'nobody waits for the fetch')
  await keySet.find(wantB)
  assert.equal(world.fetches, 2)
  assert.ok(!keySet.holds(key))
})

const answers: [string, () => Response | Promise<Response>][] = [
  ['an error page', () => new Response('oops', { status: 500 })],
  ['a redirect', () => new Response(null, { status: 302, headers: { location: 'http://x/' } })],
  ['text that is not JSON', () => new Response('<html>')],
  ['JSON that is not a key set', () => Response.json({ keys: 'none' })],
  ['an endless body', () => new Response(new Uint8Array(300 * 1024).fill(32))],
  [
    'a body that breaks off',
    () => new Response(new ReadableStream({ start: (it) => it.error(new Error('cut')) })),
  ],
]
for (const [name, answer] of answers) {
  test(`${name} counts as a failed fetch`, async () => {
    const outcomes: string[] = []
    const keySet = createRemoteKeySet({
      url: 'https://provider.example/jwks',
      fetch: async () => answer(),
      onFetch: (outcome) => void outcomes.push(outcome),
    })
    assert.equal(await keySet.find(wantA), undefined)
    assert.deepEqual(outcomes, ['failed'])
  })
}

test('a set takes public RSA, P-256 and P-521 signature keys and nothing else', async () => {
  const [rsa, p384, p521] = await Promise.all([
    makeKey('rsa', 'RS256'),
    makeKey('p384', 'ES384'),
    makeKey('p521', 'ES512'),
  ])
  const keySet = await createLocalKeySet({
    keys: [
      rsa.jwk,
      a.jwk,
      p384.jwk,
      p521.jwk,
      { ...b.jwk, use: 'enc', kid: 'enc' },
      { ...b.jwk, key_ops: ['sign'], kid: 'ops' },
      { ...b.jwk, alg: 'ES512', kid: 'alg' },
      { kty: 'oct', k: 'c2VjcmV0', kid: 'oct' },
      { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'off the curve' },
      { kty: 'RSA', n: '!', e: '!', kid: 'nonsense' },
    ] as JWK[],
  })
  const found = async (algorithm: string, kid: string) =>
    (await keySet.find({ algorithm, kid })) !== undefined
  assert.ok(await found('RS256', 'rsa'))
  assert.ok(await found('ES256', 'a'))
  assert.ok(await found('ES512', 'p521'))
  for (const kid of ['p384', 'enc', 'ops', 'alg', 'oct', 'off the curve', 'nonsense']) {
    for (const algorithm of ['RS256', 'ES256', 'ES384', 'ES512', 'HS256']) {
      assert.ok(!(await found(algorithm, kid)), `${kid} is not taken for ${algorithm}`)
    }
  }
})

test('without a key id only the single key of a set is found', async () => {
  const one = await createLocalKeySet({ keys: [a.jwk] })
  const two = await createLocalKeySet({ keys: [a.jwk, b.jwk] })
  assert.equal((await one.find({ algorithm: 'ES256', kid: undefined }))?.kid, 'a')
  assert.equal(await one.find({ algorithm: 'RS256', kid: undefined }), undefined)
  assert.equal(await two.find({ algorithm: 'ES256', kid: undefined }), undefined)
})
