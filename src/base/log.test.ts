import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { createLogs } from './log.ts'

function collect(pretty: boolean, secrets: string[] = []) {
  const stream = new PassThrough()
  const logs = createLogs({ level: 'info', pretty, stream, secrets })
  const text = () => String(stream.read() ?? '')
  return { logs, text }
}

test('a line is one JSON object with the names of the logstash style', () => {
  const { logs, text } = collect(false)
  logs.named('annals.scan').info({ traceId: 'ab12', updates: 3 }, 'a page was served')
  const { '@timestamp': time, ...line } = JSON.parse(text())
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual(line, {
    level: 'INFO',
    logger_name: 'annals.scan',
    thread_name: 'main',
    updates: 3,
    'trace-id': 'ab12',
    message: 'a page was served',
  })
})

test('an error becomes a stack trace with its causes, in one line', () => {
  const { logs, text } = collect(false)
  const error = new Error('outer', { cause: new Error('inner') })
  logs.named('annals.node').error({ err: error }, 'it failed')
  const lines = text().trimEnd().split('\n')
  assert.equal(lines.length, 1)
  const { stack_trace: stack } = JSON.parse(lines[0] as string)
  assert.match(stack, /^Error: outer\n[\s\S]*Caused by: Error: inner/)
})

test('one level holds for all loggers and can be changed while they are in use', () => {
  const { logs, text } = collect(false)
  const first = logs.named('a')
  const second = logs.named('b')
  first.debug('unseen')
  assert.equal(text(), '')
  logs.setLevel('debug')
  first.debug('seen')
  second.debug('seen')
  assert.equal(text().trimEnd().split('\n').length, 2)
  assert.equal(logs.level(), 'debug')
})

test('a person gets readable lines', () => {
  const { logs, text } = collect(true)
  logs.named('annals.scan').warn({ port: 5012 }, 'careful')
  assert.match(text(), /\d\d:\d\d:\d\d\.\d{3} .*WARN.* .*scan.*: careful.* port=5012/)
})

test('tokens and the user parts of addresses are left out of every line', () => {
  const token = `eyJhbGciOiJSUzI1NiJ9.${'eyJzdWIiOiJhbGljZSJ9'}.${'c2lnbmF0dXJl'.repeat(4)}`
  for (const pretty of [false, true]) {
    const { logs, text } = collect(pretty)
    const log = logs.named('annals.users')
    log.info({ reason: `user "${token}" is unknown` }, `cut: ${token.slice(0, 30)}`)
    log.info({ err: new Error('no fetch of https://me:hunter2@host.example/jwks') }, 'failed')
    log.info({ header: `Bearer ${'opaque'.repeat(4)}` }, 'there is no bearer token')
    const written = text()
    assert.doesNotMatch(written, /eyJ|hunter2|opaque/)
    assert.match(written, /user \\?"\[token\]\\?" is unknown/)
    assert.match(written, /https:\/\/\[hidden\]@host\.example\/jwks/)
    assert.match(written, /there is no bearer token/)
  }
})

test('a known secret is left out wherever it stands', () => {
  const secret = 'pass"word\\1'
  const { logs, text } = collect(false, [secret, 'abc'])
  logs.named('annals.db').warn({ [secret]: 1, reason: `it is ${secret}, abc` }, secret)
  const { '@timestamp': _, ...line } = JSON.parse(text())
  assert.equal(line.message, '[secret]')
  assert.equal(line.reason, 'it is [secret], abc')
  assert.equal(line['[secret]'], 1)
})
