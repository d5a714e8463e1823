import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import {
  addTraceIds,
  LedgerError,
  ledgerErrorBody,
  ledgerErrorHandler,
  ledgerMethodNotAllowed,
  ledgerNotFoundHandler,
  traceIdOf,
} from './ledger-error.ts'

const TEN_KEYS = [
  'code',
  'cause',
  'correlationId',
  'traceId',
  'context',
  'resources',
  'errorCategory',
  'grpcCodeValue',
  'retryInfo',
  'definiteAnswer',
]
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const ids = { correlationId: 'c', traceId: 't' }

function build() {
  const log: string[] = []
  const app = Fastify({
    bodyLimit: 100,
    frameworkErrors: ledgerErrorHandler,
    logger: { level: 'info', stream: { write: (line: string) => void log.push(line) } },
  })
  app.setErrorHandler(ledgerErrorHandler)
  app.setNotFoundHandler(ledgerNotFoundHandler)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  addTraceIds(app)
  app.get('/things/:id', async () => ({}))
  app.post('/things/:id', async () => ({}))
  app.put('/things/:id', async () => {
    throw ledgerMethodNotAllowed(['GET', 'POST'])
  })
  app.get('/broken', async () => {
    throw new Error('the secret detail')
  })
  app.get('/away', async () => {
    throw Object.assign(new Error('gone'), { code: 'DatabaseUnavailable' })
  })
  app.get('/denied', async () => {
    const category = 'denied' as const
    throw new LedgerError({ code: 'X', category, cause: 'told to nobody', detail: 'the reason' })
  })
  return { app, log }
}

test('a ledger error body has ten keys in their order, and a category decides the rest', () => {
  const error = new LedgerError({ code: 'A', category: 'contention', cause: 'Again.' })
  const body = ledgerErrorBody(error, ids)
  assert.deepEqual(Object.keys(body), TEN_KEYS)
  assert.equal(body.errorCategory, 2)
  assert.equal(body.grpcCodeValue, 10)
  assert.equal(body.retryInfo, '1 second')
  assert.equal(error.status, 409)
})

test('a redacted body says nothing of the error but its ids', () => {
  const error = new LedgerError({
    code: 'SECRET',
    category: 'denied',
    cause: 'secret',
    context: { a: 'secret' },
    resources: [['USER', 'secret']],
    detail: 'secret',
  })
  const body = ledgerErrorBody(error, ids)
  assert.ok(!JSON.stringify(body).toLowerCase().includes('secret'))
  assert.equal(body.code, 'NA')
  assert.equal(body.errorCategory, -1)
  assert.equal(body.grpcCodeValue, 7)
})

test('long causes, context values and resources are cut', () => {
  const long = 'x'.repeat(10_000)
  const error = new LedgerError({
    code: 'A',
    category: 'invalid',
    cause: long,
    context: { long },
    resources: Array.from({ length: 100 }, () => ['USER', long] as [string, string]),
  })
  assert.ok(JSON.stringify(ledgerErrorBody(error, ids)).length < 4096)
})

test('a traceparent gives the trace id, and anything else a new one', () => {
  assert.equal(traceIdOf(`00-${TRACE}-b7ad6b7169203331-01`), TRACE)
  for (const bad of [
    undefined,
    '',
    'x',
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `ff-${TRACE}-b7ad6b7169203331-01`,
    `00-${TRACE.toUpperCase()}-b7ad6b7169203331-01`,
    ['a', 'b'],
  ]) {
    assert.match(traceIdOf(bad), /^[0-9a-f]{32}$/)
    assert.notEqual(traceIdOf(bad), TRACE)
  }
})

test('a path that leads nowhere has the trace id of the client too', async () => {
  const { app } = build()
  const headers = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` }
  for (const url of ['/nothing', '/things/%zz']) {
    const answer = await app.inject({ url, headers })
    assert.equal(answer.json().traceId, TRACE)
    assert.match(String(answer.headers.traceparent), new RegExp(TRACE))
  }
})

test('the trace id of the client is in the body, in the response header and in the log', async () => {
  const { app, log } = build()
  const headers = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` }
  const answer = await app.inject({ url: '/denied', headers })
  assert.equal(answer.json().traceId, TRACE)
  assert.match(String(answer.headers.traceparent), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
  const line = log.find((entry) => entry.includes(answer.json().correlationId))
  assert.ok(line?.includes('the reason') && line.includes(TRACE), 'the operator finds the reason')
  const fine = await app.inject({ url: '/things/1', headers })
  assert.match(String(fine.headers.traceparent), new RegExp(TRACE))
})

const conditions: [string, string, { method?: string; payload?: string }, number, string][] = [
  ['an unknown path', '/nothing', {}, 404, 'NOT_FOUND'],
  ['a known path with another method', '/things/1', { method: 'PUT' }, 405, 'METHOD_NOT_ALLOWED'],
  ['a path that cannot be decoded', '/things/%zz', {}, 400, 'INVALID_ARGUMENT'],
  ['a path that is too long', `/things/${'x'.repeat(5000)}`, {}, 414, 'INVALID_ARGUMENT'],
  [
    'a body that is too large',
    '/things/1',
    { method: 'POST', payload: 'x'.repeat(101) },
    413,
    'REQUEST_TOO_LARGE',
  ],
  ['a failure inside', '/broken', {}, 500, 'NA'],
  ['a database that is away', '/away', {}, 503, 'INDEX_DB_SQL_TRANSIENT_ERROR'],
  ['a refusal', '/denied', {}, 403, 'NA'],
]
for (const [name, url, options, status, code] of conditions) {
  test(`${name} is answered ${status} with the ledger error body`, async () => {
    const { app } = build()
    const answer = await app.inject({ url, ...(options as { method?: 'PUT' }) })
    assert.equal(answer.statusCode, status, answer.body)
    assert.deepEqual(Object.keys(answer.json()), TEN_KEYS)
    assert.equal(answer.json().code, code)
    assert.ok(!answer.body.includes('secret'))
  })
}

test('a 405 names the methods that the path takes', async () => {
  const { app } = build()
  const answer = await app.inject({ method: 'PUT', url: '/things/1' })
  assert.equal(answer.headers.allow, 'GET, POST')
})

test('a failure inside is logged with its stack under the correlation id', async () => {
  const { app, log } = build()
  const answer = await app.inject({ url: '/broken' })
  const line = log.find((entry) => entry.includes(answer.json().correlationId))
  assert.ok(line?.includes('the secret detail'))
})
