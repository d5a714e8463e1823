import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { type Secret, secretOf } from '../src/config/secret.ts'
import { sponsorOpenApi } from '../src/onboarding/openapi.ts'
import { sponsorRoutes } from '../src/onboarding/sponsor-routes.ts'
import { DEV_AUDIENCE, mintDevToken, readDevKey } from '../src/users/dev-key.ts'
import { FREE_PORTS, outcomeOf, runCommand, startCommand } from './support/command.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory, startTestNode } from './support/node.ts'
import { type RunningCommand, startCommand as startNode } from './support/node-process.ts'
import {
  answerChecker,
  documentedOperations,
  type OpenApiDocument,
  registeredOperations,
} from './support/openapi.ts'

import { startPrivatePostgres } from './support/postgres-supervised.ts'

// A sponsor with a network of its own, and validators that join it, each in a process of its own.

type SponsorNode = { node: RunningCommand; url: string; scanUrl: string; token: string }

async function startSponsor(
  t: TestContext,
  args: string[] = [],
  data = newDirectory(t),
): Promise<SponsorNode> {
  const node = await startNode(t, ['--data', data, '--sim-time', ...args])
  const { stdout } = await runCommand(t, ['token', '--data', data])
  const url = new URL(node.urls.validator).origin
  return { node, url, scanUrl: new URL(node.urls.scan).origin, token: stdout.trim() }
}

async function sponsorCommand(t: TestContext, sponsor: SponsorNode, args: string[]) {
  const { url, token } = sponsor
  const outcome = await runCommand(t, ['sponsor', ...args, '--url', url, '--json'], {
    env: { ...process.env, ANNALS_TOKEN: token },
  })
  assert.equal(outcome.code, 0, outcome.stderr)
  return JSON.parse(outcome.stdout)
}

const issue = async (t: TestContext, sponsor: SponsorNode, ...args: string[]): Promise<string> =>
  (await sponsorCommand(t, sponsor, ['issue', ...args])).secret

const validators = async (t: TestContext, sponsor: SponsorNode): Promise<Licence[]> =>
  sponsorCommand(t, sponsor, ['validators'])

type Licence = { payload: { validator: string; metadata: { contactPoint: string } | null } }

type Joiner = { hint: string; secret: string; sponsorUrl: string; scanUrl: string; data: string }

const joinerEnv = ({ hint, secret, sponsorUrl, scanUrl }: Joiner) => ({
  MIGRATION_ID: '0',
  SPONSOR_SV_URL: sponsorUrl,
  TRUSTED_SCAN_URL: scanUrl,
  ONBOARDING_SECRET: secret,
  PARTY_HINT: hint,
  CONTACT_POINT: `${hint}@example.com`,
})

const joinerOf = (t: TestContext, sponsor: SponsorNode, hint: string, secret: string): Joiner => ({
  hint,
  secret,
  sponsorUrl: sponsor.url,
  scanUrl: sponsor.scanUrl,
  data: newDirectory(t),
})

const startJoiner = (t: TestContext, joiner: Joiner) =>
  startNode(t, ['--data', joiner.data], { env: joinerEnv(joiner) })

/** A start that must not succeed. */
const failToStart = (t: TestContext, joiner: Joiner) =>
  outcomeOf(
    startCommand(t, ['start', '--json', ...FREE_PORTS, '--data', joiner.data], {
      env: { ...process.env, ...joinerEnv(joiner) },
    }),
  )

/** Stands between a joining node and its sponsor. */
async function startBetween(
  t: TestContext,
  sponsorUrl: string,
  onRequest: (
    request: IncomingMessage,
    forward: () => Promise<Response>,
  ) => Promise<number | Response>,
): Promise<string> {
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = 'GET', url = '' } = request
    const body = method === 'POST' ? { body: Buffer.concat(chunks) } : {}
    const answer = await onRequest(request, () => fetch(`${sponsorUrl}${url}`, { method, ...body }))
    if (typeof answer === 'number') response.writeHead(answer).end()
    else response.writeHead(answer.status).end(await answer.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a validator joins once, and starts without its secret and its sponsor afterwards', async (t) => {
  const sponsor = await startSponsor(t)
  const secret = await issue(t, sponsor, '--hint', 'acme-validator-1')
  const joiner = joinerOf(t, sponsor, 'acme-validator-1', secret)
  const first = await startJoiner(t, joiner)
  const joined = (await validators(t, sponsor)).filter(({ payload }) =>
    payload.validator.startsWith('acme-validator-1::'),
  )
  assert.deepEqual(
    joined.map(({ payload }) => payload.metadata?.contactPoint),
    ['acme-validator-1@example.com'],
  )
  assert.deepEqual(await sponsorCommand(t, sponsor, ['list']), [])
  await first.stop()
  await sponsor.node.stop()
  const second = await startJoiner(t, { ...joiner, secret: '' })
  await second.stop()
  for (const { output } of [first, second, sponsor.node]) {
    assert.ok(!`${output.stdout}${output.stderr}`.includes(secret))
  }
  assert.match(first.output.stderr, /"message":"onboarded;/)
  assert.doesNotMatch(second.output.stderr, /onboarded;/)
})

test('a secret that does not serve ends the start with what to ask the sponsor for', async (t) => {
  const sponsor = await startSponsor(t)
  const used = await issue(t, sponsor)
  const revoked = await issue(t, sponsor)
  await startJoiner(t, joinerOf(t, sponsor, 'first-validator-1', used)).then((node) => node.stop())
  const left = await sponsorCommand(t, sponsor, ['list'])
  assert.equal(left.length, 1)
  await sponsorCommand(t, sponsor, ['revoke', left[0].contract.contract_id.slice(0, 16)])
  const hinted = await issue(t, sponsor, '--hint', 'other-validator-1')
  const foreign = Buffer.from(
    JSON.stringify({ sponsoringSv: 'other::1220ab', secret: 'c2VjcmV0', partyHint: null }),
  ).toString('base64')
  const cases: [secret: string, sentence: RegExp, changes?: Partial<Joiner>][] = [
    [used, /already been used for a different validator\..* Ask the sponsor for a new secret/],
    [revoked, /Unknown secret.* Ask the sponsor for a new secret/],
    ['a-secret-that-nobody-issued', /Unknown secret.* Ask the sponsor for a new secret/],
    [foreign, /issued by another sponsor .*Check that SPONSOR_SV_URL/],
    [hinted, /issued for the party hint other-validator-1/],
    ['', /ONBOARDING_SECRET .* is missing or empty\. Ask the sponsor at/],
    [hinted, /that is a scan\. The URL of .* SV app is needed/, { sponsorUrl: sponsor.scanUrl }],
  ]
  for (const [secret, sentence, changes] of cases) {
    const joiner = { ...joinerOf(t, sponsor, 'late-validator-1', secret), ...changes }
    const { code, stdout, stderr } = await failToStart(t, joiner)
    assert.equal(code, 1, stderr)
    assert.match(stderr, sentence)
    assert.equal(stdout, '')
    if (secret !== '') assert.ok(!stderr.includes(secret))
  }
})

async function advance(sponsor: SponsorNode, by: string): Promise<void> {
  const moved = await fetch(`${sponsor.node.urls.ledger}/v2/time`, {
    method: 'POST',
    headers: { authorization: `Bearer ${sponsor.token}` },
    body: JSON.stringify({ advance: by }),
  })
  assert.equal(moved.status, 200, await moved.text())
}

/** A counter of the sponsor, by the value of its label. */
async function countOf(sponsor: SponsorNode, metric: string, label: string): Promise<number> {
  const page = await (await fetch(sponsor.node.urls.metrics)).text()
  const line = new RegExp(`^annals_onboarding_${metric}_total\\{.*="${label}".*\\} (\\d+)$`, 'm')
  return Number(line.exec(page)?.[1] ?? Number.NaN)
}

test('48 hours later a secret has expired, and a day after that it is cleared away by itself', async (t) => {
  const sponsor = await startSponsor(t)
  const secret = await issue(t, sponsor)
  await advance(sponsor, '48h')
  const late = joinerOf(t, sponsor, 'late-validator-1', secret)
  const { code, stderr } = await failToStart(t, late)
  assert.equal(code, 1)
  assert.match(stderr, /The secret has expired at .* Ask the sponsor for a new secret/)
  assert.ok(!stderr.includes(secret))
  assert.equal(await countOf(sponsor, 'secrets', 'expired'), 0)
  await advance(sponsor, '24h')
  while ((await countOf(sponsor, 'secrets', 'expired')) === 0) await wait(20)
  assert.match((await failToStart(t, late)).stderr, /Unknown secret.* Ask the sponsor for a new/)
  assert.equal(await countOf(sponsor, 'secrets', 'issued'), 1)
  assert.equal(await countOf(sponsor, 'refusals', 'expired'), 1)
  assert.equal(await countOf(sponsor, 'refusals', 'unknown'), 1)
})

/** Arguments of a node whose databases are on a server of its own. */
async function onPostgres(t: TestContext): Promise<string[]> {
  const { connection } = await startPrivatePostgres(t)
  const { host, port, user } = connection
  const persistence = (database: string, schema: string) =>
    `persistence:\n  host: ${host}\n  port: ${port}\n  user: ${user}\n  secretName: s\n  databaseName: ${database}\n  schema: ${schema}\n`
  const admin = new pg.Client(connection)
  await admin.connect()
  for (const name of ['app', 'participant_0']) await admin.query(`create database ${name}`)
  await admin.end()
  const directory = newDirectory(t)
  mkdirSync(join(directory, 'secrets/s'), { recursive: true })
  const write = (file: string, text: string): string => {
    writeFileSync(join(directory, file), text)
    return join(directory, file)
  }
  write('secrets/s/postgresPassword', 'unused\n')
  const validator = write('v.yaml', persistence('app', 'validator'))
  const participant = write('p.yaml', persistence('participant_0', 'participant'))
  return ['-f', validator, '-p', participant, '--secrets', join(directory, 'secrets')]
}

test('a sponsor on PostgreSQL knows its secrets and validators after a restart', async (t) => {
  const data = newDirectory(t)
  const sponsorArgs = await onPostgres(t)
  const first = await startSponsor(t, sponsorArgs, data)
  const secret = await issue(t, first, '--hint', 'acme-validator-1')
  const unused = await issue(t, first)
  await first.node.stop()
  const sponsor = await startSponsor(t, sponsorArgs, data)
  const joiner = joinerOf(t, sponsor, 'acme-validator-1', secret)
  await startJoiner(t, joiner).then((node) => node.stop())
  assert.equal((await validators(t, sponsor)).length, 2)
  assert.equal((await sponsorCommand(t, sponsor, ['list'])).length, 1)
  const other = await failToStart(t, joinerOf(t, sponsor, 'acme-validator-1', secret))
  assert.match(other.stderr, /already been used for a different validator/)
  await advance(sponsor, '72h')
  while ((await countOf(sponsor, 'secrets', 'expired')) === 0) await wait(20)
  const late = await failToStart(t, joinerOf(t, sponsor, 'late-validator-1', unused))
  assert.match(late.stderr, /Unknown secret/)
})

test('a validator that dies between the answer and its note joins at the next start', async (t) => {
  const sponsor = await startSponsor(t)
  const secret = await issue(t, sponsor)
  const died = Promise.withResolvers<void>()
  let starting: ReturnType<typeof startCommand> | undefined
  const between = await startBetween(t, sponsor.url, async ({ url }, forward) => {
    const answer = await forward()
    if (url?.endsWith('/onboard/validator') && starting !== undefined) {
      const gone = once(starting, 'exit')
      starting.kill('SIGKILL')
      starting = undefined
      await gone
      died.resolve()
    }
    return answer
  })
  const joiner = { ...joinerOf(t, sponsor, 'acme-validator-1', secret), sponsorUrl: between }
  starting = startCommand(t, ['start', '--json', ...FREE_PORTS, '--data', joiner.data], {
    env: { ...process.env, ...joinerEnv(joiner) },
  })
  await died.promise
  const before = await validators(t, sponsor)
  assert.equal(before.length, 2)
  await startJoiner(t, joiner).then((node) => node.stop())
  assert.deepEqual(await validators(t, sponsor), before)
})

test('a sponsor that is away for a while holds up readiness, not the start', async (t) => {
  const sponsor = await startSponsor(t)
  const secret = await issue(t, sponsor)
  let isBack = false
  const between = await startBetween(t, sponsor.url, async (_request, forward) =>
    isBack ? forward() : 503,
  )
  const joiner = { ...joinerOf(t, sponsor, 'acme-validator-1', secret), sponsorUrl: between }
  const node = await startJoiner(t, joiner)
  const readiness = async () => (await fetch(`${node.urls.validator}/readyz`)).text()
  assert.match(await readiness(), /onboarding: The node has not joined its network: .* answers 503/)
  isBack = true
  while ((await readiness()).includes('onboarding')) await wait(50)
  assert.equal((await validators(t, sponsor)).length, 2)
  await node.stop()
  assert.ok(!node.output.stderr.includes(secret))
})

test('a refusal after the sponsor was away ends the node', async (t) => {
  const sponsor = await startSponsor(t)
  let isBack = false
  const between = await startBetween(t, sponsor.url, async (_request, forward) =>
    isBack ? forward() : 503,
  )
  const joiner = { ...joinerOf(t, sponsor, 'acme-validator-1', 'unknown'), sponsorUrl: between }
  const node = await startJoiner(t, joiner)
  const exit = once(node.child, 'exit')
  isBack = true
  assert.deepEqual((await exit)[0], 1)
  assert.match(node.output.stderr, /Unknown secret.* Ask the sponsor for a new secret/)
})

test('a development network lets validators in without a secret from a person', async (t) => {
  const sponsor = await startSponsor(t)
  const joiner = joinerOf(t, sponsor, 'acme-validator-1', '')
  const env = { ...joinerEnv(joiner), SPLICE_APP_DEVNET: '1' }
  const node = await startNode(t, ['--data', joiner.data], { env })
  assert.equal((await validators(t, sponsor)).length, 2)
  await node.stop()
})

const document = sponsorOpenApi('test') as unknown as OpenApiDocument

test('the document of the sponsor has every route, and is served', async (t) => {
  const options = { sponsor: () => undefined, authentication: () => undefined }
  const served = await registeredOperations((app) =>
    sponsorRoutes(app, { ...options, softwareVersion: 'test', releasedAt: '' }),
  )
  assert.deepEqual(documentedOperations(document), served)
  const { ask, tokenOf } = await startInProcess(t)
  const answer = await ask('GET', '/openapi.json')
  assert.deepEqual(JSON.parse(answer.text).paths, document.paths)
  await ask('GET', '/version')
  for (const operation of served) {
    const [method = '', path = ''] = operation.split(' ')
    await ask(method, path, await tokenOf('participant_admin'))
  }
})

const ADMIN_ROUTES = [
  ['POST', '/onboarding/prepare'],
  ['GET', '/onboarding/ongoing'],
  ['POST', '/onboarding/revoke'],
  ['GET', '/licenses'],
] as const

async function startInProcess(t: TestContext) {
  const dataDirectory = newDirectory(t)
  const node = await startTestNode(t, { empty: false, dataDirectory })
  const key = await readDevKey(dataDirectory)
  assert.ok(key !== undefined)
  const base = `${new URL(node.urls.validator).origin}/api/sv`
  const check = answerChecker(document)
  const tokenOf = (userId: string) =>
    mintDevToken(key, { userId, ttlSeconds: 600, audience: DEV_AUDIENCE })
  const ask = async (method: string, path: string, token?: string, body?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const init = { method, headers, ...(body === undefined ? {} : { body }) }
    const answer = await fetch(`${base}${path}`, init)
    const { status, headers: answered } = answer
    const text = await answer.text()
    const type = answered.get('content-type') ?? ''
    check({ method, path: path.split('?')[0] ?? '', status, body: text, type })
    return { status, text, headers: answered }
  }
  const { origin } = new URL(base)
  return { ask, tokenOf, origin, scanUrl: node.urls.scan }
}

forEachEngine((engine) => {
  test(`a joined node stays joined when it starts again, on ${engine.name}`, async (t) => {
    const { ask, origin, scanUrl } = await startInProcess(t)
    const secret = secretOf((await ask('POST', '/v0/devnet/onboard/validator/prepare')).text)
    const target = await engine.newTarget(t)
    const dataDirectory = newDirectory(t)
    const joiner = async (onboardingSecret: Secret | undefined, sponsorUrl: string) =>
      startTestNode(t, {
        target,
        dataDirectory,
        config: {
          historyWriter: 'mirror',
          network: {
            sponsorUrl,
            onboardingSecret,
            devNet: false,
            scan: { mode: 'trust-single', url: scanUrl },
            sequencer: { mode: 'bft' },
            extraSynchronizers: [],
          },
        },
      })
    await assert.rejects(joiner(undefined, origin), { name: 'OnboardingError' })
    const first = await joiner(secret, origin)
    await first.close()
    const again = await joiner(undefined, 'http://127.0.0.1:9')
    await again.close()
  })
})

test('only an administrator issues, lists and revokes; nobody else is told anything', async (t) => {
  const { ask, tokenOf } = await startInProcess(t)
  const callers = [
    [undefined, 401],
    ['not-a-token', 401],
    [await tokenOf('alice'), 403],
  ] as const
  for (const [method, path] of ADMIN_ROUTES) {
    for (const [token, status] of callers) {
      const answer = await ask(method, `/v0/admin/validator${path}`, token)
      assert.equal(answer.status, status, path)
      assert.deepEqual(Object.keys(JSON.parse(answer.text)), ['error'])
    }
  }
})

test('requests of administrators are checked, and lists come in pages', async (t) => {
  const { ask, tokenOf } = await startInProcess(t)
  const token = await tokenOf('participant_admin')
  const prepare = '/v0/admin/validator/onboarding/prepare'
  const revoke = '/v0/admin/validator/onboarding/revoke'
  const refused: [path: string, body: string, status: number, sentence: RegExp][] = [
    [prepare, '{', 400, /not valid JSON/],
    [prepare, '{"expires_in":0}', 400, /expires_in must be a whole number of seconds/],
    [prepare, '{"expires_in":1.5}', 400, /expires_in/],
    [prepare, '{"expires_in":"60"}', 400, /expires_in/],
    [prepare, '{"expires_in":1e12}', 400, /expires_in/],
    [prepare, '{"party_hint":"a::b"}', 400, /party_hint must be letters/],
    [revoke, '{}', 400, /by contract_id or by secret/],
    [revoke, '{"contract_id":"00","secret":"x"}', 400, /one of the two/],
    [revoke, '{"contract_id":"00"}', 404, /no such unused secret/],
    ['/v0/onboard/validator', '{"secret":"x"}', 400, /party_id must be a party id/],
    ['/v0/onboard/validator', '{"party_id":"a::b"}', 400, /secret must be the onboarding secret/],
  ]
  for (const [path, body, status, sentence] of refused) {
    const answer = await ask('POST', path, token, body)
    assert.equal(answer.status, status, `${path} ${body}: ${answer.text}`)
    assert.match(JSON.parse(answer.text).error, sentence)
  }
  const issued = JSON.parse((await ask('POST', prepare, token)).text)
  const lifeMs = Date.parse(issued.expires_at) - Date.parse(issued.contract.created_at)
  assert.ok(Math.abs(lifeMs - 172_800_000) <= 1)
  const listed = await ask('GET', '/v0/admin/validator/onboarding/ongoing', token)
  const { secret, ...rest } = issued
  assert.deepEqual(JSON.parse(listed.text), { ongoing_validator_onboardings: [rest] })
  assert.ok(!listed.text.includes(JSON.parse(Buffer.from(secret, 'base64').toString()).secret))

  const devNet = await ask('POST', '/v0/devnet/onboard/validator/prepare')
  assert.match(devNet.headers.get('content-type') ?? '', /^text\/plain/)
  const body = { party_id: 'a-validator-1::1220ab', secret: devNet.text }
  const admitted = await ask('POST', '/v0/onboard/validator', undefined, JSON.stringify(body))
  assert.deepEqual([admitted.status, admitted.text], [200, ''])
  const page = async (query: string) =>
    JSON.parse((await ask('GET', `/v0/admin/validator/licenses?${query}`, token)).text)
  const first = await page('limit=1')
  const second = await page(`limit=1&after=${first.next_page_token}`)
  assert.deepEqual(
    [...first.validator_licenses, ...second.validator_licenses],
    (await page('')).validator_licenses,
  )
  assert.equal(second.next_page_token, undefined)
})
