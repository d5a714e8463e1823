import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { makeCertificate } from './support/certificates.ts'
import type { Cleanup } from './support/engines.ts'
import { newDirectory, post } from './support/node.ts'
import { FREE_PORTS, runCommand, startCommand } from './support/node-process.ts'
import { startOidcServer } from './support/oidc.ts'
import { startPrivatePostgres } from './support/postgres-supervised.ts'

const EXAMPLE = new URL('../examples/history.ndjson', import.meta.url).pathname

/** A directory with files of the given texts; returns their paths. */
function writeFiles(t: Cleanup, files: Record<string, string>) {
  const directory = newDirectory(t)
  const paths: Record<string, string> = {}
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
    paths[name] = path
  }
  return { directory, path: (name: string) => paths[name] as string }
}

async function waitFor(condition: () => boolean): Promise<void> {
  for (let attempt = 0; !condition(); attempt += 1) {
    assert.ok(attempt < 500, 'the condition comes true')
    await delay(20)
  }
}

test('a node has what its values file says, and flags win over it', async (t) => {
  const files = writeFiles(t, {
    'v.yaml': 'annals:\n  dataDir: ./here\n  scan:\n    maxPageSize: 50\n',
  })
  const node = await startCommand(t, ['-f', files.path('v.yaml')], { cwd: files.directory })
  assert.ok(existsSync(join(files.directory, 'here', 'app.sqlite')))
  const refused = await post(`${node.urls.scan}/v1/updates`, { page_size: 51 })
  assert.equal(refused.status, 400)
  assert.match((refused.body as { error: string }).error, /page_size must not exceed .* 50/)
  assert.equal((await post(`${node.urls.scan}/v1/updates`, { page_size: 50 })).status, 200)
  assert.equal(await node.stop(), 0)
  const other = await startCommand(t, ['-f', files.path('v.yaml'), '--data', './there'], {
    cwd: files.directory,
  })
  assert.ok(existsSync(join(files.directory, 'there', 'app.sqlite')))
  assert.equal(await other.stop(), 0)
})

test('a typo ends the start with exit code 2, its line and a hint, and nothing is written', async (t) => {
  const files = writeFiles(t, { 'v.yaml': 'annals:\n  dataDirr: ./here\n' })
  const { code, stderr } = await runCommand(['start', '-f', files.path('v.yaml')], {
    cwd: files.directory,
  })
  assert.equal(code, 2)
  assert.match(stderr, /v\.yaml:2:3[\s\S]*dataDirr[\s\S]*dataDir/)
  assert.equal(existsSync(join(files.directory, 'annals-data')), false)
})

test('no setting of the automations is said to have no effect', async (t) => {
  const files = writeFiles(t, {
    'v.yaml':
      'contactPoint: ops@acme.example\ntopup:\n  targetThroughput: 20000\n  minTopupInterval: 1m\n',
  })
  const node = await startCommand(t, ['-f', files.path('v.yaml')], { cwd: files.directory })
  assert.doesNotMatch(node.output.stderr, /has no effect/)
})

test('a participant database of another migration, hint or identifier is refused with a sentence', async (t) => {
  const files = writeFiles(t, {
    'first.yaml': 'validatorPartyHint: acme-validator-1\nnodeIdentifier: acme-validator-1\n',
    'hint.yaml': 'validatorPartyHint: acme-validator-2\nnodeIdentifier: acme-validator-1\n',
    'identifier.yaml': 'validatorPartyHint: acme-validator-1\nnodeIdentifier: acme-node-1\n',
  })
  const start = (name: string) => ['-f', files.path(name)]
  const node = await startCommand(t, start('first.yaml'), { cwd: files.directory })
  assert.equal(await node.stop(), 0)
  for (const [name, message] of [
    ['hint.yaml', /validatorPartyHint is acme-validator-2, but .* acme-validator-1/],
    ['identifier.yaml', /nodeIdentifier is acme-node-1, but .* acme-validator-1/],
  ] as const) {
    const { code, stderr } = await runCommand(['start', ...FREE_PORTS, ...start(name)], {
      cwd: files.directory,
    })
    assert.equal(code, 1)
    assert.match(stderr, message)
  }
  const again = await startCommand(t, start('first.yaml'), { cwd: files.directory })
  assert.equal(await again.stop(), 0)
})

test('both databases live in PostgreSQL when the values say so, with the password from the secret', async (t) => {
  const server = await startPrivatePostgres(t)
  const { host, port, user } = server.connection
  const admin = new pg.Client(server.connection)
  await admin.connect()
  await admin.query('create database participant_0')
  await admin.query('create database cantonnet_validator')
  await admin.end()
  const persistence = `persistence:\n  host: ${host}\n  port: ${port}\n  user: ${user}\n  secretName: postgres-secrets\n`
  const files = writeFiles(t, {
    'v.yaml': `${persistence}  databaseName: cantonnet_validator\n  schema: validator\n`,
    'p.yaml': `${persistence}  databaseName: participant_0\n  schema: participant\n`,
    'secrets/postgres-secrets/postgresPassword': 'correct-horse-battery-staple\n',
  })
  const sources = [
    '-f',
    files.path('v.yaml'),
    '-p',
    files.path('p.yaml'),
    '--secrets',
    join(files.directory, 'secrets'),
  ]
  const around = { cwd: files.directory }
  const imported = await runCommand(['import', ...sources, EXAMPLE], around)
  assert.match(imported.stdout, /Stored 315 updates/, imported.stderr)
  const node = await startCommand(t, sources, around)
  const page = await post(`${node.urls.scan}/v1/updates`, { page_size: 400 })
  assert.equal((page.body as { transactions: object[] }).transactions.length, 315)
  const running = await runCommand(['verify', ...sources, '--data', './elsewhere'], around)
  assert.match(running.stderr, /A node runs on this database/)
  assert.equal(await node.stop(), 0)
  assert.doesNotMatch(node.output.stderr, /correct-horse/)
  const verified = await runCommand(['verify', ...sources], around)
  assert.match(verified.stdout, /sound: 315 updates/, verified.stderr)
  const exported = await runCommand(['export', ...sources], around)
  assert.equal(exported.stdout.trimEnd().split('\n').length, 315)
})

test('a database that is not there, or not ours, is a sentence', async (t) => {
  const server = await startPrivatePostgres(t)
  const { host, port, user } = server.connection
  const start = (database: string, at: number | undefined) => {
    const persistence = `persistence:\n  host: ${host}\n  port: ${at}\n  user: ${user}\n  databaseName: ${database}\n`
    const files = writeFiles(t, { 'v.yaml': `${persistence}  schema: validator\n` })
    return runCommand(['start', ...FREE_PORTS, '-f', files.path('v.yaml')], {
      cwd: files.directory,
    })
  }
  const missing = await start('no_such_database', port)
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /no_such_database on .* does not exist\. Create it: createdb/)
  assert.doesNotMatch(missing.stderr, /\n {4}at /)
  const away = await start('no_such_database', 1)
  assert.equal(away.code, 1)
  assert.match(away.stderr, /cannot be reached/)
  assert.doesNotMatch(away.stderr, /\n {4}at /)
})

test('a configured provider makes the tokens, through the proxy, and the node key is off', async (t) => {
  const AUDIENCE = 'https://ledger.acme.example'
  const oidc = await startOidcServer(t, { clientId: 'backend', audience: AUDIENCE })
  const tunnels: string[] = []
  const proxy = createServer()
  proxy.on('connect', (incoming, client) => {
    tunnels.push(incoming.url ?? '')
    const [host, port] = (incoming.url ?? '').split(':')
    const target = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      target.pipe(client).pipe(target)
    })
    target.on('error', () => client.destroy())
    client.on('error', () => target.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.after(() => void proxy.close())
  const options = `additionalJvmOptions: -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=${(proxy.address() as AddressInfo).port}\n`
  const files = writeFiles(t, {
    'v.yaml': `${options}auth:\n  audience: https://validator.acme.example\n  jwksUrl: ${oidc.jwksUrl}\n`,
    'p.yaml': `${options}auth:\n  targetAudience: ${AUDIENCE}\n  jwksUrl: ${oidc.jwksUrl}\n`,
    'secrets/splice-app-validator-ledger-api-auth/ledger-api-user': 'backend',
    'secrets/splice-app-validator-ledger-api-auth/url': `${oidc.issuer}/.well-known/openid-configuration`,
    'secrets/splice-app-validator-ledger-api-auth/client-id': 'backend',
    'secrets/splice-app-validator-ledger-api-auth/client-secret': 'not-for-the-log',
    'secrets/splice-app-validator-ledger-api-auth/audience': AUDIENCE,
  })
  const sources = [
    '-f',
    files.path('v.yaml'),
    '-p',
    files.path('p.yaml'),
    '--secrets',
    join(files.directory, 'secrets'),
  ]
  const node = await startCommand(t, sources, { cwd: files.directory })
  const token = await oidc.token()
  const answer = await fetch(`${node.urls.ledger}/v2/authenticated-user`, {
    headers: { authorization: `Bearer ${token}` },
  })
  assert.equal(answer.status, 200, await answer.text())
  assert.deepEqual([...new Set(tunnels)], [new URL(oidc.jwksUrl).host])
  const own = await runCommand(['token', ...sources], { cwd: files.directory })
  assert.equal(own.code, 1)
  assert.match(own.stderr, /takes its tokens from/)
  assert.doesNotMatch(node.output.stderr + own.stderr, /not-for-the-log/)
})

test('disableAuth in both files opens the API and is shouted about', async (t) => {
  const files = writeFiles(t, { 'v.yaml': 'disableAuth: true\n', 'p.yaml': 'disableAuth: true\n' })
  const node = await startCommand(t, ['-f', files.path('v.yaml'), '-p', files.path('p.yaml')], {
    cwd: files.directory,
  })
  assert.equal((await fetch(`${node.urls.ledger}/v2/users`)).status, 200)
  assert.match(node.output.stderr, /AUTHENTICATION IS OFF/)
  const one = await runCommand(['start', '-f', files.path('v.yaml')], { cwd: files.directory })
  assert.equal(one.code, 2)
  assert.match(one.stderr, /disableAuth/)
})

test('the ledger API speaks mutual TLS from the configured files', async (t) => {
  const authority = makeCertificate({ name: 'authority', isAuthority: true })
  const server = makeCertificate({ name: 'server', issuer: authority })
  const client = makeCertificate({ name: 'client', issuer: authority })
  const files = writeFiles(t, {
    'ca.pem': authority.cert,
    'tls.crt': server.cert,
    'tls.key': server.key,
    'c.crt': client.cert,
    'c.key': client.key,
  })
  const tls = {
    'cert-chain-file': files.path('tls.crt'),
    'private-key-file': files.path('tls.key'),
    'trust-collection-file': files.path('ca.pem'),
    'minimum-server-protocol-version': 'TLSv1.3',
    'client-auth': {
      type: 'require',
      'admin-client': {
        'cert-chain-file': files.path('c.crt'),
        'private-key-file': files.path('c.key'),
      },
    },
  }
  const env = {
    ADDITIONAL_CONFIG_TLS: `canton.participants.participant.ledger-api.tls = ${JSON.stringify(tls)}`,
  }
  const node = await startCommand(t, [], { cwd: files.directory, env })
  assert.match(node.urls.ledger, /^https:/)
  const ask = (options: object) =>
    new Promise<number>((resolve, reject) => {
      request(
        `${node.urls.ledger}/v2/version`,
        { ca: authority.cert, agent: false, ...options },
        (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        },
      )
        .on('error', reject)
        .end()
    })
  assert.equal(await ask({ cert: client.cert, key: client.key }), 200)
  await assert.rejects(ask({}))
  await assert.rejects(ask({ cert: client.cert, key: client.key, maxVersion: 'TLSv1.2' }))
  writeFileSync(files.path('tls.key'), client.key)
  const bad = await runCommand(['start', '--data', './other'], { cwd: files.directory, env })
  assert.equal(bad.code, 2)
  assert.match(bad.stderr, /tls\.key/)
})

test('SIGHUP takes over the log level and says what needs a restart', async (t) => {
  const files = writeFiles(t, { 'v.yaml': 'annals:\n  logLevel: error\n' })
  const node = await startCommand(t, ['-f', files.path('v.yaml')], { cwd: files.directory })
  writeFileSync(files.path('v.yaml'), 'annals:\n  logLevel: debug\n  scan:\n    maxPageSize: 7\n')
  node.child.kill('SIGHUP')
  await waitFor(() => /need a restart: .*scan/.test(node.output.stderr))
  assert.match(node.output.stderr, /Reloaded: log level/)
  writeFileSync(files.path('v.yaml'), 'annals: [\n')
  node.child.kill('SIGHUP')
  await waitFor(() => /Not reloaded/.test(node.output.stderr))
  assert.equal((await fetch(`${node.urls.scan}/livez`)).status, 200)
  assert.equal(await node.stop(), 0)
})
