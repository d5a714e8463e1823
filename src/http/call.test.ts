import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { callOwnRoutes, callRemote, NoAnswer } from './call.ts'

async function startApi(t: { after(clean: () => Promise<void>): void }) {
  const app = Fastify()
  app.post('/echo', async (request, reply) =>
    reply.code(201).send({ body: request.body, token: request.headers.authorization ?? '' }),
  )
  app.get('/never', () => new Promise(() => {}))
  app.get('/away', (_request, reply) => reply.redirect('/echo'))
  const url = await app.listen({ port: 0 })
  t.after(async () => {
    app.server.closeAllConnections()
    await app.close()
  })
  return { app, url }
}

test('own routes and remote ones answer alike', async (t) => {
  const { app, url } = await startApi(t)
  for (const call of [callOwnRoutes(app), callRemote(fetch, `${url}/`)]) {
    const answer = await call({
      method: 'POST',
      path: '/echo',
      headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
      body: '{"a":1}',
    })
    const { status, body } = answer
    assert.deepEqual({ status, body }, { status: 201, body: '{"body":{"a":1},"token":"Bearer x"}' })
    assert.equal((await call({ method: 'GET', path: '/nothing' })).status, 404)
    const stop = new AbortController()
    const waiting = call({ method: 'GET', path: '/never', signal: stop.signal })
    setImmediate(() => stop.abort(new Error('enough')))
    await assert.rejects(waiting, /enough/)
    const { signal } = stop
    await assert.rejects(async () => call({ method: 'GET', path: '/echo', signal }), /enough/)
  }
})

test('a server that is not there, or sends elsewhere, has given no answer', async (t) => {
  const { app, url } = await startApi(t)
  const call = callRemote(fetch, url)
  await assert.rejects(call({ method: 'GET', path: '/away' }), NoAnswer)
  await app.close()
  await assert.rejects(call({ method: 'GET', path: '/echo' }), {
    name: 'NoAnswer',
    message: /^http:\/\/.* does not answer \(ECONNREFUSED\)\.$/,
  })
})
