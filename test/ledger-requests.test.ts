import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request as sendRequest } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { LEDGER_BODY_BYTES_MAX } from '../src/http/ledger-error.ts'
import { forEachEngine } from './support/engines.ts'
import { type Keys, makeKeys, tokenOf } from './support/ledger-tokens.ts'
import { type LedgerWorld, openWorld, providerBody } from './support/ledger-world.ts'

const right = (kind: string, party?: string) => ({
  kind: { [kind]: { value: party === undefined ? {} : { party } } },
})
const NO_KIND = { kind: { Empty: {} } }
const KIBIBYTES_256 = 256 * 1024
const annotated = (annotations: object) => ({ id: 'annotated', metadata: { annotations } })
const update = (user: object, ...paths: string[]) => ({
  user: { id: 'someone', ...user },
  updateMask: { paths },
})
const versioned = (resourceVersion: string) =>
  update({ metadata: { resourceVersion } }, 'is_deactivated')

/** What is refused first when several things are wrong: rights before syntax, then field by field. */
const refusals: [
  string,
  { token?: string; method?: string; url?: string; body: unknown },
  string,
][] = [
  ['the user before its rights', { body: { rights: [NO_KIND] } }, 'MISSING_FIELD'],
  ['the id before its rights', { body: { user: { id: '?' }, rights: [NO_KIND] } }, 'INVALID_FIELD'],
  [
    'a right that may not be given before one that is none',
    {
      token: 'idp1-admin',
      body: { user: { id: 'x' }, rights: [NO_KIND, right('ParticipantAdmin')] },
    },
    'NA',
  ],
  [
    'the party of a right before an unknown provider',
    { body: { user: { id: 'x', identityProviderId: 'nope' }, rights: [right('CanActAs', '!')] } },
    'INVALID_ARGUMENT',
  ],
  [
    'the id of a grant before its rights',
    { url: '/v2/users/a%3F/rights', body: { userId: 'a?', rights: [NO_KIND] } },
    'INVALID_FIELD',
  ],
  [
    'the version of an update before its mask',
    { method: 'PATCH', url: '/v2/users/someone', body: versioned('9223372036854775808') },
    'INVALID_FIELD',
  ],
  [
    'a version that was never read',
    { method: 'PATCH', url: '/v2/users/someone', body: versioned('9223372036854775807') },
    'CONCURRENT_USER_UPDATE_DETECTED',
  ],
  [
    'annotations of one request above the limit',
    { body: { user: annotated({ a: 'x'.repeat(KIBIBYTES_256) }) } },
    'INVALID_ARGUMENT',
  ],
  [
    'annotations of an update above the limit',
    {
      method: 'PATCH',
      url: '/v2/users/someone',
      body: update({ metadata: { annotations: { a: 'ä'.repeat(KIBIBYTES_256 / 2) } } }, 'metadata'),
    },
    'INVALID_ARGUMENT',
  ],
  ...['', '/a', 'a/', '.a', 'a-', 'a..b/c', 'a_b/c', 'a/b/c', 'a'.repeat(64)].map(
    (key): (typeof refusals)[number] => [
      `the annotation key "${key}"`,
      { body: { user: annotated({ [key]: 'v' }) } },
      'INVALID_ARGUMENT',
    ],
  ),
]

forEachEngine((engine) => {
  describe(`requests to the ledger API on ${engine.name}`, () => {
    const cleanups: (() => Promise<void> | void)[] = []
    let keys: Keys
    let world: LedgerWorld
    before(async () => {
      keys = await makeKeys()
      const db = await engine.open({ after: (clean) => void cleanups.push(clean) }, 'participant')
      world = await openWorld({ db, keys })
      const admin = { id: 'idpadmin1', identityProviderId: 'idp1' }
      for (const [url, body] of [
        ['/v2/idps', providerBody('idp1')],
        ['/v2/users', { user: admin, rights: [right('IdentityProviderAdmin')] }],
        ['/v2/users', { user: { id: 'someone' } }],
      ] as const) {
        assert.equal((await world.call('POST', url, { body })).status, 200)
      }
    })
    after(async () => {
      await world.app.close()
      for (const clean of cleanups) await clean()
    })

    for (const [name, { method = 'POST', url = '/v2/users', ...options }, code] of refusals) {
      test(`refuses ${name} with ${code}`, async () => {
        const answer = await world.call(method, url, options)
        assert.equal(answer.body.code, code, answer.text)
      })
    }

    test('takes annotations up to the limit, with any case in the prefix of a key', async () => {
      const key = 'Team.Example.COM/a'
      const value = 'x'.repeat(KIBIBYTES_256 - key.length)
      const created = await world.call('POST', '/v2/users', {
        body: { user: annotated({ [key]: value }) },
      })
      assert.equal(created.status, 200, created.text.slice(0, 200))
      const change = (annotations: object) =>
        world.call('PATCH', '/v2/users/annotated', {
          body: { user: annotated(annotations), updateMask: { paths: ['metadata.annotations'] } },
        })
      assert.equal((await change({ b: 'x' })).body.code, 'MAX_USER_ANNOTATIONS_SIZE_EXCEEDED')
      assert.equal((await change({ [key]: value, b: '' })).status, 200, 'deletions do not count')
    })

    test('refuses a client that cannot read the answer, before anything is changed', async () => {
      const send = async (accept: string | undefined, token: string) =>
        world.app.inject({
          method: 'POST',
          url: '/v2/users',
          headers: {
            authorization: `Bearer ${await tokenOf(keys, token)}`,
            ...(accept !== undefined && { accept }),
          },
          payload: JSON.stringify({ user: { id: 'accepted' } }),
        })
      for (const accept of ['text/plain', 'application/json;q=0, text/html', 'application/xml']) {
        const answer = await send(accept, 'admin')
        assert.equal(answer.statusCode, 406, accept)
        assert.equal(Object.keys(answer.json()).length, 10)
        assert.equal((await send(accept, 'unknown-user')).statusCode, 403, 'the caller comes first')
      }
      assert.equal((await send(undefined, 'admin')).statusCode, 200)
      for (const accept of ['*/*', 'text/html, application/*;q=0.1', 'Application/JSON; q=1', '']) {
        assert.equal((await send(accept, 'admin')).statusCode, 409, accept)
      }
    })

    test('answers a client that sends far too much', async () => {
      const url = await world.app.listen({ port: 0, host: '127.0.0.1' })
      const sent = sendRequest(`${url}/v2/users`, {
        method: 'POST',
        headers: { authorization: `Bearer ${await tokenOf(keys, 'admin')}` },
      })
      sent.end(Buffer.alloc(4 * LEDGER_BODY_BYTES_MAX, ' '))
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      assert.equal(answer.statusCode, 413)
      answer.resume()
      await once(answer, 'end')
      sent.destroy()
    })
  })
})
