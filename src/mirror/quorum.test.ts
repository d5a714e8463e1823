import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { agreeOnAnswer, agreeOnItems, sizesOf } from './quorum.ts'

test('sizes are those of the deployed network', () => {
  const trust = { mode: 'all', agreement: 'f+1' } as const
  const rows = [
    [1, 0, 1, 1],
    [2, 0, 1, 1],
    [3, 0, 1, 1],
    [4, 1, 3, 2],
    [6, 1, 3, 2],
    [7, 2, 5, 3],
    [10, 3, 7, 4],
    [13, 4, 9, 5],
    [16, 5, 11, 6],
    [18, 5, 11, 6],
  ]
  for (const [known, faulty, ask, need] of rows) {
    assert.deepEqual(sizesOf(known as number, trust), { known, faulty, ask, need })
  }
})

test('the stricter agreement asks everybody and needs 2f+1', () => {
  const sizes = sizesOf(7, { mode: 'all', agreement: '2f+1' })
  assert.deepEqual(sizes, { known: 7, faulty: 2, ask: 7, need: 5 })
})

test('chosen scans are all asked, and as many must agree as were said', () => {
  const sizes = sizesOf(5, { mode: 'chosen', threshold: 2 })
  assert.deepEqual(sizes, { known: 5, faulty: 1, ask: 5, need: 2 })
})

test('a single scan is enough where it is trusted', () => {
  assert.deepEqual(sizesOf(1, { mode: 'single' }), { known: 1, faulty: 0, ask: 1, need: 1 })
})

test('failures equal nothing, not even each other', () => {
  const failures = [1, 2, 3].map((peer) => ({ peer, key: undefined }))
  assert.deepEqual(agreeOnAnswer(failures, 2), { agreed: undefined, groups: [] })
})

test('two groups that are both large enough decide nothing', () => {
  const answers = ['a', 'a', 'b', 'b'].map((key, peer) => ({ peer, key }))
  assert.equal(agreeOnAnswer(answers, 2).agreed, undefined)
})

const n = fc.integer({ min: 1, max: 20 })
const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 })

test('with at most f liars, what is agreed on is a prefix of the truth', () => {
  fc.assert(
    fc.property(
      n,
      keys,
      fc.infiniteStream(keys),
      fc.infiniteStream(fc.nat(12)),
      (known, truth, lies, heights) => {
        const { faulty, ask, need } = sizesOf(known, { mode: 'all', agreement: 'f+1' })
        const lists = Array.from({ length: Math.min(ask, known) }, (_, peer) => ({
          peer,
          keys: peer < faulty ? next(lies) : truth.slice(0, next(heights)),
        }))
        const { count, agreeing, dissent, isSplit } = agreeOnItems(lists, need)
        assert.equal(isSplit, false)
        assert.ok(count <= truth.length)
        const supporters = lists.filter(
          ({ peer, keys: list }) => agreeing.includes(peer) && list.length >= count,
        )
        assert.ok(count === 0 || supporters.length >= need)
        for (const { keys: list } of supporters) {
          assert.deepEqual(list.slice(0, count), truth.slice(0, count))
        }
        assert.ok(dissent.every(({ peer }) => peer < faulty))
      },
    ),
  )
})

test('with at most f liars, everything that f+1 sound scans have is agreed on', () => {
  fc.assert(
    fc.property(
      n,
      keys,
      fc.infiniteStream(keys),
      fc.infiniteStream(fc.nat(12)),
      (known, truth, lies, heights) => {
        const { faulty, ask, need } = sizesOf(known, { mode: 'all', agreement: 'f+1' })
        const lists = Array.from({ length: Math.min(ask, known) }, (_, peer) => ({
          peer,
          keys: peer < faulty ? next(lies) : truth.slice(0, next(heights)),
        }))
        const sound = lists
          .filter(({ peer }) => peer >= faulty)
          .map(({ keys: list }) => list.length)
        const common = sound.toSorted((a, b) => b - a)[need - 1] ?? 0
        assert.ok(agreeOnItems(lists, need).count >= common)
      },
    ),
  )
})

test('the order of the answers does not matter', () => {
  const lists = fc.array(keys, { maxLength: 7 }).chain((all) => {
    const named = all.map((list, peer) => ({ peer, keys: list }))
    return fc.tuple(fc.constant(named), fc.shuffledSubarray(named, { minLength: named.length }))
  })
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 4 }), ([one, other], need) => {
      const [first, second] = [agreeOnItems(one, need), agreeOnItems(other, need)]
      assert.equal(first.count, second.count)
      assert.deepEqual(new Set(first.agreeing), new Set(second.agreeing))
      assert.equal(first.isSplit, second.isSplit)
    }),
  )
})

function next<T>(stream: { next(): { value: T } }): T {
  return stream.next().value
}
