import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { prepareLine } from '../src/history/encode.ts'
import { reformat } from '../test/support/reformat.ts'
import { EXAMPLE_FILE, makeExample } from './make-example.ts'

const SIZE_MAX_BYTES = 1_000_000
const NO_OFFSET = /"offset":"0{18}",/

const committed = readFileSync(EXAMPLE_FILE, 'utf8')
const lines = committed.trimEnd().split('\n')
const updates = lines.map(prepareLine)
const forms = lines.map((line) => JSON.parse(line))
const items = forms.map((form) => form.protobuf_json ?? form)

test('the committed example is what its script makes', () => {
  assert(
    committed === makeExample(),
    'examples/history.ndjson is out of date: run node scripts/make-example.ts.',
  )
  assert(Buffer.byteLength(committed) < SIZE_MAX_BYTES)
  assert(lines.length >= 300 && lines.length <= 400)
})

test('every line of the example is a valid update in canonical form', () => {
  for (const [index, line] of lines.entries()) {
    const { protobuf, compact, derived } = updates[index] as (typeof updates)[number]
    const print = (bytes: Uint8Array) => Buffer.from(bytes).toString().replace(NO_OFFSET, '')
    if (derived) {
      assert.equal(print(protobuf), line)
    } else {
      assert(line.startsWith(`{"protobuf_json":${print(protobuf)},"compact_json":`))
      assert.deepEqual(JSON.parse(print(compact)), forms[index].compact_json)
    }
  }
})

test('the example is in order, in two migrations that share record times', () => {
  const times = new Map<bigint, Set<string>>()
  for (const [index, { migrationId, recordTime }] of updates.entries()) {
    const before = updates[index - 1]
    const sameMigration = before?.migrationId === migrationId
    assert(before === undefined || !sameMigration || before.recordTime < recordTime)
    assert(before === undefined || before.migrationId <= migrationId)
    times.set(migrationId, (times.get(migrationId) ?? new Set()).add(recordTime))
  }
  assert.deepEqual([...times.keys()], [0n, 1n])
  const [first, second] = [...times.values()] as [Set<string>, Set<string>]
  assert(first.intersection(second).size >= 10)
})

test('contracts of the example are used only while they are active', () => {
  const active = new Set<string>()
  const archived = new Set<string>()
  for (const item of items) {
    for (const event of Object.values<Record<string, string>>(item.events_by_id ?? {})) {
      const id = event.contract_id as string
      if (event.event_type === 'created_event') {
        assert(!active.has(id) && !archived.has(id), event.event_id)
        active.add(id)
      } else {
        assert(active.has(id), event.event_id)
        if (event.consuming) archived.add(id)
        if (event.consuming) active.delete(id)
      }
    }
  }
})

test('every reassignment of the example has its other half with the same counter', () => {
  const halves = new Map<string, { counter: number; kinds: string[] }>()
  for (const { event } of items) {
    if (event === undefined) continue
    const half = halves.get(event.unassign_id) ?? {
      counter: event.reassignment_counter,
      kinds: [] as string[],
    }
    assert.equal(half.counter, event.reassignment_counter)
    half.kinds.push(event.created_event === undefined ? 'unassign' : 'assign')
    halves.set(event.unassign_id, half)
  }
  const kinds = [...halves.values()].map((half) => half.kinds.join(' '))
  assert.deepEqual(new Set(kinds), new Set(['unassign assign', 'assign unassign']))
  assert.deepEqual(new Set([...halves.values()].map((half) => half.counter)), new Set([1, 2]))
})

test('the example shows every kind of value, event and item', () => {
  const kinds =
    'unit bool int64 numeric text party contractId date timestamp optional list textMap genMap record variant enum'
  for (const kind of kinds.split(' ')) assert(committed.includes(`{"${kind}":`), kind)
  const events = items.flatMap((item) => Object.values<object>(item.events_by_id ?? {}))
  assert(events.some((event) => 'interface_id' in event))
  assert(events.some((event) => 'consuming' in event && !event.consuming))
  assert(items.some((item) => 'external_transaction_hash' in item))
  assert(items.some((item) => item.root_event_ids?.length > 1))
  assert(items.some((item) => Object.keys(item.events_by_id ?? {}).length > 11))
  assert(forms.some((form) => 'compact_json' in form))
})

test('the example means the same in any other format', () => {
  for (const [index, line] of lines.entries()) {
    const { protobuf, compact } = updates[index] as (typeof updates)[number]
    const other = prepareLine(reformat(line, index))
    assert.deepEqual([other.protobuf, other.compact], [protobuf, compact])
  }
})
