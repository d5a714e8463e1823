import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { DEV_AUDIENCE, mintDevToken, openDevKey, readDevKey } from './dev-key.ts'
import { createLocalKeySet } from './key-set.ts'
import { createTokenVerifier } from './token.ts'

function directoryFor(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'annals-key-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'data')
}

test('the first start makes a key that only its owner can read, and later starts find it', async (t) => {
  const directory = directoryFor(t)
  assert.equal(await readDevKey(directory), undefined)
  const key = await openDevKey(directory)
  assert.deepEqual(await openDevKey(directory), key)
  assert.deepEqual(readdirSync(directory), ['signing-key.json'])
  assert.equal(statSync(join(directory, 'signing-key.json')).mode & 0o777, 0o600)
})

test('of many processes that start at the same time all use one key', async (t) => {
  const directory = directoryFor(t)
  const keys = await Promise.all(Array.from({ length: 10 }, () => openDevKey(directory)))
  assert.equal(new Set(keys.map(({ kid }) => kid)).size, 1)
  assert.deepEqual(readdirSync(directory), ['signing-key.json'])
})

test('a key that others could read is closed to them', async (t) => {
  const directory = directoryFor(t)
  await openDevKey(directory)
  const path = join(directory, 'signing-key.json')
  chmodSync(path, 0o644)
  await readDevKey(directory)
  assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('a file that is not a key is refused with what to do', async (t) => {
  const directory = directoryFor(t)
  await openDevKey(directory)
  writeFileSync(join(directory, 'signing-key.json'), '{}')
  await assert.rejects(openDevKey(directory), /Remove it, and the next start makes a new one/)
})

test('the published key set holds nothing private', async (t) => {
  const { keySet } = await openDevKey(directoryFor(t))
  assert.deepEqual(Object.keys(keySet.keys[0] ?? {}).sort(), [
    'alg',
    'crv',
    'kid',
    'kty',
    'use',
    'x',
    'y',
  ])
})

test('a minted token is accepted until it expires', async (t) => {
  const key = await openDevKey(directoryFor(t))
  let now = Date.now()
  const verifier = createTokenVerifier({
    defaultProvider: { keySet: await createLocalKeySet(key.keySet), audience: DEV_AUDIENCE },
    providerByIssuer: async () => undefined,
    participantId: 'participant::1220',
    now: () => now,
  })
  const options = { userId: 'alice', ttlSeconds: 60, audience: DEV_AUDIENCE }
  const token = await mintDevToken(key, options)
  assert.equal((await verifier.verify(token)).verified.userId, 'alice')
  now += 61_000
  await assert.rejects(verifier.verify(token), { code: 'UNAUTHENTICATED' })
  await assert.rejects(mintDevToken(key, { ...options, ttlSeconds: 0 }), /at least one second/)
})
