import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseUnavailable } from './db-error.ts'
import { watchServer } from './server-watch.ts'

test('work of an answering server may take its time', async (t) => {
  let probes = 0
  const probe = async () => {
    probes += 1
    if (probes === 3) finish.resolve('done')
    return true
  }
  const finish = Promise.withResolvers<string>()
  const watch = watchServer({ probe, onLost: assert.fail, silenceMs: 1 })
  t.after(watch.close)
  assert.equal(await watch.guard(() => finish.promise), 'done')
  assert(probes >= 3)
})

test('all work fails when the server is lost, and new work is refused until it answers', async (t) => {
  let answers = false
  let lost = 0
  const probe = async () => answers
  const onLost = () => {
    lost += 1
  }
  const watch = watchServer({ probe, onLost, silenceMs: 1 })
  t.after(watch.close)
  const never = () => new Promise<never>(() => {})
  await Promise.all([
    assert.rejects(watch.guard(never), DatabaseUnavailable),
    assert.rejects(watch.guard(never), DatabaseUnavailable),
  ])
  assert.equal(lost, 1)
  await assert.rejects(watch.guard(assert.fail), DatabaseUnavailable)
  answers = true
  for (;;) {
    try {
      assert.equal(await watch.guard(async () => 'back'), 'back')
      return
    } catch (error) {
      assert(error instanceof DatabaseUnavailable)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
})

test('the error of the work itself is passed on', async (t) => {
  const watch = watchServer({ probe: async () => true, onLost: assert.fail })
  t.after(watch.close)
  await assert.rejects(
    watch.guard(() => Promise.reject(new Error('own'))),
    /own/,
  )
})
