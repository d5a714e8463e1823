import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  NAMESPACE,
  openTestLedger,
  partyOf,
  type TestLedger,
} from '../../test/support/embedded-ledger.ts'
import { type Cleanup, forEachEngine, type TestEngine } from '../../test/support/engines.ts'
import type { PlainError } from '../http/plain-error.ts'
import { type Ledger, openLedger } from '../ledger/ledger.ts'
import { TEMPLATES } from '../ledger/templates.ts'
import { usedSecret, validatorOnboarding } from '../ledger/validator-onboarding.ts'
import { decodeSecret, encodeSecret } from './secret.ts'
import { createSponsor, type JoinRequest, type Sponsor } from './sponsor.ts'

const SPONSOR = partyOf('acme-sponsor-1')
const ALICE = `alice-validator-1::1220${'11'.repeat(32)}`
const BOB = `bob-validator-1::1220${'22'.repeat(32)}`
const TWO_DAYS = 172_800

type World = TestLedger & { sponsor: Sponsor; counted: Record<string, number> }

async function openWorld(t: Cleanup, engine: TestEngine): Promise<World> {
  const made = await openTestLedger(t, await engine.open(t, 'participant'))
  const { ledger, db, network } = made
  const counted: Record<string, number> = {}
  const count = (what: string, by = 1) => {
    counted[what] = (counted[what] ?? 0) + by
  }
  const events = { onSecrets: count, onRefused: (reason: string) => count(`refused: ${reason}`) }
  const sponsor = createSponsor({ ledger, db, sponsorParty: SPONSOR, dso: network.dso, events })
  return { ...made, sponsor, counted }
}

async function openAgain(t: Cleanup, { db, clock, ledger }: World): Promise<Ledger> {
  const again = await openLedger({
    db,
    clock,
    migrationId: ledger.migrationId,
    synchronizerId: ledger.synchronizers[0] as string,
    templates: TEMPLATES,
    deduplicationMs: 3_600_000,
  })
  t.after(() => again.close())
  return again
}

const application = (partyId: string, secret: string): JoinRequest => ({
  partyId,
  secret,
  version: '0.1.0',
  contactPoint: 'ops@example.com',
})

async function issued(world: World, partyHint?: string): Promise<string> {
  return (await world.sponsor.issue({ expiresInSeconds: TWO_DAYS, partyHint })).secret
}

async function used(world: World, by: string): Promise<string> {
  const secret = await issued(world)
  await world.sponsor.admit(application(by, secret))
  return secret
}

const HOURS = (hours: number) => BigInt(hours) * 3_600_000_000n

/** The decisions in their order: what is presented, and the answer. Later rows pass the earlier ones. */
const DECISIONS: {
  fact: string
  present(world: World): Promise<JoinRequest>
  answer: 200 | [status: number, sentence: RegExp]
  /** Whether the secret is used up afterwards. */
  consumes?: true
}[] = [
  ...[
    '',
    'alice',
    'alice::',
    '::1220ab',
    'a::b::c',
    'al"ice::1220ab',
    `${'a'.repeat(300)}::1220`,
  ].map((partyId) => ({
    fact: `1. ${JSON.stringify(partyId.slice(0, 20))} is no party id`,
    present: async (world: World) => application(partyId, await issued(world)),
    answer: [400, /^party_id must be a party id/] as [number, RegExp],
  })),
  {
    fact: '1. a bad party id is told before a foreign secret',
    present: async () =>
      application('nobody', encodeSecret({ sponsoringSv: BOB, secret: 'x', partyHint: undefined })),
    answer: [400, /^party_id/],
  },
  {
    fact: '2. the secret names another sponsor',
    present: async () =>
      application(ALICE, encodeSecret({ sponsoringSv: BOB, secret: 'x', partyHint: undefined })),
    answer: [400, /issued by another sponsor .* Check the sponsor URL/],
  },
  {
    fact: '2. a used secret in the name of another sponsor is foreign',
    present: async (world) => {
      const decoded = decodeSecret(await used(world, ALICE))
      return application(ALICE, encodeSecret({ ...decoded, sponsoringSv: BOB }))
    },
    answer: [400, /another sponsor/],
  },
  {
    fact: '3. a used secret of the same party is fine',
    present: async (world) => application(ALICE, await used(world, ALICE)),
    answer: 200,
  },
  {
    fact: '3. a used secret of another party is refused',
    present: async (world) => application(BOB, await used(world, ALICE)),
    answer: [401, /^Secret has already been used for a different validator\./],
  },
  {
    fact: '3. a secret that was never issued is unknown',
    present: async () =>
      application(
        ALICE,
        encodeSecret({ sponsoringSv: SPONSOR, secret: 'x', partyHint: undefined }),
      ),
    answer: [401, /^Unknown secret/],
  },
  {
    fact: '3. any text is a bare secret, and unknown',
    present: async () => application(ALICE, 'hunter2'),
    answer: [401, /^Unknown secret/],
  },
  {
    fact: '3. a revoked secret is unknown',
    present: async (world) => {
      const secret = await issued(world)
      await world.sponsor.revoke({ secret })
      return application(ALICE, secret)
    },
    answer: [401, /^Unknown secret/],
  },
  {
    fact: '3. an expired secret that was cleared away is unknown',
    present: async (world) => {
      const secret = await issued(world)
      world.clock.advance(HOURS(48 + 24))
      await world.sponsor.clearExpired()
      return application(ALICE, secret)
    },
    answer: [401, /^Unknown secret/],
  },
  {
    fact: '4. the hint of the secret is not that of the party',
    present: async (world) => application(ALICE, await issued(world, 'bob-validator-1')),
    answer: [
      400,
      /issued for the party hint bob-validator-1, but the party's hint is alice-validator-1/,
    ],
  },
  {
    fact: '4. a hint that was cut out of the secret still counts',
    present: async (world) => {
      const decoded = decodeSecret(await issued(world, 'bob-validator-1'))
      return application(ALICE, encodeSecret({ ...decoded, partyHint: undefined }))
    },
    answer: [400, /party hint/],
  },
  {
    fact: '4. another hint is told before an old licence',
    present: async (world) => {
      await used(world, ALICE)
      return application(ALICE, await issued(world, 'bob-validator-1'))
    },
    answer: [400, /party hint/],
  },
  {
    fact: '5. who has a licence keeps the secret',
    present: async (world) => {
      await used(world, ALICE)
      return application(ALICE, await issued(world))
    },
    answer: 200,
  },
  {
    fact: '5. who has a licence is told nothing of an expired secret',
    present: async (world) => {
      await used(world, ALICE)
      const secret = await issued(world)
      world.clock.advance(HOURS(48))
      return application(ALICE, secret)
    },
    answer: 200,
  },
  {
    fact: '6. an open secret admits',
    present: async (world) => application(ALICE, await issued(world)),
    answer: 200,
    consumes: true,
  },
  {
    fact: '6. an open secret with the right hint admits',
    present: async (world) => application(ALICE, await issued(world, 'alice-validator-1')),
    answer: 200,
    consumes: true,
  },
  {
    fact: '6. the bare inner secret admits too',
    present: async (world) => application(ALICE, decodeSecret(await issued(world)).secret),
    answer: 200,
    consumes: true,
  },
  {
    fact: '6. a microsecond before 48 hours are over the secret still admits',
    present: async (world) => {
      const secret = await issued(world)
      const [invitation] = await world.sponsor.ongoing()
      // The transaction itself takes the next microsecond.
      const expiresAt = invitation?.payload.expiresAt as bigint
      world.clock.advance(expiresAt - world.clock.nowMicros() - 1n)
      return application(ALICE, secret)
    },
    answer: 200,
    consumes: true,
  },
  {
    fact: '6. after 48 hours the secret has expired',
    present: async (world) => {
      const secret = await issued(world)
      world.clock.advance(HOURS(48))
      return application(ALICE, secret)
    },
    answer: [401, /^The secret has expired at 2026-01-03T00:00:00/],
  },
]

forEachEngine((engine) => {
  for (const { fact, present, answer, consumes } of DECISIONS) {
    test(`${fact} (${engine.name})`, async (t) => {
      const world = await openWorld(t, engine)
      const request = await present(world)
      const open = (await world.sponsor.ongoing()).length
      const asked = world.sponsor.admit(request)
      if (answer === 200) await asked
      else {
        await assert.rejects(asked, (error: PlainError) => {
          assert.equal(error.status, answer[0])
          assert.match(error.message, answer[1])
          if (request.secret !== '') assert.ok(!error.message.includes(request.secret))
          return true
        })
      }
      assert.equal((await world.sponsor.ongoing()).length, open - (consumes ? 1 : 0))
    })
  }

  test(`of many parties with one secret exactly one joins (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    // On PostgreSQL another process may have the same ledger open.
    const second =
      engine.name === 'sqlite'
        ? world.sponsor
        : createSponsor({
            ledger: await openAgain(t, world),
            db: world.db,
            sponsorParty: SPONSOR,
            dso: world.network.dso,
          })
    const secret = await issued(world)
    const parties = Array.from({ length: 12 }, (_, n) => `racer-validator-${n}::${NAMESPACE}`)
    const outcomes = await Promise.allSettled(
      parties.map((party, n) =>
        (n % 2 === 0 ? world.sponsor : second).admit(application(party, secret)),
      ),
    )
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.equal(outcome.reason.status, 401)
    }
    const licences = await world.sponsor.licences({ after: '', limit: 100 })
    assert.equal(licences.length, 1)
    const winner = parties[outcomes.findIndex(({ status }) => status === 'fulfilled')]
    assert.equal(licences[0]?.payload.validator, winner)
  })

  test(`one party with several secrets at once gets one licence (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    const secrets = [await issued(world), await issued(world), await issued(world)]
    await Promise.all(secrets.map((secret) => world.sponsor.admit(application(ALICE, secret))))
    assert.equal((await world.sponsor.licences({ after: '', limit: 100 })).length, 1)
    assert.equal((await world.sponsor.ongoing()).length, 2)
  })

  test(`joining is one transaction: the secret is used and the licence made (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    const secret = await issued(world)
    const before = world.ledger.end
    await world.sponsor.admit(application(ALICE, secret))
    assert.equal(world.ledger.end, before + 1n)
    const [update] = await world.ledger.updatesAfter(before, 1)
    const { events_by_id: events } = JSON.parse(update?.item as string)
    const names = Object.values(events as Record<string, { template_id: string }>).map((event) =>
      event.template_id.split(':').slice(1).join(':'),
    )
    assert.deepEqual(names, [
      validatorOnboarding.name,
      usedSecret.name,
      'Splice.ValidatorLicense:ValidatorLicense',
    ])
    const [licence] = await world.sponsor.licences({ after: '', limit: 1 })
    assert.deepEqual(licence?.payload.metadata, {
      lastUpdatedAt: world.clock.nowMicros(),
      version: '0.1.0',
      contactPoint: 'ops@example.com',
    })
    assert.equal(licence?.payload.sponsor, SPONSOR)
  })

  test(`neither the ledger nor its updates hold a secret (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    const secret = await issued(world)
    await world.sponsor.admit(application(ALICE, secret))
    const updates = await world.ledger.updatesAfter(0n, 100)
    const contracts = await world.db.query<{ payload: string }>('select payload from contracts')
    const { secret: inner } = decodeSecret(secret)
    for (const text of [...updates.map(({ item }) => item), ...contracts.map((c) => c.payload)]) {
      assert.ok(!text.includes(inner) && !text.includes(secret))
    }
  })

  test(`a secret is revoked once, by contract id as well (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    const { invitation } = await world.sponsor.issue({ expiresInSeconds: 60, partyHint: undefined })
    const { contractId } = invitation
    await world.sponsor.revoke({ contractId })
    await assert.rejects(world.sponsor.revoke({ contractId }), { status: 404 })
    await assert.rejects(world.sponsor.revoke({ secret: 'x' }), { status: 404 })
    assert.deepEqual(await world.sponsor.ongoing(), [])
  })

  test(`what becomes of secrets is counted once, refusals by their reason (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    const { sponsor, clock, counted } = world
    const secret = await issued(world, 'alice-validator-1')
    const refused = (partyId: string, presented: string) =>
      assert.rejects(sponsor.admit(application(partyId, presented)))
    await refused('nobody', secret)
    await refused(BOB, secret)
    await refused(ALICE, ' ')
    await refused(ALICE, 'unheard-of')
    await refused(ALICE, encodeSecret({ ...decodeSecret(secret), sponsoringSv: BOB }))
    await sponsor.admit(application(ALICE, secret))
    await sponsor.admit(application(ALICE, secret))
    await refused(BOB, secret)
    await sponsor.revoke({ secret: await issued(world) })
    const late = await issued(world)
    clock.advance(HOURS(48))
    await refused(BOB, late)
    clock.advance(HOURS(24))
    await sponsor.clearExpired()
    assert.deepEqual(counted, {
      issued: 3,
      used: 1,
      revoked: 1,
      expired: 1,
      ...Object.fromEntries(
        ['party', 'hint', 'missing', 'unknown', 'foreign', 'used', 'expired'].map((reason) => [
          `refused: ${reason}`,
          1,
        ]),
      ),
    })
  })

  test(`expired secrets stay for a day, and no more than a hundred of them (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    const { sponsor, clock, ledger } = world
    const left = async () => (await ledger.contractsOf(validatorOnboarding, SPONSOR)).length
    const issueFor = (expiresInSeconds: number) =>
      sponsor.issue({ expiresInSeconds, partyHint: undefined })
    for (let n = 0; n < 102; n += 1) await issueFor(60 + n)
    await issueFor(TWO_DAYS)
    clock.advance(HOURS(1))
    assert.equal(await sponsor.clearExpired(), true)
    assert.equal(await left(), 101)
    assert.equal(await sponsor.clearExpired(), false)
    clock.advance(HOURS(24))
    // A transaction clears fifty.
    assert.deepEqual(
      [await sponsor.clearExpired(), await left(), await sponsor.clearExpired(), await left()],
      [true, 51, true, 1],
    )
    assert.equal(await sponsor.clearExpired(), false)
  })

  test(`a development network gives a secret for an hour to anyone (${engine.name})`, async (t) => {
    const world = await openWorld(t, engine)
    const { secret, invitation } = await world.sponsor.issueForDevNet()
    assert.equal(invitation.payload.expiresAt - world.clock.nowMicros(), HOURS(1))
    world.clock.advance(HOURS(1))
    await assert.rejects(world.sponsor.admit(application(ALICE, secret)), { status: 401 })
  })
})
