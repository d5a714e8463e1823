import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { exportJWK, generateKeyPair } from 'jose'
import pg from 'pg'
import { createLogs } from '../src/base/log.ts'
import type { NodeConfig } from '../src/config/node-config.ts'
import { migrate, readMigrations } from '../src/db/migrate.ts'
import { openDb } from '../src/db/open.ts'
import type { PostgresConnection } from '../src/db/postgres-client.ts'
import { isStalled, STALLED_AFTER_MS, writerCheck } from '../src/health/writer-check.ts'
import { prepareLine } from '../src/history/encode.ts'
import { openHistory } from '../src/history/history.ts'
import { startNode } from '../src/node.ts'
import { type Cleanup, forEachEngine } from './support/engines.ts'
import { startTestNode, testConfig } from './support/node.ts'
import { startPrivatePostgres } from './support/postgres-supervised.ts'
import { plainLines } from './support/sample-items.ts'

/** Far above what any of these waits takes. */
const PATIENCE_MS = 30_000
/** "Within a few seconds": the silence is noticed after two, and the question after it takes two more. */
const ANSWER_MS_MAX = 6_000

type Answer = { status: number; text: string; ms: number }

async function ask(url: string, init: RequestInit = {}): Promise<Answer> {
  const startedAt = performance.now()
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) })
  const text = await response.text()
  return { status: response.status, text, ms: performance.now() - startedAt }
}

async function waitForStatus(url: string, status: number): Promise<Answer> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const answer = await ask(url)
    if (answer.status === status) return answer
    assert.ok(performance.now() < deadline, `${url} answers ${status}, not: ${answer.text}`)
    await delay(50)
  }
}

/** Both databases on one server, and nobody needs a token. */
function onPostgres(t: Cleanup, connection: PostgresConnection): Partial<NodeConfig> {
  const databaseIn = (schema: string) =>
    testConfig(t, { target: { engine: 'postgres', connection, schema } }).databases.app
  const { auth } = testConfig(t)
  return {
    databases: { app: databaseIn('annals_app'), participant: databaseIn('annals_participant') },
    auth: { ...auth, disabled: true },
  }
}

/** A page that no cache holds, a lookup, and the users: each needs the database. */
async function askApis(urls: { scan: string; ledger: string }): Promise<Answer[]> {
  return Promise.all([
    ask(`${urls.scan}/v2/updates/no-such-update`),
    ask(`${urls.scan}/v0/updates`, { method: 'POST', body: '{"page_size":40}' }),
    ask(`${urls.ledger}/v2/users`),
  ])
}

function assertAway([lookup, page, users]: Answer[]): void {
  for (const answer of [lookup, page]) {
    assert.equal(answer?.status, 503, answer?.text)
    assert.match(JSON.parse(answer?.text ?? '').error, /database does not answer at the moment/)
  }
  assert.equal(users?.status, 503, users?.text)
  const { code, cause, retryInfo } = JSON.parse(users?.text ?? '')
  assert.equal(code, 'INDEX_DB_SQL_TRANSIENT_ERROR')
  assert.match(cause, /database of this node does not answer/)
  assert.equal(retryInfo, '1 second')
}

test('the health of a node needs no token, on all its ports', async (t) => {
  const { urls } = await startTestNode(t)
  const health = new URL(urls.validator).origin
  for (const url of [health, urls.validator, urls.scan]) {
    assert.deepEqual(
      [(await ask(`${url}/readyz`)).text, (await ask(`${url}/livez`)).text],
      ['The node is ready.\n', 'The process runs.\n'],
    )
  }
  for (const [url, id] of [
    [urls.validator, 'validator'],
    [urls.scan, 'scan'],
  ]) {
    assert.match((await ask(`${url}/version`)).text, /^\{"version":"\d[^"]*","commit_ts":"20/)
    const { success } = JSON.parse((await ask(`${url}/status`)).text)
    assert.equal(success.id, id)
    assert.equal(success.active, true)
    assert.match(success.uptime, /^PT\d+\.\d{3}S$/)
    assert.deepEqual(Object.keys(success.ports).sort(), ['ledger', 'metrics', 'scan', 'validator'])
  }
  assert.equal((await ask(`${urls.ledger}/livez`)).status, 200)
  assert.equal((await ask(`${urls.ledger}/readyz`)).status, 401)
})

for (const { harm, heal } of [
  { harm: 'pause', heal: 'resume' },
  { harm: 'kill', heal: 'start' },
] as const) {
  test(`a node whose PostgreSQL is gone (${harm}) says so, refuses at once, and recovers by itself`, async (t) => {
    const postgres = await startPrivatePostgres(t)
    const { urls } = await startTestNode(t, {
      config: onPostgres(t, postgres.connection),
      empty: false,
    })
    const readyz = `${new URL(urls.validator).origin}/readyz`
    assert.equal((await ask(readyz)).status, 200)
    await postgres[harm]()
    const [answers, probes] = await Promise.all([
      askApis(urls),
      Promise.all(Array.from({ length: 20 }, () => ask(readyz))),
    ])
    assertAway(answers)
    for (const { ms } of answers) assert.ok(ms < ANSWER_MS_MAX, `it took ${ms} ms`)
    for (const { ms } of probes) assert.ok(ms < 1000, `a probe took ${ms} ms`)
    const { text } = await waitForStatus(readyz, 503)
    assert.match(text, /app database: .+ \(since \d{4}-/)
    const failing = async () => (await ask(`${urls.scan}/readyz`)).text
    for (const name of ['participant database', 'app schema', 'history writer']) {
      const deadline = performance.now() + PATIENCE_MS
      while (!(await failing()).includes(`${name}: `)) {
        assert.ok(performance.now() < deadline, `${name} fails`)
        await delay(50)
      }
    }
    assertAway(await askApis(urls))
    assert.equal((await ask(`${urls.scan}/livez`)).status, 200)
    const { text: page } = await ask(urls.metrics)
    assert.match(page, /^daml_health_status\{component="scan"\} 0$/m)
    assert.match(page, /^annals_health_check_status\{check="app database"\} 0$/m)
    assert.match(page, /^annals_health_check_status\{check="disk space"\} 1$/m)
    await postgres[heal]()
    await waitForStatus(readyz, 200)
    const [lookup, whole, users] = await askApis(urls)
    assert.deepEqual([lookup?.status, whole?.status, users?.status], [404, 200, 200])
    assert.match((await ask(urls.metrics)).text, /check="history writer"\} 1$/m)
  })
}

test('a node is not ready while it starts and while it stops, and says which', async (t) => {
  const postgres = await startPrivatePostgres(t)
  const port = await freePort()
  const config = testConfig(t, { config: onPostgres(t, postgres.connection) })
  const { listen } = config
  await postgres.pause()
  const starting = startNode({
    config: { ...config, listen: { ...listen, ports: { ...listen.ports, validator: port } } },
    logs: createLogs({ level: 'silent', pretty: false }),
    empty: true,
  })
  starting.catch(() => {})
  const origin = `http://127.0.0.1:${port}`
  while (!(await isOpen(`${origin}/livez`))) await delay(10)
  assert.match((await waitForStatus(`${origin}/readyz`, 503)).text, /node: The node is starting\./)
  assert.equal((await ask(`${origin}/api/validator/livez`)).status, 200)
  await postgres.resume()
  const node = await starting
  t.after(() => node.close())
  assert.equal((await ask(`${origin}/readyz`)).status, 200)

  // A request that is under way keeps the scan port open; meanwhile the health port tells.
  await node.history.append(plainLines(60).map(prepareLine))
  const client = new pg.Client(postgres.connection)
  await client.connect()
  await client.query('begin; lock table annals_app.update_key in access exclusive mode')
  const held = ask(`${node.urls.scan}/v2/updates/no-such-update`)
  while (!/getUpdateByIdV2"\} 1$/m.test((await ask(`${origin}/metrics`)).text)) await delay(20)
  const closing = node.close()
  assert.match((await waitForStatus(`${origin}/readyz`, 503)).text, /node: The node is stopping\./)
  await client.query('rollback')
  await client.end()
  assert.equal((await held).status, 404)
  await closing
  await assert.rejects(ask(`${origin}/readyz`))
})

test('a node with a provider is ready only when it has the keys', async (t) => {
  const port = await freePort()
  const config = testConfig(t)
  const { urls } = await startTestNode(t, {
    config: {
      auth: {
        ...config.auth,
        participant: {
          jwksUrl: `http://127.0.0.1:${port}/jwks?client=not-for-the-page`,
          targetAudience: 'https://ledger.acme.example',
        },
      },
    },
  })
  const { text } = await waitForStatus(`${urls.scan}/readyz`, 503)
  assert.match(text, /key set: The keys at 127\.0\.0\.1:\d+ are not known \(ECONNREFUSED\)/)
  assert.doesNotMatch(text, /not-for-the-page/)
  assert.match((await ask(urls.metrics)).text, /^annals_key_set_age_seconds\S* NaN$/m)
  const server = await serveKeys(t, port)
  await waitForStatus(`${urls.scan}/readyz`, 200)
  const { text: page } = await ask(urls.metrics)
  assert.match(page, /^annals_key_set_fetches_total\{.*outcome="success"\} 1$/m)
  assert.match(page, /^daml_http_client_requests_duration_seconds_count\{.*status_code="200"\} 1$/m)
  assert.match(page, /^annals_key_set_age_seconds\S* \d/m)
  // Known keys go on serving without the provider, so the node stays ready.
  server.closeAllConnections()
  server.close()
  await delay(0)
  assert.equal((await ask(`${urls.scan}/readyz`)).status, 200)
})

forEachEngine((engine) => {
  test(`${engine.name}: a schema that another version has changed is noticed`, async (t) => {
    const target = await engine.newTarget(t)
    const node = await startTestNode(t, { target })
    const { db } = node.history
    const change = (number: number) =>
      db.execute(
        'insert into schema_migrations (number, name, checksum, applied_at) values (?, ?, ?, ?)',
        [number, '9999-later', 'x', ''],
      )
    const [{ count } = { count: 0 }] = await db.query<{ count: number }>(
      'select count(*) as count from schema_migrations',
    )
    await change(Number(count) + 1)
    const { text } = await waitForStatus(`${node.urls.scan}/readyz`, 503)
    assert.match(text, /app schema: The database has the schema of a newer version/)
    await db.execute("delete from schema_migrations where name = '9999-later'")
    await waitForStatus(`${node.urls.scan}/readyz`, 200)
    await db.execute('delete from schema_migrations')
    const older = await waitForStatus(`${node.urls.scan}/readyz`, 503)
    assert.match(older.text, /app schema: The schema of the database is older .* Restart this node/)
  })
})

test('a writer whose append waits for a lock of the database counts as stalled', async (t) => {
  const postgres = await startPrivatePostgres(t)
  const { connection } = postgres
  const db = await openDb({ engine: 'postgres', connection, schema: 'annals_app' })
  t.after(() => db.close())
  await migrate(db, await readMigrations('app'))
  const history = await openHistory({ db, cacheBytes: 1_000_000 })
  let now = () => performance.now()
  const writer = {
    appendingSince: () => history.appendingSince,
    place: () => 'held' as const,
    now: () => now(),
  }
  const check = writerCheck(writer)
  const client = new pg.Client(postgres.connection)
  await client.connect()
  await client.query('begin; lock table annals_app.history in access exclusive mode')
  const appended = history.append(plainLines(60).map(prepareLine))
  while (history.appendingSince === undefined) await delay(5)
  assert.equal(await check.run(), undefined)
  now = () => performance.now() + STALLED_AFTER_MS
  assert.equal(isStalled(writer), true)
  assert.match(String(await check.run()), /no progress for 30 seconds; look for a lock/)
  await client.query('rollback')
  await client.end()
  await appended
  assert.equal(history.appendingSince, undefined)
  assert.equal(await check.run(), undefined)
})

test('a writer that has lost its place says whether another took it', async () => {
  let place: 'held' | 'lost' | 'taken' = 'lost'
  const check = writerCheck({ appendingSince: () => undefined, place: () => place })
  assert.match(String(await check.run()), /claimed again as soon as the database answers/)
  place = 'taken'
  assert.match(String(await check.run()), /Another node has become the writer/)
})

async function serveKeys(t: Cleanup, port: number): Promise<Server> {
  const { publicKey } = await generateKeyPair('ES256')
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'a' }]
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys })))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.after(() => void server.close())
  return server
}

async function isOpen(url: string): Promise<boolean> {
  try {
    await ask(url)
    return true
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
