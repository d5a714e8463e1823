import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Cleanup, forEachEngine } from '../../test/support/engines.ts'
import { createLogs } from '../base/log.ts'
import type { Db } from '../db/db.ts'
import { callRemote, type HttpAnswer, type HttpRequest, NoAnswer } from '../http/call.ts'
import { type JoiningOptions, startJoining } from './joining.ts'
import { isOnboarded } from './onboarding-store.ts'
import { encodeSecret } from './secret.ts'
import { createSponsorClient, SponsorAway } from './sponsor-client.ts'

const URL = 'https://sv.sponsor.example'
const PARTY = `acme-validator-1::1220${'ab'.repeat(32)}`
const INNER = 'c2VjcmV0LXNlY3JldC1zZWNyZXQ='
const SECRET = encodeSecret({ sponsoringSv: 'sponsor::1220', secret: INNER, partyHint: undefined })
const VERSION = { status: 200, body: '{"version":"0.6.3","commit_ts":"2026-05-04T00:00:00Z"}' }
const OK = { status: 200, body: '' }

type Reply = HttpAnswer | Error
/** The answers to each path, in order; the last one stays. */
type Script = Record<string, Reply[]>

function scripted(script: Script) {
  const asked: HttpRequest[] = []
  const call = async (request: HttpRequest): Promise<HttpAnswer> => {
    asked.push(request)
    const replies = script[request.path] ?? [{ status: 404, body: '{"error":"nothing here"}' }]
    const reply = replies.length > 1 ? replies.shift() : replies[0]
    if (reply instanceof Error) throw reply
    return reply as HttpAnswer
  }
  return { asked, call }
}

const VERSION_PATH = '/api/sv/version'
const ONBOARD_PATH = '/api/sv/v0/onboard/validator'
const DEVNET_PATH = '/api/sv/v0/devnet/onboard/validator/prepare'

function start(t: Cleanup, db: Db, script: Script, options: Partial<JoiningOptions> = {}) {
  const { asked, call } = scripted(script)
  const pauses: number[] = []
  const outcomes: string[] = []
  const joining = startJoining({
    db,
    sponsor: createSponsorClient({ call, url: URL }),
    sponsorUrl: URL,
    application: {
      partyId: PARTY,
      partyHint: 'acme-validator-1',
      version: '0.1.0',
      contactPoint: 'ops@acme.example',
    },
    secret: SECRET,
    isDevNet: false,
    log: createLogs({ level: 'silent', pretty: false }).named('test'),
    pause: async (ms) => void pauses.push(ms),
    onAttempt: (outcome) => void outcomes.push(outcome),
    ...options,
  })
  // The first answer of a refused node is looked at through `ended`.
  joining.firstAnswer.catch(() => {})
  t.after(() => joining.close())
  return { joining, asked, pauses, outcomes }
}

const bodiesOf = (asked: HttpRequest[]) =>
  asked.filter(({ path }) => path === ONBOARD_PATH).map(({ body }) => JSON.parse(body as string))

const saying = (status: number, error: string) => ({ status, body: JSON.stringify({ error }) })

/** What the sponsor answers at first, before it admits the node. */
const TRANSIENT: [fact: string, path: string, reply: Reply][] = [
  ...[408, 429, 500, 502, 503, 504].flatMap((status): [string, string, Reply][] => [
    [`the sponsor answers ${status}`, ONBOARD_PATH, saying(status, 'come again')],
    [`the version is answered with ${status}`, VERSION_PATH, { status, body: '<html>' }],
  ]),
  ['nobody listens', VERSION_PATH, new NoAnswer(`${URL} does not answer (ECONNREFUSED).`)],
  ['the answer is lost', ONBOARD_PATH, new NoAnswer(`${URL} does not answer (ECONNRESET).`)],
]

const REFUSALS: [fact: string, script: Script, sentence: RegExp][] = [
  [
    'an expired secret',
    { [ONBOARD_PATH]: [saying(401, 'The secret has expired')] },
    /does not accept the onboarding secret: The secret has expired\. A secret lives 48 hours .* Ask the sponsor for a new secret for acme-validator-1::1220/,
  ],
  [
    'a used secret',
    { [ONBOARD_PATH]: [saying(401, 'Secret has already been used for a different validator.')] },
    /already been used for a different validator\. .*Ask the sponsor for a new secret/,
  ],
  [
    'an unknown secret',
    { [ONBOARD_PATH]: [saying(401, 'Unknown secret.')] },
    /Unknown secret\. .*Ask the sponsor for a new secret/,
  ],
  [
    'a foreign secret',
    { [ONBOARD_PATH]: [saying(400, 'Secret is for another SV')] },
    /refuses to onboard .*: Secret is for another SV\. Check that SPONSOR_SV_URL/,
  ],
  [
    'a refusal that repeats the secret',
    { [ONBOARD_PATH]: [saying(401, `No such secret: ${SECRET} (${INNER})`)] },
    /No such secret: \*\*\*\* \(\*\*\*\*\)\./,
  ],
  [
    'a refusal that is no JSON',
    { [ONBOARD_PATH]: [{ status: 403, body: '<html>forbidden\u001b[2J</html>' }] },
    /answered 403 .*: it does not say why\. Ask the sponsor whether/,
  ],
  [
    'the URL of a scan',
    { [VERSION_PATH]: [saying(404, 'no')], '/api/scan/version': [VERSION] },
    /and that is a scan\. The URL of the sponsoring super validator's SV app is needed/,
  ],
  [
    'a URL of something else',
    { [VERSION_PATH]: [{ status: 200, body: '<html>Welcome</html>' }] },
    /no super validator app answers there/,
  ],
  ['a URL with nothing', { [VERSION_PATH]: [saying(404, 'no')] }, /no super validator app answers/],
]

test('the pause that a sponsor asks for comes from the head of its answer', async () => {
  const headers = { 'retry-after': '7' }
  const fetch = async () => new Response('{"error":"busy"}', { status: 503, headers })
  const client = createSponsorClient({ call: callRemote(fetch, URL), url: URL })
  const away = await client.version(AbortSignal.timeout(5000)).catch((error: unknown) => error)
  assert.deepEqual(away, new SponsorAway(`${URL} answers 503: busy.`, 7000))
  assert.equal((away as SponsorAway).retryAfterMs, 7000)
})

forEachEngine((engine) => {
  const named = (fact: string) => `${fact} (${engine.name})`

  test(named('the node presents itself once; a later start asks nobody'), async (t) => {
    const db = await engine.open(t, 'app')
    const script = () => ({ [VERSION_PATH]: [VERSION], [ONBOARD_PATH]: [OK] })
    const first = start(t, db, script())
    await first.joining.firstAnswer
    assert.equal(await first.joining.ended, undefined)
    assert.equal(first.joining.failure(), undefined)
    assert.deepEqual(
      first.asked.map(({ path }) => path),
      [VERSION_PATH, ONBOARD_PATH],
    )
    assert.deepEqual(bodiesOf(first.asked), [
      {
        party_id: PARTY,
        secret: SECRET,
        version: '0.1.0',
        contact_point: 'ops@acme.example',
        party_hint: 'acme-validator-1',
      },
    ])
    for (const secret of [SECRET, undefined]) {
      const again = start(t, db, {}, { secret })
      await again.joining.firstAnswer
      assert.equal(again.asked.length, 0)
      assert.deepEqual(again.outcomes, [])
      assert.equal(again.joining.failure(), undefined)
    }
    const stored = JSON.stringify(await db.query('select * from onboarding'))
    assert.ok(!stored.includes(SECRET) && stored.includes(PARTY))
  })

  test(named('a crash between the answer and the note asks again'), async (t) => {
    const db = await engine.open(t, 'app')
    const crashing = {
      ...db,
      execute: () => Promise.reject(new Error('the process was killed')),
    }
    const script = () => ({ [VERSION_PATH]: [VERSION], [ONBOARD_PATH]: [OK] })
    const first = start(t, crashing, script())
    await assert.rejects(first.joining.firstAnswer, /killed/)
    assert.deepEqual(first.outcomes, ['failed'])
    assert.equal(await isOnboarded(db, PARTY), false)
    const again = start(t, db, script())
    await again.joining.firstAnswer
    assert.deepEqual(bodiesOf(again.asked), bodiesOf(first.asked))
    assert.equal(await isOnboarded(db, PARTY), true)
  })

  test(named('another party of the same database is not onboarded'), async (t) => {
    const db = await engine.open(t, 'app')
    await start(t, db, { [VERSION_PATH]: [VERSION], [ONBOARD_PATH]: [OK] }).joining.ended
    assert.equal(await isOnboarded(db, PARTY), true)
    assert.equal(await isOnboarded(db, PARTY.replace('acme', 'other')), false)
  })

  for (const [fact, path, reply] of TRANSIENT) {
    test(named(`${fact}: the node goes on and asks again`), async (t) => {
      const db = await engine.open(t, 'app')
      const script: Script = { [VERSION_PATH]: [VERSION], [ONBOARD_PATH]: [OK] }
      script[path] = [reply, reply, ...(script[path] as Reply[])]
      const release = Promise.withResolvers<void>()
      const { joining, asked } = start(t, db, script, { pause: () => release.promise })
      await joining.firstAnswer
      assert.match(joining.failure() as string, /has not joined its network: https:\/\/sv\.sponsor/)
      release.resolve()
      assert.equal(await joining.ended, undefined)
      assert.equal(joining.failure(), undefined)
      assert.equal(asked.filter((request) => request.path === path).length, 3)
    })
  }

  for (const [fact, script, sentence] of REFUSALS) {
    test(named(`${fact} ends the start with a sentence`), async (t) => {
      const db = await engine.open(t, 'app')
      const { joining, pauses, outcomes } = start(t, db, { [VERSION_PATH]: [VERSION], ...script })
      await assert.rejects(joining.firstAnswer, (error: Error) => {
        assert.equal(error.name, 'OnboardingError')
        assert.match(error.message, sentence)
        assert.ok(!error.message.includes(SECRET) && !error.message.includes(INNER))
        assert.doesNotMatch(error.message, /\p{Cc}/u)
        return true
      })
      assert.deepEqual(pauses, [])
      assert.deepEqual(outcomes, ['refused'])
      assert.equal(await isOnboarded(db, PARTY), false)
    })
  }

  test(named('a refusal after the sponsor was away ends what has started'), async (t) => {
    const db = await engine.open(t, 'app')
    const { joining } = start(t, db, {
      [VERSION_PATH]: [VERSION],
      [ONBOARD_PATH]: [saying(503, 'starting'), saying(401, 'Unknown secret.')],
    })
    await joining.firstAnswer
    assert.match((await joining.ended)?.message as string, /does not accept the onboarding secret/)
  })

  test(named('a sponsor that says when to come back is asked then, within a minute'), async (t) => {
    const db = await engine.open(t, 'app')
    const busy = (status: number, retryAfter: string): HttpAnswer => ({
      ...saying(status, 'later'),
      header: (name) => (name === 'retry-after' ? retryAfter : null),
    })
    const { joining, pauses, outcomes } = start(t, db, {
      [VERSION_PATH]: [busy(503, '2'), busy(429, '0'), VERSION],
      [ONBOARD_PATH]: [busy(503, '86400'), busy(503, 'soon'), OK],
    })
    assert.equal(await joining.ended, undefined)
    assert.deepEqual(pauses, [2000, 400, 60_000, 1600])
    assert.deepEqual(outcomes, ['away', 'away', 'away', 'away', 'joined'])
  })

  test(named('the attempts have an end, and the pauses a bound'), async (t) => {
    const db = await engine.open(t, 'app')
    const { joining, pauses } = start(t, db, { [VERSION_PATH]: [saying(503, 'later')] })
    assert.match((await joining.ended)?.message as string, /was asked 120 times without success/)
    assert.deepEqual(pauses.slice(0, 6), [200, 400, 800, 1600, 3200, 5000])
    assert.equal(Math.max(...pauses), 5000)
  })

  test(named('a stop ends the waiting'), async (t) => {
    const db = await engine.open(t, 'app')
    const { joining } = start(
      t,
      db,
      { [VERSION_PATH]: [saying(503, 'later')] },
      {
        pause: (_ms, signal) =>
          new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          ),
      },
    )
    await joining.firstAnswer
    await joining.close()
    assert.equal(await joining.ended, undefined)
  })

  test(named('without a secret the node says what to ask for, and asks nobody'), async (t) => {
    const db = await engine.open(t, 'app')
    const { joining, asked } = start(t, db, {}, { secret: undefined })
    await assert.rejects(
      joining.firstAnswer,
      /not onboarded yet, and ONBOARDING_SECRET .* is missing or empty\. Ask the sponsor at https/,
    )
    assert.equal(asked.length, 0)
  })

  test(named('a development network gives the secret, once for all attempts'), async (t) => {
    const db = await engine.open(t, 'app')
    const { joining, asked } = start(
      t,
      db,
      {
        [VERSION_PATH]: [VERSION],
        [DEVNET_PATH]: [{ status: 200, body: `${SECRET}\n` }],
        [ONBOARD_PATH]: [saying(503, 'later'), OK],
      },
      { secret: undefined, isDevNet: true },
    )
    assert.equal(await joining.ended, undefined)
    assert.equal(asked.filter(({ path }) => path === DEVNET_PATH).length, 1)
    assert.deepEqual(
      bodiesOf(asked).map(({ secret }) => secret),
      [SECRET, SECRET],
    )
  })

  test(named('a network that is no development network gives no secret'), async (t) => {
    const db = await engine.open(t, 'app')
    const { joining } = start(
      t,
      db,
      { [VERSION_PATH]: [VERSION], [DEVNET_PATH]: [saying(501, 'only in DevNet')] },
      { secret: undefined, isDevNet: true },
    )
    await assert.rejects(joining.firstAnswer, /Ask the sponsor for an onboarding secret/)
  })
})
