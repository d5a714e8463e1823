import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { badRequest, methodNotAllowed, notFound, PlainError, plainErrors } from './plain-error.ts'
import { createServer } from './server.ts'

type Logged = { correlationId?: string; err?: { message: string } }

async function answerTo(t: TestContext, error: unknown) {
  const logged: Logged[] = []
  const logger = pino(
    { level: 'error' },
    { write: (line: string) => logged.push(JSON.parse(line)) },
  )
  const app = createServer({
    logger,
    errors: plainErrors,
  })
  t.after(() => app.close())
  app.get('/', async () => Promise.reject(error))
  const answer = await app.inject('/')
  return { status: answer.statusCode, body: answer.json(), headers: answer.headers, logged }
}

test('a refusal is its status, its headers and its sentence', async (t) => {
  const cases: [error: PlainError, status: number, sentence: string][] = [
    [badRequest('x is required.'), 400, 'x is required.'],
    [notFound('There is none.'), 404, 'There is none.'],
    [new PlainError(418, 'No coffee.'), 418, 'No coffee.'],
  ]
  for (const [error, status, sentence] of cases) {
    const answer = await answerTo(t, error)
    assert.equal(answer.status, status)
    assert.deepEqual(answer.body, { error: sentence })
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
    assert.deepEqual(answer.logged, [])
  }
  const refused = await answerTo(t, methodNotAllowed(['GET', 'HEAD']))
  assert.equal(refused.headers.allow, 'GET, HEAD')
  assert.deepEqual(refused.body, { error: 'This path takes GET, HEAD only.' })
})

test('anything unexpected is a 500 that tells nothing but where the operator finds it', async (t) => {
  const answer = await answerTo(t, new Error('the secret is 42'))
  assert.equal(answer.status, 500)
  assert.doesNotMatch(answer.body.error, /is 42|secret/)
  const [entry] = answer.logged
  assert(entry?.correlationId !== undefined)
  assert.match(answer.body.error, new RegExp(entry.correlationId))
  assert.equal(entry.err?.message, 'the secret is 42')
})

test('a database that is away is a 503 that says when to come again', async (t) => {
  const away = Object.assign(new Error('lost'), { name: 'DatabaseUnavailable' })
  const answer = await answerTo(t, away)
  assert.equal(answer.status, 503)
  assert.equal(answer.headers['retry-after'], '5')
  assert.match(answer.body.error, /try again/)
})

test('an unknown path is named, but never at full length', async (t) => {
  const app = createServer({
    logger: pino({ level: 'silent' }),
    errors: plainErrors,
  })
  t.after(() => app.close())
  const answer = await app.inject(`/${'x'.repeat(5000)}?secret=1`)
  assert.equal(answer.statusCode, 404)
  assert.match(answer.json().error, /^There is nothing at \/x{199}….$/)
  assert.deepEqual((await app.inject('/a?b=c')).json(), { error: 'There is nothing at /a.' })
})
