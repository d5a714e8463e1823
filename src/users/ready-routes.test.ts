import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { Failure } from '../health/checks.ts'
import { addTraceIds, ledgerErrorHandler } from '../http/ledger-error.ts'
import { type Authentication, authenticationOff } from './caller.ts'
import { unauthenticated } from './errors.ts'
import { readyRoutes } from './ready-routes.ts'

const refusing: Authentication = {
  authenticate: async () => {
    throw unauthenticated('no token')
  },
  forget: () => {},
}

async function build(authentication: Authentication, failures: Failure[]) {
  const app = Fastify()
  app.setErrorHandler(ledgerErrorHandler)
  addTraceIds(app)
  const health = { verdict: () => ({ ready: failures.length === 0, failures }) }
  await readyRoutes(app, { authentication, health })
  return app
}

test('a ready node answers with a JSON string, or with text for who asks for it', async () => {
  const app = await build(authenticationOff, [])
  const json = await app.inject('/readyz')
  assert.equal(json.statusCode, 200)
  assert.equal(typeof json.json(), 'string')
  const text = await app.inject({ url: '/readyz', headers: { accept: 'text/plain' } })
  assert.match(String(text.headers['content-type']), /^text\/plain/)
  assert.equal(text.body, 'The node is ready.\n')
  const both = await app.inject({
    url: '/readyz',
    headers: { accept: 'text/plain, application/json' },
  })
  assert.match(String(both.headers['content-type']), /^application\/json/)
})

test('a node that is not ready names the failing check in the ledger error body', async () => {
  const app = await build(authenticationOff, [
    { name: 'database', reason: 'It does not answer.', since: new Date(0) },
  ])
  const answer = await app.inject('/readyz')
  assert.equal(answer.statusCode, 503)
  assert.equal(answer.json().code, 'SERVICE_NOT_RUNNING')
  assert.equal(answer.json().retryInfo, '1 second')
  assert.match(answer.json().cause, /database: It does not answer\./)
  assert.equal(Object.keys(answer.json()).length, 10)
})

test('readiness asks for a token, liveness does not', async () => {
  const app = await build(refusing, [])
  assert.equal((await app.inject('/readyz')).statusCode, 401)
  assert.equal((await app.inject('/livez')).statusCode, 200)
})
