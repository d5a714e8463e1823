import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { SignJWT } from 'jose'
import pg from 'pg'
import type { PostgresConnection } from '../src/db/postgres-client.ts'
import type { Cleanup } from './support/engines.ts'
import { startKeySetServer } from './support/key-set-server.ts'
import { makeKey } from './support/ledger-tokens.ts'
import { newDirectory } from './support/node.ts'
import { type RunningCommand, runCommand, startCommand } from './support/node-process.ts'
import { startPrivatePostgres } from './support/postgres-supervised.ts'

const AUDIENCE = 'https://ledger.acme.example'

type Urls = RunningCommand['urls']
type Line = Record<string, unknown>

async function waitFor(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let attempt = 0; !(await condition()); attempt += 1) {
    assert.ok(attempt < 500, what)
    await delay(20)
  }
}

function writeFiles(t: Cleanup, files: Record<string, string>): string {
  const directory = newDirectory(t)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  return directory
}

/** Every line of the log is a JSON object with the names that viewers know. */
function readLog(text: string): Line[] {
  return text
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const record = JSON.parse(line) as Line
      assert.match(String(record['@timestamp']), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
      assert.match(String(record.level), /^(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)$/)
      assert.match(String(record.logger_name), /^annals\.[a-z]+$/)
      assert.equal(typeof record.message, 'string')
      return record
    })
}

async function post(url: string, body: string): Promise<Response> {
  return fetch(url, { method: 'POST', body })
}

test('at INFO a node is quiet under load, and every error is found by its correlation id', async (t) => {
  const node = await startCommand(t, [], { cwd: newDirectory(t) })
  const log = () => readLog(node.output.stderr)
  await waitFor(() => log().some(({ message }) => message === 'ready'), 'the node says it is ready')
  const before = log().length
  for (let round = 0; round < 50; round += 1) {
    const page = await post(`${node.urls.scan}/v1/updates`, '{"page_size":10}')
    assert.equal(page.status, 200)
    await page.arrayBuffer()
    await (await post(`${node.urls.scan}/v1/updates`, '{"page_size":0}')).text()
    await (await fetch(`${node.urls.validator}/readyz`)).text()
    await (await fetch(node.urls.metrics)).text()
    await (await fetch(`${node.urls.ledger}/v2/version`)).text()
  }
  const refused = (await (await fetch(`${node.urls.ledger}/v2/users`)).json()) as Line
  await waitFor(() => log().length > before, 'a refused request is told')
  const news = log().slice(before)
  assert.equal(news.length, 1)
  const { message, 'trace-id': traceId, correlationId, reason, level } = news[0] as Line
  assert.deepEqual(
    { message, traceId, correlationId, reason, level },
    {
      message: 'ledger API request refused',
      traceId: refused.traceId,
      correlationId: refused.correlationId,
      reason: 'there is no bearer token',
      level: 'INFO',
    },
  )

  node.child.kill('SIGUSR2')
  // The signal is on its way; what the level lets through tells when it has come.
  let id: string | null = null
  await waitFor(async () => {
    const answer = await fetch(`${node.urls.scan}/v2/updates/none`)
    id = answer.headers.get('x-correlation-id')
    await answer.text()
    return log().some((line) => line.correlationId === id)
  }, 'debug lines come after the signal')
  const found = log().find((line) => line.correlationId === id)
  assert.equal(found?.level, 'DEBUG')
  assert.equal(found?.reason, 'Transaction with id none not found.')
  node.child.kill('SIGUSR2')
  await waitFor(async () => {
    const count = log().length
    await (await fetch(`${node.urls.scan}/v2/updates/none`)).text()
    await delay(20)
    return log().length === count
  }, 'the level goes back')
  assert.equal(await node.stop(), 0)
})

test('the level of the configuration holds', async (t) => {
  const directory = writeFiles(t, { 'v.yaml': 'annals:\n  logLevel: error\n' })
  const node = await startCommand(t, ['-f', 'v.yaml'], { cwd: directory })
  await (await fetch(`${node.urls.ledger}/v2/users`)).text()
  assert.equal(await node.stop(), 0)
  assert.equal(node.output.stderr, '')
})

test('failures of the store are found by the id in the answer, on both APIs', async (t) => {
  const postgres = await startPrivatePostgres(t)
  const { directory, args } = await configure(t, postgres.connection, {})
  const node = await startCommand(t, args, { cwd: directory })
  await postgres.kill()
  let scan = await fetch(`${node.urls.scan}/v2/updates/none`)
  await waitFor(async () => {
    scan = await fetch(`${node.urls.scan}/v2/updates/none`)
    return scan.status === 503
  }, 'the backends of the killed server are gone')
  const { error } = (await scan.json()) as { error: string }
  const [, id] = /in the log under ([0-9a-f-]{36})\.$/.exec(error) ?? []
  assert.equal(scan.headers.get('x-correlation-id'), id)
  const ledger = (await (await fetch(`${node.urls.ledger}/v2/users`)).json()) as Line
  assert.equal(ledger.code, 'INDEX_DB_SQL_TRANSIENT_ERROR')
  const logged = (wanted: unknown) =>
    readLog(node.output.stderr).find(({ correlationId }) => correlationId === wanted)
  await waitFor(
    () => logged(id) !== undefined && logged(ledger.correlationId) !== undefined,
    'both',
  )
  assert.equal(logged(id)?.level, 'WARN')
  assert.match(String(logged(id)?.reason), /PostgreSQL server does not answer|closed|terminated/)
  assert.equal(logged(ledger.correlationId)?.status, 503)
  await waitFor(
    () => /"a health check fails"/.test(node.output.stderr),
    'a failing check is told once',
  )
  assert.equal(await node.stop(), 0)
})

/** Files for a node on PostgreSQL; without a provider nobody needs a token. */
async function configure(
  t: Cleanup,
  connection: PostgresConnection,
  options: { jwksUrl?: string; secrets?: Record<string, string>; more?: string },
) {
  const admin = new pg.Client(connection)
  await admin.connect()
  await admin.query('create database participant_0')
  await admin.query('create database cantonnet_validator')
  await admin.end()
  const { host, port, user } = connection
  const persistence = (database: string, schema: string) =>
    `persistence:\n  host: ${host}\n  port: ${port}\n  user: ${user}\n  secretName: postgres-secrets\n  databaseName: ${database}\n  schema: ${schema}\n`
  const auth = (audience: string) =>
    options.jwksUrl === undefined
      ? 'disableAuth: true\n'
      : `auth:\n  ${audience}: ${AUDIENCE}\n  jwksUrl: ${options.jwksUrl}\n`
  const directory = writeFiles(t, {
    'v.yaml': `${persistence('cantonnet_validator', 'validator')}${auth('audience')}${options.more ?? ''}`,
    'p.yaml': `${persistence('participant_0', 'participant')}${auth('targetAudience')}`,
    'secrets/postgres-secrets/postgresPassword': 'unused-password\n',
    ...options.secrets,
  })
  const args = ['-f', 'v.yaml', '-p', 'p.yaml', '--secrets', 'secrets']
  return { directory, args }
}

/** A raw request, for what no client would send; resolves with all that comes back. */
function sendRaw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.setTimeout(2000, () => socket.destroy())
    socket.on('data', (chunk) => {
      answer += chunk
      if (answer.includes('\r\n\r\n')) socket.end()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

/** Puts a secret wherever a request has room for it; returns what came back, head and body. */
async function flood(urls: Urls, secret: string, admin: string): Promise<string[]> {
  const answers: string[] = []
  const ask = async (url: string, init: RequestInit = {}) => {
    const response = await fetch(url, init).catch((error: Error) => error)
    if (response instanceof Error) return
    answers.push(`${JSON.stringify([...response.headers])}\n${await response.text()}`)
  }
  const bases = [urls.scan, urls.ledger, urls.validator, new URL(urls.metrics).origin]
  for (const base of bases) {
    const paths = ['/v2/users', '/v1/updates', '/readyz', '/metrics', '/nothing']
    for (const path of paths) {
      for (const headers of [
        { authorization: `Bearer ${secret}` },
        { authorization: `Basic ${btoa(`user:${secret}`)}` },
        { authorization: secret },
        { 'proxy-authorization': `Bearer ${secret}` },
        { 'sec-websocket-protocol': `daml.ws.auth, jwt.token.${secret}` },
        { cookie: `session=${secret}` },
        { 'user-agent': secret, referer: `https://user:${secret}@host.example/`, 'x-key': secret },
        { traceparent: secret, 'content-type': secret, accept: secret },
      ]) {
        await ask(`${base}${path}`, { headers })
      }
      await ask(`${base}${path}?token=${secret}&access_token=${secret}&pageToken=${secret}`)
      const authorized = { method: 'POST', headers: { authorization: `Bearer ${admin}` } }
      for (const body of [
        JSON.stringify({ password: secret, token: secret, page_size: 1 }),
        `{"page_size": 1, "token": "${secret}`,
        `password=${secret}`,
      ]) {
        await ask(`${base}${path}`, { ...authorized, body })
      }
    }
    for (const raw of [
      `GET http://user:${secret}@host.example/readyz HTTP/1.1\r\nhost: a\r\n\r\n`,
      `GET /%zz?token=${secret} HTTP/1.1\r\nhost: a\r\n\r\n`,
      `NONSENSE ${secret}\r\n\r\n`,
      `GET / HTTP/1.1\r\nauthorization: Bearer ${secret}\r\nbroken header ${secret}\r\n\r\n`,
      `GET / HTTP/1.1\r\nhost: a\r\nauthorization: ${secret.repeat(200)}\r\n\r\n`,
    ]) {
      answers.push(await sendRaw(base, raw))
    }
  }
  return answers
}

/** As ids and data: the answer names what was asked for or stored, as the APIs say; the log must not. */
async function floodData(urls: Urls, secret: string, admin: string): Promise<void> {
  const headers = { authorization: `Bearer ${admin}` }
  const send = async (url: string, init: RequestInit = {}) =>
    (await fetch(url, { headers, ...init })).text()
  await send(`${urls.scan}/v2/updates/${secret}`)
  await send(`${urls.scan}/${secret}`)
  await send(`${urls.ledger}/${secret}`)
  await send(`${urls.ledger}/v2/users/${secret}`)
  await send(`${urls.ledger}/v2/users/${secret}/rights`, { method: 'POST', body: '{"rights":1}' })
  await send(`${urls.ledger}/v2/users?identity-provider-id=${secret}`)
  await send(`${urls.ledger}/v2/parties/${secret}`)
  await send(`${urls.ledger}/v2/idps/${secret}`)
  await send(`${urls.ledger}/v2/users`, {
    method: 'POST',
    body: JSON.stringify({ user: { id: secret, primaryParty: secret } }),
  })
  await send(`${urls.ledger}/v2/users`, {
    method: 'POST',
    body: JSON.stringify({ user: { id: 'u', metadata: { annotations: { token: secret } } } }),
  })
}

test('no token, secret or password leaves a node, wherever it was put', async (t) => {
  const postgres = await startPrivatePostgres(t)
  const key = await makeKey('k', 'RS256')
  const forger = await makeKey('k', 'RS256')
  const urlOf = await startKeySetServer(t, { jwks: [key.jwk] })
  const sign = (claims: object, by = key) =>
    new SignJWT({ sub: 'participant_admin', aud: AUDIENCE, ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'k' })
      .setExpirationTime('1h')
      .sign(by.privateKey)
  const admin = await sign({})
  const tokens = [
    admin,
    await sign({ sub: 'nobody' }),
    await sign({ aud: 'another' }),
    await sign({ sub: `a-user-${'x'.repeat(200)}` }),
    await sign({}, forger),
  ]
  const passwords = {
    postgres: 'postgres-hunter2-"quoted"',
    client: 'client-secret-hunter3',
    provider: 'provider-hunter4',
    hocon: 'hocon-hunter5',
    yaml: 'yaml-hunter6',
  }
  const authSecret = 'secrets/splice-app-validator-ledger-api-auth'
  const { directory, args } = await configure(t, postgres.connection, {
    jwksUrl: urlOf('jwks'),
    more: 'annals:\n  logLevel: trace\n',
    secrets: {
      'secrets/postgres-secrets/postgresPassword': passwords.postgres,
      [`${authSecret}/ledger-api-user`]: 'backend',
      [`${authSecret}/url`]: `${new URL(urlOf('jwks')).origin}/.well-known/openid-configuration`,
      [`${authSecret}/client-id`]: 'backend',
      [`${authSecret}/client-secret`]: passwords.client,
      [`${authSecret}/audience`]: AUDIENCE,
    },
  })
  const node = await startCommand(t, args, { cwd: directory })
  const answers: string[] = []
  for (const secret of [...tokens, passwords.client]) {
    answers.push(...(await flood(node.urls, secret, admin)))
    await floodData(node.urls, secret, admin)
  }

  // A provider whose address holds a password, and a token that makes the node ask there.
  const headers = { authorization: `Bearer ${admin}` }
  for (const jwksUrl of [
    `http://user:${passwords.provider}@127.0.0.1:1/jwks`,
    `http://127.0.0.1:1/jwks?key=${passwords.provider}`,
  ]) {
    const issuer = `https://issuer.example/${answers.length}`
    const id = `idp-${answers.length}`
    const body = JSON.stringify({
      identityProviderConfig: { identityProviderId: id, issuer, jwksUrl, isDeactivated: false },
    })
    await (await fetch(`${node.urls.ledger}/v2/idps`, { method: 'POST', headers, body })).text()
    const token = await sign({ iss: issuer, aud: undefined }, forger)
    tokens.push(token)
    const asked = await fetch(`${node.urls.ledger}/v2/users`, {
      headers: { authorization: `Bearer ${token}` },
    })
    answers.push(await asked.text())
  }
  await postgres.kill()
  answers.push(await (await fetch(`${node.urls.ledger}/v2/users/a`, { headers })).text())
  answers.push(await (await fetch(`${node.urls.scan}/v2/updates/none`)).text())
  writeFileSync(join(directory, 'v.yaml'), `persistence: {password: ${passwords.yaml}\n`)
  node.child.kill('SIGHUP')
  await waitFor(() => /Not reloaded/.test(node.output.stderr), 'a broken file is refused')
  const origin = new URL(node.urls.validator).origin
  for (const url of [node.urls.metrics, `${origin}/readyz`, `${node.urls.scan}/status`]) {
    answers.push(await (await fetch(url)).text())
  }
  assert.equal(await node.stop(), 0)

  const broken = await runCommand(['start'], {
    cwd: newDirectory(t),
    env: {
      ADDITIONAL_CONFIG_A: `canton.storage { password = "${passwords.hocon}", url = "postgres://user:${passwords.hocon}@host/db"`,
      ADDITIONAL_CONFIG_B: `canton.validator-apps.validator_backend.secret = "${passwords.hocon}`,
    },
  })
  assert.equal(broken.code, 2)
  const unreadable = await runCommand(['start', ...args], { cwd: directory })
  assert.equal(unreadable.code, 2)

  assert.ok(answers.length > 500, 'there was a flood')
  assert.ok(readLog(node.output.stderr).length > 100, 'it was told of')
  const places = {
    log: node.output.stderr + node.output.stdout,
    answers: answers.join('\n'),
    refusals: broken.stderr + broken.stdout + unreadable.stderr + unreadable.stdout,
  }
  const secrets = [
    ...Object.values(passwords).flatMap((text) => [text, encodeURIComponent(text)]),
    ...tokens.flatMap((token) => token.split('.').slice(1)),
  ]
  for (const [place, text] of Object.entries(places)) {
    for (const secret of secrets) {
      const at = text.indexOf(secret)
      assert.equal(at, -1, `${place}: ${text.slice(Math.max(0, at - 300), at + 60)}`)
    }
  }
})
