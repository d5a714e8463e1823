import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import type { Command } from 'commander'
import { forEachEngine } from '../../test/support/engines.ts'
import { startKeySetServer } from '../../test/support/key-set-server.ts'
import { buildLedgerApi } from '../../test/support/ledger-api.ts'
import { startLedgerProcess } from '../../test/support/ledger-process.ts'
import { AUDIENCE, makeKeys, tokenOf } from '../../test/support/ledger-tokens.ts'
import { openWorld } from '../../test/support/ledger-world.ts'
import type { Db } from '../db/db.ts'
import { openDb } from '../db/open.ts'
import { authenticationOff } from '../users/caller.ts'
import { openDevKey } from '../users/dev-key.ts'
import { createProvider } from '../users/idps.ts'
import { createUser } from '../users/users.ts'
import { auditCommand } from './audit.ts'
import { idpsCommand } from './idps.ts'
import type { CliContext } from './output.ts'
import { CommandError } from './output.ts'
import { tokenCommand } from './token.ts'
import { usersCommand } from './users.ts'

type Result = { code: number; out: string; err: string }
type Environment = Record<string, string>

/** Runs a command as `main.ts` does, and says how it ended. */
async function run(
  command: (context: CliContext) => Command,
  env: Environment,
  ...args: string[]
): Promise<Result> {
  const texts = { out: '', err: '' }
  const sink = (name: 'out' | 'err') =>
    new Writable({
      write(chunk, _encoding, done) {
        texts[name] += chunk
        done()
      },
    })
  const terminal = { stdout: sink('out'), stderr: sink('err'), isInteractive: false }
  const built = command({ env, terminal })
  for (const each of [built, ...built.commands]) {
    each.exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} })
  }
  try {
    await built.parseAsync(args, { from: 'user' })
    return { code: 0, ...texts }
  } catch (error) {
    if (error instanceof CommandError) {
      return { code: error.exitCode, out: texts.out, err: `${texts.err}${error.message}` }
    }
    return { code: 2, out: texts.out, err: (error as Error).message }
  }
}

const actor = { userId: undefined, identityProviderId: '', traceId: '' }

async function provide(db: Db, id: string): Promise<void> {
  await createProvider(db, actor, {
    identityProviderId: id,
    isDeactivated: false,
    issuer: `https://${id}.example/`,
    jwksUrl: `https://${id}.example/jwks`,
    audience: '',
  })
}

async function fill(db: Db, provider: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `user-${String(n).padStart(4, '0')}`)
  for (const id of ids) {
    const draft = {
      id,
      primaryParty: '',
      isDeactivated: false,
      primaryPartyAuthentication: false,
      identityProviderId: provider,
      annotations: new Map(),
    }
    await createUser(db, actor, draft, { rights: [], partiesMustExist: false })
  }
  return ids
}

const countIn = async (db: Db, provider: string): Promise<number> => {
  const rows = await db.query<{ n: number }>(
    "select count(*) as n from users where identity_provider_id = ? and user_id like 'user-%'",
    [provider],
  )
  return rows[0]?.n ?? 0
}

forEachEngine((engine) => {
  async function startNode(t: TestContext) {
    const keys = await makeKeys()
    const db = await engine.open(t, 'participant')
    const world = await openWorld({ db, keys })
    const url = await world.app.listen({ port: 0, host: '127.0.0.1' })
    t.after(() => world.app.close())
    const env = { ANNALS_URL: url, ANNALS_TOKEN: await tokenOf(keys, 'admin') }
    return { db, env, keys, url }
  }

  test(`users are created, granted, shown, moved, revoked and deleted from the command line on ${engine.name}`, async (t) => {
    const { db, env } = await startNode(t)
    await provide(db, 'old')
    await provide(db, 'new')
    const users = (...args: string[]) => run(usersCommand, env, ...args)

    const created = await users('create', 'auth0|x', '--idp', 'old', '--right', 'CanReadAs:p::1')
    assert.deepEqual(created, { code: 0, out: 'Created auth0|x in old.\n', err: '' })
    const granted = await users('grant', 'auth0|x', '--idp', 'old', '--right', 'ParticipantAdmin')
    assert.equal(granted.out, 'Granted ParticipantAdmin.\n')
    const shown = await users('show', 'auth0|x', '--idp', 'old', '--json')
    assert.equal(JSON.parse(shown.out).rights.length, 2)
    const dry = await users('move', 'auth0|x', '--to', 'new', '--dry-run')
    assert.match(dry.out, /Would move auth0\|x from old to new/)
    assert.match((await users('list', '--idp', 'old')).out, /auth0\|x +old/)
    assert.equal(
      (await users('move', 'auth0|x', '--to', 'new')).out,
      'Moved auth0|x from old to new.\n',
    )
    assert.equal(
      (await users('move', 'auth0|x', '--to', 'new')).out,
      'auth0|x is already in new. Nothing was changed.\n',
    )
    const listed = await users('list', '--idp', 'new', '--json')
    assert.deepEqual(
      JSON.parse(listed.out).map(({ id }: { id: string }) => id),
      ['auth0|x'],
    )
    const revoked = await users('revoke', 'auth0|x', '--idp', 'new', '--right', 'CanReadAs:p::1')
    assert.equal(revoked.out, 'Revoked CanReadAs:p::1.\n')
    const again = await users('revoke', 'auth0|x', '--idp', 'new', '--right', 'CanReadAs:p::1')
    assert.equal(again.out, 'Nothing changed.\n')
    assert.equal((await users('delete', 'auth0|x', '--idp', 'new')).out, 'Deleted auth0|x.\n')

    const audit = await run(auditCommand, env, '--user', 'auth0|x', '--json')
    const actions = audit.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).action)
    assert.deepEqual(actions, [
      'user.delete',
      'user.rights.revoke',
      'user.identity-provider.move',
      'user.rights.grant',
      'user.create',
    ])
    assert.match((await run(auditCommand, env, '--limit', '2')).out, /^TIME.*\n.*\n.*\n$/)
  })

  test(`identity providers are created, listed and deleted from the command line on ${engine.name}`, async (t) => {
    const { db, env } = await startNode(t)
    const idps = (...args: string[]) => run(idpsCommand, env, ...args)
    const create = ['create', 'x', '--issuer', 'https://x/', '--jwks-url', 'https://x/jwks']
    assert.equal((await idps(...create)).out, 'Created x.\n')
    assert.match((await idps('list')).out, /x +yes +https:\/\/x\/ +https:\/\/x\/jwks/)
    await fill(db, 'x', 2)
    const refused = await idps('delete', 'x')
    assert.equal(refused.code, 1)
    assert.match(refused.err, /still has 2 users/)
    const [moved] = await Promise.all([
      run(usersCommand, env, 'move', '--all', '--from', 'x', '--to', 'default'),
    ])
    assert.equal(moved.code, 0, moved.err)
    assert.equal((await idps('delete', 'x', '--json')).out, '{"deleted":"x"}\n')
  })

  test(`a bulk move tells of every user, shows progress and leaves the caller for last on ${engine.name}`, async (t) => {
    const { db, env } = await startNode(t)
    await provide(db, 'new')
    const ids = await fill(db, '', 150)
    const all = ['move', '--all', '--from', 'default', '--to', 'new']
    const dry = await run(usersCommand, env, ...all, '--dry-run')
    assert.equal(dry.out.match(/^would move /gm)?.length, 150)
    assert.equal(await countIn(db, ''), 150)

    const moved = await run(usersCommand, env, ...all, '--json')
    assert.equal(moved.code, 0, moved.err)
    const results = moved.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      results
        .filter(({ outcome }) => outcome === 'moved')
        .map(({ user }) => user)
        .sort(),
      ids,
    )
    assert.deepEqual(results.at(-1), { user: 'participant_admin', outcome: 'left out' })
    assert.match(moved.err, /100 of 151 users/)
    assert.match(moved.err, /150 moved, 1 left out/)

    const self = await run(usersCommand, env, ...all, '--include-self')
    assert.equal(self.out, 'moved participant_admin\n')
    assert.equal((await run(usersCommand, env, 'list')).code, 4, 'the own token has ended')
  })

  test(`a bulk move survives a node that is killed in its middle on ${engine.name}`, async (t) => {
    const keys = await makeKeys()
    const jwksUrl = await startKeySetServer(t, { default: [keys.k0.jwk] })
    const target = await engine.newTarget(t)
    const options = { target, jwksUrl: jwksUrl('default'), audience: AUDIENCE.default }
    const node = await startLedgerProcess(options)
    t.after(() => node.kill())
    const db = await openDb(target)
    t.after(() => db.close())
    await provide(db, 'old')
    await provide(db, 'new')
    await fill(db, 'old', 200)

    const token = await tokenOf(keys, 'admin')
    const all = ['move', '--all', '--from', 'old', '--to', 'new']
    const running = run(usersCommand, { ANNALS_URL: node.url, ANNALS_TOKEN: token }, ...all)
    while ((await countIn(db, 'new')) < 30) await new Promise(setImmediate)
    await node.kill()
    const interrupted = await running
    assert.equal(interrupted.code, 3, interrupted.err)
    assert.match(interrupted.err, /Run the same command again/)
    const before = await countIn(db, 'new')
    assert.ok(before >= 30 && before < 200, `${before} users were moved`)
    assert.equal(before + (await countIn(db, 'old')), 200)

    const again = await startLedgerProcess(options)
    t.after(() => again.kill())
    const env = { ANNALS_URL: again.url, ANNALS_TOKEN: token }
    const resumed = await run(usersCommand, env, ...all)
    assert.equal(resumed.code, 0, resumed.err)
    assert.equal(resumed.out.match(/^moved /gm)?.length, 200 - before)
    assert.equal(await countIn(db, 'new'), 200)
    const audit = await run(auditCommand, env, '--limit', '10000', '--json')
    const moves = audit.out.match(/"user\.identity-provider\.move"/g)?.length
    assert.equal(moves, 200, 'every move is in the audit once')
  })
})

forEachEngine((engine) => {
  if (engine.name !== 'sqlite') return

  test('failures end with a sentence and their own exit code', async (t) => {
    const keys = await makeKeys()
    const db = await engine.open(t, 'participant')
    const world = await openWorld({ db, keys })
    const url = await world.app.listen({ port: 0, host: '127.0.0.1' })
    t.after(() => world.app.close())
    const env = { ANNALS_URL: url, ANNALS_TOKEN: await tokenOf(keys, 'admin') }
    const expectations: [Environment, string[], number, RegExp][] = [
      [env, ['delete', 'ghost'], 1, /unknown user "ghost"/],
      [env, ['move', 'ghost', '--to', 'nowhere'], 1, /unknown user "ghost"/],
      [env, ['move', 'participant_admin', '--to', 'nowhere'], 1, /identity provider id="nowhere"/],
      [env, ['move', '--to', 'x'], 2, /Name a user/],
      [env, ['move', 'alice'], 2, /--to/],
      [env, ['move', '--all', '--to', 'x'], 2, /give --from and --to/],
      [env, ['move', '--all', '--from', 'x', '--to', 'x'], 2, /are the same/],
      [env, ['grant', 'participant_admin'], 2, /at least one right/],
      [env, ['grant', 'participant_admin', '--right', 'Nonsense'], 1, /exactly one kind/],
      [env, ['dance'], 2, /./],
      [{ ...env, ANNALS_URL: 'ftp://x' }, ['list'], 2, /not an http or https URL/],
      [{ ...env, ANNALS_URL: 'http://127.0.0.1:1' }, ['list'], 3, /cannot be reached/],
      [{ ANNALS_URL: url }, ['list'], 4, /annals token/],
      [{ ...env, ANNALS_TOKEN: 'a.b.c' }, ['list'], 4, /Get a new token/],
      [{ ...env, ANNALS_TOKEN: ' ' }, ['list'], 4, /annals token/],
      [{ ...env, ANNALS_TOKEN: `${env.ANNALS_TOKEN} x` }, ['list'], 2, /no token has/],
      [{ ...env, ANNALS_TOKEN: ` ${env.ANNALS_TOKEN}\n` }, ['list'], 0, /^$/],
    ]
    for (const [environment, args, code, message] of expectations) {
      const result = await run(usersCommand, environment, ...args)
      assert.equal(result.code, code, `${args.join(' ')}: ${result.err}`)
      assert.match(result.err, message)
      assert.ok(!result.err.includes(env.ANNALS_TOKEN))
    }
  })

  test('a bulk move works on a node without authentication', async (t) => {
    const db = await engine.open(t, 'participant')
    const app = await buildLedgerApi({ db, authentication: authenticationOff })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    t.after(() => app.close())
    await provide(db, 'new')
    await fill(db, '', 3)
    const all = ['move', '--all', '--from', 'default', '--to', 'new', '--url', url]
    const moved = await run(usersCommand, {}, ...all)
    assert.equal(moved.code, 0, moved.err)
    assert.equal(await countIn(db, 'new'), 3)
  })

  test('text from the node cannot steer the terminal', async (t) => {
    const db = await engine.open(t, 'participant')
    await createProvider(db, actor, {
      identityProviderId: 'x',
      isDeactivated: false,
      issuer: 'evil\u001b[2J\u202e',
      jwksUrl: 'https://x/',
      audience: '',
    })
    const app = await buildLedgerApi({ db, authentication: authenticationOff })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    t.after(() => app.close())
    const { out } = await run(idpsCommand, {}, 'list', '--url', url)
    assert.ok(out.includes('evil�[2J�'))
  })

  test('a token is printed for the node beside its data, and only there', async (t) => {
    const { dataDirectory, remove } = await newDataDirectory()
    t.after(remove)
    const token = (...args: string[]) => run(tokenCommand, {}, '--data', dataDirectory, ...args)
    assert.equal((await token()).code, 1)
    await openDevKey(dataDirectory)
    const { out } = await token('--user', 'alice', '--ttl', '15m')
    const [, payload = ''] = out.trim().split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    assert.equal(claims.sub, 'alice')
    assert.equal(claims.exp - claims.iat, 900)
    for (const ttl of ['0s', '1', 'x', '400d', '-1h']) {
      assert.equal((await token(`--ttl=${ttl}`)).code, 2, ttl)
    }
  })
})

async function newDataDirectory() {
  const { mkdtemp, rm } = await import('node:fs/promises')
  const { tmpdir } = await import('node:os')
  const { join } = await import('node:path')
  const dataDirectory = await mkdtemp(join(tmpdir(), 'annals-token-'))
  return { dataDirectory, remove: () => rm(dataDirectory, { recursive: true, force: true }) }
}
