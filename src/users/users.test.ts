import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { forEachEngine } from '../../test/support/engines.ts'
import type { Db } from '../db/db.ts'
import { migrate, readMigrations } from '../db/migrate.ts'
import { openDb } from '../db/open.ts'
import { listAudit } from './audit.ts'
import { ensureFirstUsers } from './first-users.ts'
import { createProvider, deleteProvider } from './idps.ts'
import { grantRights, listRights, revokeRights } from './rights.ts'
import type { Right } from './user.ts'
import { createUser, deleteUser, getUser, moveUser, updateUser } from './users.ts'

const actor = { userId: 'tester', identityProviderId: '', traceId: 't'.repeat(32) }
const ALICE_READS: Right = { kind: 'CanReadAs', party: 'alice::1220' }

const draft = (id: string, identityProviderId: string) => ({
  id,
  primaryParty: 'p',
  isDeactivated: false,
  primaryPartyAuthentication: true,
  identityProviderId,
  annotations: new Map([['team', 'red']]),
})
const create = (db: Db, id: string, provider = '') =>
  createUser(db, actor, draft(id, provider), { rights: [ALICE_READS], partiesMustExist: false })
const move = (db: Db, userId: string, source: string, target: string) =>
  moveUser(db, actor, { userId, source, target })
const provide = (db: Db, id: string) =>
  createProvider(db, actor, {
    identityProviderId: id,
    isDeactivated: false,
    issuer: `https://${id}.example/`,
    jwksUrl: `https://${id}.example/jwks`,
    audience: '',
  })
const outcomeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
    return 'done'
  } catch (error) {
    return (error as { code: string }).code
  }
}
/** The invariant: no user is in a provider that does not exist. */
const homeless = async (db: Db) =>
  db.query(
    'select user_id from users where identity_provider_id not in (select identity_provider_id from identity_providers)',
  )

forEachEngine((engine) => {
  describe(`users on ${engine.name}`, () => {
    const cleanups: (() => Promise<void> | void)[] = []
    /** Two processes that share a database, as far as the engine can tell. */
    let first: Db
    let second: Db
    before(async () => {
      const keep = { after: (clean: () => Promise<void> | void) => void cleanups.unshift(clean) }
      const target = await engine.newTarget(keep)
      first = await openDb(target)
      await migrate(first, await readMigrations('participant'))
      second = await openDb(target)
      keep.after(() => first.close())
      keep.after(() => second.close())
      for (const id of ['a', 'b', 'c']) await provide(first, id)
    })
    after(async () => {
      for (const clean of cleanups) await clean()
    })

    test('of many concurrent moves from one source exactly one succeeds', async () => {
      for (let round = 0; round < 10; round++) {
        const user = `racer-${round}`
        await create(first, user, 'a')
        const outcomes = await Promise.all(
          Array.from({ length: 8 }, (_, n) =>
            outcomeOf(move(n % 2 === 0 ? first : second, user, 'a', n % 3 === 0 ? 'b' : 'c')),
          ),
        )
        assert.deepEqual(outcomes.filter((outcome) => outcome === 'done').length, 1)
        assert.ok(outcomes.every((outcome) => ['done', 'PERMISSION_DENIED'].includes(outcome)))
        const { entries } = await listAudit(first, {
          subject: { kind: 'user', id: user },
          pageSize: undefined,
          pageToken: '',
        })
        const moves = entries.filter(({ action }) => action === 'user.identity-provider.move')
        assert.equal(moves.length, 1, 'the audit has the one move that happened')
      }
    })

    test('a move keeps rights, annotations, party, flags and version', async () => {
      const before = await create(first, 'keeper', 'a')
      await move(first, 'keeper', 'a', 'b')
      const after = await getUser(first, { userId: 'keeper', identityProviderId: 'b' })
      assert.deepEqual(after, { ...before, identityProviderId: 'b' })
      const rights = await listRights(second, { userId: 'keeper', identityProviderId: 'b' })
      assert.deepEqual(rights, [ALICE_READS])
    })

    test('a move and the deletion of its target never leave a user without a provider', async () => {
      for (let round = 0; round < 15; round++) {
        const user = `mover-${round}`
        await provide(first, 'target')
        await create(first, user, 'a')
        const [moved, deleted] = await Promise.all([
          outcomeOf(move(first, user, 'a', 'target')),
          outcomeOf(deleteProvider(second, actor, 'target')),
        ])
        const pair = `${moved} ${deleted}`
        assert.ok(['done IDP_CONFIG_IN_USE', 'INVALID_ARGUMENT done'].includes(pair), pair)
        assert.deepEqual(await homeless(first), [])
        if (moved === 'done') await move(first, user, 'target', 'a')
        if (deleted !== 'done') await deleteProvider(first, actor, 'target')
      }
    })

    test('creating users and deleting their provider never leave a user without one', async () => {
      for (let round = 0; round < 15; round++) {
        await provide(first, 'target')
        const [created, deleted] = await Promise.all([
          outcomeOf(create(first, `new-${round}`, 'target')),
          outcomeOf(deleteProvider(second, actor, 'target')),
        ])
        const pair = `${created} ${deleted}`
        assert.ok(['done IDP_CONFIG_IN_USE', 'INVALID_ARGUMENT done'].includes(pair), pair)
        assert.deepEqual(await homeless(first), [])
        if (deleted === 'done') continue
        await move(first, `new-${round}`, 'target', 'a')
        await deleteProvider(first, actor, 'target')
      }
    })

    test('a move and a deletion of the user end in one or the other', async () => {
      for (let round = 0; round < 10; round++) {
        const user = `leaver-${round}`
        await create(first, user, 'a')
        const [moved, deleted] = await Promise.all([
          outcomeOf(move(first, user, 'a', 'b')),
          outcomeOf(deleteUser(second, actor, { userId: user, identityProviderId: 'a' })),
        ])
        const pair = `${moved} ${deleted}`
        assert.ok(['done PERMISSION_DENIED', 'USER_NOT_FOUND done'].includes(pair), pair)
      }
    })

    test('a move and a deactivation both happen, or the deactivation finds the user gone', async () => {
      for (let round = 0; round < 10; round++) {
        const user = `sleeper-${round}`
        await create(first, user, 'a')
        const [moved, changed] = await Promise.all([
          outcomeOf(move(first, user, 'a', 'b')),
          outcomeOf(
            updateUser(second, actor, {
              draft: { ...draft(user, 'a'), isDeactivated: true },
              resourceVersion: '0',
              mask: ['is_deactivated'],
            }),
          ),
        ])
        assert.equal(moved, 'done')
        const after = await getUser(first, { userId: user, identityProviderId: 'b' })
        assert.equal(after.isDeactivated, changed === 'done')
      }
    })

    test('of concurrent updates with one version exactly one succeeds', async () => {
      await create(first, 'versioned', 'a')
      const outcomes = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          outcomeOf(
            updateUser(n % 2 === 0 ? first : second, actor, {
              draft: { ...draft('versioned', 'a'), primaryParty: `p${n}` },
              resourceVersion: '0',
              mask: ['primary_party'],
            }),
          ),
        ),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'done').length, 1, outcomes.join())
      assert.ok(
        outcomes.every((each) => each === 'done' || each === 'CONCURRENT_USER_UPDATE_DETECTED'),
      )
    })

    test('a right is newly granted to exactly one of several concurrent callers', async () => {
      await create(first, 'granted', 'a')
      const change = {
        userId: 'granted',
        identityProviderId: 'a',
        rights: [{ kind: 'CanActAs', party: 'x' } as Right],
        partiesMustExist: false,
      }
      const results = await Promise.all(
        Array.from({ length: 6 }, (_, n) => grantRights(n % 2 ? first : second, actor, change)),
      )
      assert.equal(results.flat().length, 1)
    })

    test('of concurrent creations of one id exactly one succeeds', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 6 }, (_, n) => outcomeOf(create(n % 2 ? first : second, 'twin', 'a'))),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'done').length, 1)
      assert.ok(outcomes.every((each) => each === 'done' || each === 'USER_ALREADY_EXISTS'))
    })

    test('of concurrent providers with one issuer one is created, and never more than 16', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          outcomeOf(
            createProvider(n % 2 ? first : second, actor, {
              identityProviderId: `many-${n}`,
              isDeactivated: false,
              issuer: `https://many.example/${Math.max(n - 4, 0)}`,
              jwksUrl: 'https://many.example/jwks',
              audience: '',
            }),
          ),
        ),
      )
      const done = outcomes.filter((outcome) => outcome === 'done').length
      assert.equal(done, 13, outcomes.join())
      for (const [n, outcome] of outcomes.entries()) {
        if (outcome === 'done') await deleteProvider(first, actor, `many-${n}`)
      }
    })

    test('a change that fails leaves no trace, in the users as in the audit', async () => {
      const before = await listAudit(first, { pageSize: undefined, pageToken: '' })
      const rights: Right[] = Array.from({ length: 1001 }, (_, n) => ({
        kind: 'CanActAs',
        party: `p${n}`,
      }))
      const tooMany = createUser(first, actor, draft('heavy', 'a'), {
        rights,
        partiesMustExist: false,
      })
      assert.equal(await outcomeOf(tooMany), 'TOO_MANY_USER_RIGHTS')
      const gone = getUser(first, { userId: 'heavy', identityProviderId: 'a' })
      assert.equal(await outcomeOf(gone), 'USER_NOT_FOUND')
      const after = await listAudit(first, { pageSize: undefined, pageToken: '' })
      assert.deepEqual(after.entries[0], before.entries[0])
    })

    test('the first users exist after any number of starts, and keep what became of them', async () => {
      const options = { serviceUser: 'validator@clients' }
      await Promise.all([ensureFirstUsers(first, options), ensureFirstUsers(second, options)])
      const right: Right = { kind: 'ParticipantAdmin', party: '' }
      const change = { identityProviderId: '', rights: [right], partiesMustExist: false }
      await revokeRights(first, actor, { userId: 'validator@clients', ...change })
      await ensureFirstUsers(first, options)
      const rightsOf = (userId: string) => listRights(first, { userId, identityProviderId: '' })
      assert.deepEqual(await rightsOf('validator@clients'), [])
      assert.deepEqual(await rightsOf('participant_admin'), [right])
    })

    test('random interleavings of two processes behave like a simple model', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
          await first.execute("delete from users where user_id like 'm%'")
          const model: Model = new Map()
          for (const [index, one] of steps.entries()) {
            const db = index % 2 === 0 ? first : second
            assert.equal(await outcomeOf(perform(db, one)), predict(model, one), show(one))
          }
          for (const [id, { provider, rights }] of model) {
            const user = await getUser(second, { userId: id, identityProviderId: provider })
            const held = await listRights(first, { userId: id, identityProviderId: provider })
            assert.equal(user.identityProviderId, provider)
            assert.deepEqual(held.map(({ party }) => party).sort(), [...rights].sort())
          }
        }),
        { numRuns: 40 },
      )
    })

    test('random concurrent changes leave the users that some order of them would', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
          await first.execute("delete from users where user_id like 'm%'")
          await create(first, 'm1', 'a')
          const outcomes = await Promise.all(
            steps.map((one, n) => outcomeOf(perform(n % 2 === 0 ? first : second, one))),
          )
          assert.ok(
            outcomes.every((outcome) => EXPECTED.has(outcome)),
            outcomes.join(),
          )
          assert.deepEqual(await homeless(first), [])
        }),
        { numRuns: 25 },
      )
    })
  })
})

type Step = {
  kind: 'create' | 'move' | 'grant' | 'revoke' | 'delete'
  user: string
  provider: string
  target: string
  party: string
}
type Model = Map<string, { provider: string; rights: Set<string> }>

const EXPECTED = new Set(['done', 'PERMISSION_DENIED', 'USER_NOT_FOUND', 'USER_ALREADY_EXISTS'])
const provider = fc.constantFrom('', 'a', 'b')
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('create', 'move', 'grant', 'revoke', 'delete'),
  user: fc.constantFrom('m1', 'm2'),
  provider,
  target: provider,
  party: fc.constantFrom('p', 'q'),
})

const show = (one: Step): string => JSON.stringify(one)

function perform(db: Db, one: Step): Promise<unknown> {
  const { user: userId, provider: identityProviderId } = one
  const rights: Right[] = [{ kind: 'CanActAs', party: one.party }]
  const change = { userId, identityProviderId, rights, partiesMustExist: false }
  if (one.kind === 'move') return move(db, userId, identityProviderId, one.target)
  if (one.kind === 'grant') return grantRights(db, actor, change)
  if (one.kind === 'revoke') return revokeRights(db, actor, change)
  if (one.kind === 'delete') return deleteUser(db, actor, { userId, identityProviderId })
  return createUser(db, actor, draft(userId, identityProviderId), {
    rights: [],
    partiesMustExist: false,
  })
}

function predict(model: Model, one: Step): string {
  const user = model.get(one.user)
  if (one.kind === 'create') {
    if (user !== undefined) {
      return user.provider === one.provider ? 'USER_ALREADY_EXISTS' : 'PERMISSION_DENIED'
    }
    model.set(one.user, { provider: one.provider, rights: new Set() })
    return 'done'
  }
  if (user === undefined) return 'USER_NOT_FOUND'
  if (user.provider !== one.provider) return 'PERMISSION_DENIED'
  if (one.kind === 'move') user.provider = one.target
  if (one.kind === 'grant') user.rights.add(one.party)
  if (one.kind === 'revoke') user.rights.delete(one.party)
  if (one.kind === 'delete') model.delete(one.user)
  return 'done'
}
