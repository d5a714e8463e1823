import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { methodNotAllowed, plainErrors } from './plain-error.ts'
import { closeServer, createServer, listen, registerRoutes } from './server.ts'

async function serve(
  t: TestContext,
  routes: (scope: FastifyInstance) => void,
  options: { bodyBytesMax?: number } = {},
): Promise<{ app: FastifyInstance; url: string }> {
  const app = createServer({
    logger: pino({ level: 'silent' }),
    errors: plainErrors,
    ...options,
  })
  await registerRoutes(app, {
    prefix: '/api',
    routes,
    methodNotAllowed,
    optionsHeaders: { 'x-extra': 'yes' },
  })
  const url = await listen(app, { host: '127.0.0.1', port: 0 })
  t.after(() => closeServer(app))
  return { app, url: `${url}/api` }
}

test('a body arrives as bytes, whatever its Content-Type', async (t) => {
  const { url } = await serve(t, (scope) => {
    scope.post('/echo', async (request) => ({
      bytes: (request.body as Buffer | undefined)?.toString('latin1') ?? null,
    }))
  })
  for (const type of [
    'application/json',
    'text/plain',
    'application/xml',
    'nonsense',
    ';;',
    'a/b;c=d',
  ]) {
    const answer = await fetch(`${url}/echo`, {
      method: 'POST',
      headers: { 'content-type': type },
      body: '{"a',
    })
    assert.deepEqual(await answer.json(), { bytes: '{"a' }, type)
  }
  const untyped = await fetch(`${url}/echo`, { method: 'POST', body: Buffer.from([0xff, 1]) })
  assert.deepEqual(await untyped.json(), { bytes: '\u00ff\u0001' })
  const empty = await fetch(`${url}/echo`, { method: 'POST' })
  assert.deepEqual(await empty.json(), { bytes: null })
})

test('other methods of a known path are refused with those that are allowed', async (t) => {
  const { url } = await serve(t, (scope) => {
    scope.get('/both', async () => 'got')
    scope.post('/both', async () => 'posted')
    scope.post('/posts/:id', async () => 'posted')
  })
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const answer = await fetch(`${url}/both`, { method })
    assert.equal(answer.status, 405)
    assert.deepEqual(answer.headers.get('allow')?.split(', ').toSorted(), ['GET', 'HEAD', 'POST'])
    assert.match(await answer.text(), /takes .* only\./)
  }
  for (const method of ['GET', 'HEAD']) {
    const answer = await fetch(`${url}/posts/5`, { method })
    assert.equal(answer.status, 405)
    assert.equal(answer.headers.get('allow'), 'POST')
  }
  const options = await fetch(`${url}/posts/5`, { method: 'OPTIONS' })
  assert.equal(options.status, 204)
  assert.equal(options.headers.get('allow'), 'POST')
  assert.equal(options.headers.get('x-extra'), 'yes')
})

test('a body over the limit is refused, also when it does not tell its length', async (t) => {
  const { url } = await serve(t, (scope) => scope.post('/', async () => 'ok'), {
    bodyBytesMax: 100,
  })
  const told = await fetch(`${url}/`, { method: 'POST', body: 'x'.repeat(101) })
  assert.equal(told.status, 413)
  assert.deepEqual(await told.json(), { error: 'The request body is too large.' })
  const body = new Blob(['x'.repeat(101)]).stream()
  const untold = await fetch(`${url}/`, { method: 'POST', body, duplex: 'half' } as RequestInit)
  assert.equal(untold.status, 413)
  assert.equal((await fetch(`${url}/`, { method: 'POST', body: 'x'.repeat(100) })).status, 200)
})

test('what is not a request, or has a broken path, gets a 4xx', async (t) => {
  const { url } = await serve(t, (scope) => scope.get('/a/:id', async () => 'ok'))
  const { port } = new URL(url)
  for (const head of [
    'GARBAGE\r\n\r\n',
    'GET /api/a/%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  ]) {
    const socket = connect(Number(port), '127.0.0.1')
    socket.end(head)
    let text = ''
    for await (const chunk of socket) text += chunk
    assert.match(text, /^HTTP\/1\.1 4\d\d /)
  }
})

test('a close waits for answers that are under way, and no longer', async (t) => {
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const { promise: started, resolve: start } = Promise.withResolvers<void>()
  const { app, url } = await serve(t, (scope) => {
    scope.get('/slow', async () => {
      start()
      await going
      return 'done'
    })
  })
  const idle = connect(Number(new URL(url).port), '127.0.0.1')
  await once(idle, 'connect')
  const answer = fetch(`${url}/slow`)
  await started
  const startedAt = performance.now()
  const closed = closeServer(app)
  go()
  assert.equal(await (await answer).text(), 'done')
  await closed
  assert.ok(performance.now() - startedAt < 5_000)
  idle.destroy()
})

test('what is not even a request gets an answer in the error shape of the port', async (t) => {
  const { url } = await serve(t, () => {})
  const port = Number(new URL(url).port)
  const huge = `GET / HTTP/1.1\r\nhost: x\r\nx-large: ${'a'.repeat(40_000)}\r\n\r\n`
  for (const [text, status] of [
    [huge, 431],
    ['nonsense\r\n\r\n', 400],
  ] as const) {
    const answer = await sendRaw(port, text)
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
    const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
    assert.equal(typeof JSON.parse(body).error, 'string')
  }
})

function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket
      .on('data', (chunk) => {
        answer += chunk
      })
      .on('close', () => resolve(answer))
      .on('error', reject)
  })
}
