import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseUnavailable } from './db-error.ts'
import { createWriteQueue } from './write-queue.ts'

test('work runs one at a time, in the order of its arrival', async () => {
  const queue = createWriteQueue()
  const events: string[] = []
  const work = (name: string) =>
    queue.run(async () => {
      events.push(`${name} begins`)
      await new Promise(setImmediate)
      events.push(`${name} ends`)
      return name
    })
  assert.deepEqual(await Promise.all([work('a'), work('b')]), ['a', 'b'])
  assert.deepEqual(events, ['a begins', 'a ends', 'b begins', 'b ends'])
})

test('failed work lets the next one run', async () => {
  const queue = createWriteQueue()
  const failed = queue.run(() => Promise.reject(new Error('no')))
  const next = queue.run(async () => 'next')
  await assert.rejects(failed, /no/)
  assert.equal(await next, 'next')
})

test('a full queue refuses further work at once', async () => {
  const queue = createWriteQueue({ waitingMax: 1 })
  const { promise, resolve } = Promise.withResolvers<void>()
  const running = queue.run(() => promise)
  const waiting = queue.run(async () => {})
  await assert.rejects(
    queue.run(async () => {}),
    DatabaseUnavailable,
  )
  resolve()
  await Promise.all([running, waiting])
})

test('work that waits too long is given up and never runs', async () => {
  const queue = createWriteQueue({ waitMaxMs: 5 })
  const { promise, resolve } = Promise.withResolvers<void>()
  const running = queue.run(() => promise)
  let ran = false
  await assert.rejects(
    queue.run(async () => {
      ran = true
    }),
    DatabaseUnavailable,
  )
  resolve()
  await running
  await queue.close()
  assert.equal(ran, false)
})

test('closing waits for what was queued and refuses what comes later', async () => {
  const queue = createWriteQueue()
  let done = 0
  const work = async () => {
    await new Promise(setImmediate)
    done += 1
  }
  const queued = [queue.run(work), queue.run(work), queue.run(work)]
  const closed = queue.close()
  await assert.rejects(queue.run(work), /closed/)
  await closed
  assert.equal(done, 3)
  await Promise.all(queued)
})
