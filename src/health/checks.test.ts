import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createHealth, type Failure, printFailures } from './checks.ts'

function nextRound(): Promise<void> {
  mock.timers.tick(1_000)
  return new Promise((resolve) => setImmediate(resolve))
}

test('a node is not ready while it starts and while it stops', async (t) => {
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  t.after(() => mock.timers.reset())
  const health = createHealth()
  assert.deepEqual(
    health.verdict().failures.map(({ reason }) => reason),
    ['The node is starting.'],
  )
  await health.start()
  assert.deepEqual(health.verdict(), { ready: true, failures: [] })
  health.stop()
  assert.match(
    printFailures(health.verdict().failures),
    /^node: The node is stopping\. \(since \d{4}-/,
  )
})

test('every failing check is named, with the time since when, until it passes again', async (t) => {
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  t.after(() => mock.timers.reset())
  const changes: [string, Failure | undefined][] = []
  const health = createHealth({ onChange: (name, failure) => changes.push([name, failure]) })
  let reason: string | undefined
  health.add({ name: 'one', run: () => reason })
  health.add({ name: 'two', run: async () => Promise.reject(new Error('It threw.')) })
  health.add({ name: 'three', run: async () => undefined })
  await health.start()
  t.after(() => health.stop())
  assert.deepEqual(
    health.verdict().failures.map(({ name }) => name),
    ['two'],
  )
  reason = 'It is broken.'
  await nextRound()
  const first = health.verdict().failures.find(({ name }) => name === 'one')
  assert.equal(first?.reason, 'It is broken.')
  reason = 'It is still broken.'
  await nextRound()
  const later = health.verdict().failures.find(({ name }) => name === 'one')
  assert.equal(later?.reason, 'It is still broken.')
  assert.equal(later?.since, first?.since)
  reason = undefined
  await nextRound()
  assert.deepEqual(
    health.verdict().failures.map(({ name }) => name),
    ['two'],
  )
  assert.deepEqual(
    changes.map(([name, failure]) => [name, failure === undefined]),
    [
      ['two', false],
      ['one', false],
      ['one', true],
    ],
  )
})

test('a check that hangs fails after its time, and the verdict never waits for it', async (t) => {
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  t.after(() => mock.timers.reset())
  const health = createHealth()
  let isHanging = false
  health.add({ name: 'slow', run: () => (isHanging ? new Promise(() => {}) : undefined) })
  await health.start()
  t.after(() => health.stop())
  isHanging = true
  await nextRound()
  assert.equal(health.verdict().ready, true)
  mock.timers.tick(2_000)
  await new Promise((resolve) => setImmediate(resolve))
  assert.match(printFailures(health.verdict().failures), /slow: No answer within 2000 ms/)
})

test('a notice leaves the node ready, and is asked for each time', async (t) => {
  const health = createHealth()
  t.after(() => health.stop())
  let notices = ['a sweep names a stranger']
  health.addNotices(() => notices)
  await health.start()
  assert.deepEqual([health.verdict().ready, health.notices()], [true, ['a sweep names a stranger']])
  notices = []
  assert.deepEqual(health.notices(), [])
})
