import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTrafficReserve, isHeldBack, type Priority, TrafficReserved } from './reserve.ts'

// priority, reserve, what is left: is it held back
const TABLE: [Priority, number | undefined, bigint | undefined, boolean][] = [
  ['low', 200_000, 200_001n, false],
  ['low', 200_000, 200_000n, true],
  ['low', 200_000, 0n, true],
  ['low', 200_000, undefined, false],
  ['low', undefined, 0n, false],
  ['low', 0, 0n, true],
  ['high', 200_000, 0n, false],
]

for (const [priority, reservedTraffic, extraTrafficRemainder, held] of TABLE) {
  test(`a command of ${priority} priority with ${extraTrafficRemainder} left and ${reservedTraffic} reserved is ${held ? 'held back' : 'let through'}`, async () => {
    assert.equal(isHeldBack({ priority, reservedTraffic, extraTrafficRemainder }), held)
    const reserve = createTrafficReserve({
      reservedTraffic,
      extraTrafficRemainder: async () => extraTrafficRemainder,
    })
    if (held) await assert.rejects(reserve.admit(priority), { code: 'ABORTED' })
    else await reserve.admit(priority)
  })
}

test('what is left is asked once a second', async () => {
  let left = 0n
  let asked = 0
  let ms = 0
  const reserve = createTrafficReserve({
    reservedTraffic: 10,
    extraTrafficRemainder: async () => {
      asked += 1
      return left
    },
    now: () => ms,
  })
  await assert.rejects(reserve.admit('low'), TrafficReserved)
  left = 11n
  ms = 999
  await assert.rejects(reserve.admit('low'), TrafficReserved)
  assert.equal(asked, 1)
  ms = 1000
  await reserve.admit('low')
  assert.equal(asked, 2)
})

test('a network that does not answer holds nothing back', async () => {
  const reserve = createTrafficReserve({
    reservedTraffic: 10,
    extraTrafficRemainder: () => Promise.reject(new Error('away')),
  })
  await reserve.admit('low')
})
