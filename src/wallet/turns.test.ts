import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurns, TooManyTurns } from './turns.ts'

test('what one party does comes one after another, what others do at the same time', async () => {
  const turns = createTurns()
  const running = new Map<string, number>()
  let most = 0
  const work = (party: string) => async () => {
    assert.equal(running.get(party) ?? 0, 0, 'alone')
    running.set(party, 1)
    most = Math.max(
      most,
      [...running.values()].reduce((sum, n) => sum + n),
    )
    await new Promise((resolve) => setImmediate(resolve))
    running.set(party, 0)
    return party
  }
  const all = await Promise.all(
    Array.from({ length: 30 }, (_, n) => turns.take(`p${n % 3}`, work(`p${n % 3}`))),
  )
  assert.equal(all.length, 30)
  assert.equal(most, 3)
})

test('a failure does not stop the next, and a long queue is refused', async () => {
  const turns = createTurns()
  const failing = turns.take('p', () => Promise.reject(new Error('no')))
  const next = turns.take('p', async () => 'yes')
  await assert.rejects(failing, /no/)
  assert.equal(await next, 'yes')

  let release = () => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  const waiting = Array.from({ length: 100 }, () => turns.take('p', () => gate))
  await assert.rejects(
    turns.take('p', () => gate),
    TooManyTurns,
  )
  release()
  await Promise.all(waiting)
  await turns.take('p', async () => {})
})
