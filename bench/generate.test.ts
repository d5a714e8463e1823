import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { encodeValue } from '../src/values/value.ts'
import { generateHistory } from './generate.ts'

const COUNT = 4000

// biome-ignore lint/suspicious/noExplicitAny: items are read as plain JSON here.
type Item = any

const lines = [...generateHistory({ count: COUNT, seed: 1 })]
const items: Item[] = lines.map((line) => JSON.parse(line))
const migrationOf = (item: Item): number => item.migration_id ?? item.event.migration_id

test('the same seed makes the same bytes, another seed others', () => {
  const digest = (seed: number) => {
    const hash = createHash('sha256')
    for (const line of generateHistory({ count: 300, seed })) hash.update(line)
    return hash.digest('hex')
  }
  assert.equal(digest(7), digest(7))
  assert.notEqual(digest(7), digest(8))
})

test('any count is made, also none and one', () => {
  for (const count of [0, 1, 2, 5]) {
    assert.equal([...generateHistory({ count, seed: 3 })].length, count)
  }
})

test('positions rise strictly, and migrations share some record times', () => {
  const seen = new Map<string, number>()
  let shared = 0
  for (const [index, item] of items.entries()) {
    const before = items[index - 1]
    const rises =
      before === undefined ||
      migrationOf(before) < migrationOf(item) ||
      (migrationOf(before) === migrationOf(item) && before.record_time < item.record_time)
    assert(rises, `line ${index + 1} does not follow the one before`)
    if ((seen.get(item.record_time) ?? migrationOf(item)) !== migrationOf(item)) shared += 1
    seen.set(item.record_time, migrationOf(item))
  }
  assert.deepEqual([...new Set(items.map(migrationOf))], [0, 1, 2, 3])
  assert(shared >= 3, `${shared} shared record times`)
})

test('sizes are those of a deployed network', () => {
  const lossless = lines.map((line) => Buffer.byteLength(line))
  const compact = items.map((item, index) => (lossless[index] as number) - savedByCompact(item))
  const mean = (sizes: number[]) => sizes.reduce((sum, size) => sum + size, 0) / sizes.length
  const quantile = (sizes: number[], part: number) =>
    sizes.toSorted((a, b) => a - b)[Math.floor((sizes.length - 1) * part)] as number
  const near = (found: number, wanted: number) =>
    assert(Math.abs(found / wanted - 1) < 0.06, `${Math.round(found)} is not near ${wanted}`)
  near(mean(lossless), 10_830)
  near(mean(compact), 8605)
  near(quantile(compact, 0.5), 9596)
  near(quantile(compact, 0.9), 14_170)
  near(quantile(compact, 1), 16_114)
})

test('updates have 1 to 12 events, and the usual share of reassignments and external hashes', () => {
  const transactions = items.filter((item) => item.events_by_id !== undefined)
  const counts = new Set(transactions.map((item) => Object.keys(item.events_by_id).length))
  assert.deepEqual(
    [...counts].toSorted((a, b) => a - b),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
  )
  const reassigned = 1 - transactions.length / COUNT
  assert(reassigned > 0.02 && reassigned < 0.04, `${reassigned}`)
  const signed = transactions.filter((item) => item.external_transaction_hash).length / COUNT
  assert(signed > 0.08 && signed < 0.12, `${signed}`)
})

test('no contract is created twice, and none is used after it was archived', () => {
  const created = new Set<string>()
  const archived = new Set<string>()
  for (const item of items) {
    for (const event of eventsOf(item)) {
      assert(!archived.has(event.contract_id), event.event_id)
      if (event.event_type === 'created_event' && item.events_by_id !== undefined) {
        assert(!created.has(event.contract_id), event.event_id)
        created.add(event.contract_id)
      }
      if (event.consuming) archived.add(event.contract_id)
    }
  }
})

function eventsOf(item: Item): Item[] {
  if (item.events_by_id !== undefined) return Object.values(item.events_by_id)
  return item.event.created_event === undefined ? [] : [item.event.created_event]
}

/** Also checks that the values stand in canonical form. */
function savedByCompact(item: Item): number {
  let saved = 0
  for (const event of eventsOf(item)) {
    for (const field of ['create_arguments', 'choice_argument', 'exercise_result']) {
      if (event[field] === undefined) continue
      const { lossless, compact } = encodeValue(event[field])
      assert.equal(lossless, JSON.stringify(event[field]))
      saved += Buffer.byteLength(lossless) - Buffer.byteLength(compact ?? '')
    }
  }
  return saved
}
