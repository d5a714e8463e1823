import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { createSimulatedClock } from '../base/clock.ts'
import { addTraceIds, ledgerErrorHandler } from '../http/ledger-error.ts'
import { authenticationOff } from '../users/caller.ts'
import { timeRoutes } from './time-routes.ts'

const START = '2026-01-01T00:00:00.000000Z'

async function openTime() {
  const app = Fastify()
  app.setErrorHandler(ledgerErrorHandler)
  addTraceIds(app)
  const clock = createSimulatedClock(BigInt(Date.parse(START)) * 1000n)
  await timeRoutes(app, { clock, authentication: authenticationOff })
  return async (remoteAddress: string, payload?: object, headers = {}) => {
    const method = payload === undefined ? 'GET' : 'POST'
    const answer = await app.inject({
      method,
      url: '/v2/time',
      remoteAddress,
      headers: { 'content-type': 'text/plain', ...headers },
      ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }),
    })
    return { status: answer.statusCode, body: answer.json() as Record<string, unknown> }
  }
}

test('time is told and driven from this machine only, whatever a header says', async () => {
  const ask = await openTime()
  for (const address of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1']) {
    assert.equal((await ask(address)).status, 200, address)
  }
  const forged = { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1' }
  for (const address of ['192.0.2.7', '10.0.0.1', '::ffff:192.0.2.7', '2001:db8::1', '::2']) {
    for (const answer of [
      await ask(address, undefined, forged),
      await ask(address, { advance: '48h' }, forged),
    ]) {
      assert.deepEqual([answer.status, answer.body.code], [403, 'NA'], address)
    }
  }
  assert.deepEqual((await ask('127.0.0.1')).body, { now: START })
})

test('time goes forward by a duration or to an instant, and never back', async () => {
  const ask = await openTime()
  const set = async (body: object) => (await ask('::1', body)).body.now
  assert.equal(await set({ advance: '48h' }), '2026-01-03T00:00:00.000000Z')
  assert.equal(await set({ advance: '250ms' }), '2026-01-03T00:00:00.250000Z')
  assert.equal(await set({ set: '2026-02-01T00:00:00Z' }), '2026-02-01T00:00:00.000000Z')
  const wrong = [
    {},
    { advance: '2 days' },
    { advance: '-1h' },
    { set: 'noon' },
    { set: START },
    { set: '9999-01-01T00:00:00Z' },
    { advance: '999999999d' },
    { advance: '1h', set: '2027-01-01T00:00:00Z' },
  ]
  for (const body of wrong) {
    const answer = await ask('::1', body)
    assert.deepEqual([answer.status, answer.body.code], [400, 'INVALID_ARGUMENT'])
  }
  assert.equal((await ask('::1')).body.now, '2026-02-01T00:00:00.000000Z')
})
