import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../../test/support/random-values.ts'
import {
  assignment,
  createdEvent,
  exercisedEvent,
  importUpdate,
  transaction,
  transactionOf,
  unassignment,
} from '../../test/support/sample-items.ts'
import { prepareLine } from './encode.ts'
import { UpdateError } from './item-fields.ts'

const ID = '1220aa'

function refusal(line: string): UpdateError {
  try {
    prepareLine(line)
  } catch (error) {
    assert(error instanceof UpdateError, `${error}`)
    return error
  }
  return assert.fail(`accepted: ${line}`)
}

function assertRefused(item: unknown, field: string, reason: RegExp): void {
  const error = refusal(JSON.stringify(item))
  assert.equal(error.field, field, error.message)
  assert.match(error.message, reason)
  assert.match(error.message, /\.$/)
}

function without(item: Json, field: string): Json {
  const { [field]: _, ...rest } = item
  return rest
}

/** The transaction with its one event changed. */
function withEvent(event: Json): Json {
  return transaction({ events_by_id: { [`${ID}:0`]: event } })
}

const EVENT_AT = `events_by_id["${ID}:0"].`
const exercised = (changes: Json = {}) => exercisedEvent(`${ID}:0`, [], changes)
const created = (changes: Json = {}) => createdEvent(`${ID}:0`, changes)

test('every required field of a transaction must be there', () => {
  for (const field of Object.keys(transaction())) {
    if (field === 'events_by_id') {
      assertRefused(without(transaction(), field), 'The update', /either a transaction/)
    } else {
      assertRefused(without(transaction(), field), field, /is missing/)
    }
  }
})

test('every required field of an event must be there', () => {
  for (const event of [created(), exercised()]) {
    for (const field of Object.keys(event)) {
      const expected =
        field === 'event_id' ? /must equal its key/ : /is missing|must be (true|created_event)/
      assertRefused(withEvent(without(event, field)), `${EVENT_AT}${field}`, expected)
    }
  }
})

test('every required field of a reassignment must be there', () => {
  for (const make of [assignment, unassignment]) {
    for (const field of ['update_id', 'record_time']) {
      assertRefused(without(make(), field), field, /is missing/)
    }
    const event = make().event as Json
    for (const field of Object.keys(event)) {
      const isKind = field === 'created_event' || field === 'contract_id'
      assertRefused(
        { ...make(), event: without(event, field) },
        isKind ? 'event' : `event.${field}`,
        isKind ? /either an assignment/ : /is missing/,
      )
    }
  }
  for (const field of Object.keys(createdEvent('1220ed:0'))) {
    const createdPart = without(createdEvent('1220ed:0'), field)
    assertRefused(
      assignment({}, { created_event: createdPart }),
      `event.created_event.${field}`,
      /is missing|must be created_event/,
    )
  }
})

test('every field of a wrong type is refused with what it must be', () => {
  const wrong: Record<string, unknown> = { string: 5, array: 'x', object: [], time: 7, int64: '1' }
  const kinds: [field: string, kind: string, reason: RegExp][] = [
    ['update_id', 'string', /must be a string, not a number/],
    ['migration_id', 'int64', /must be a whole number of 64 bits, not a string/],
    ['workflow_id', 'string', /must be a string/],
    ['record_time', 'time', /must be a string/],
    ['synchronizer_id', 'string', /must be a string/],
    ['effective_at', 'time', /must be a string/],
    ['root_event_ids', 'array', /must be an array, not a string/],
    ['events_by_id', 'object', /must be an object, not an array/],
  ]
  for (const [field, kind, reason] of kinds) {
    assertRefused(transaction({ [field]: wrong[kind] }), field, reason)
    assertRefused(transaction({ [field]: null }), field, /not null/)
  }
  for (const field of ['contract_id', 'template_id', 'package_name', 'created_at']) {
    assertRefused(withEvent(created({ [field]: 5 })), `${EVENT_AT}${field}`, /must be a string/)
  }
  for (const field of ['signatories', 'observers']) {
    assertRefused(withEvent(created({ [field]: 'a' })), `${EVENT_AT}${field}`, /must be an array/)
    assertRefused(withEvent(created({ [field]: ['a', 5] })), `${EVENT_AT}${field}[1]`, /a string/)
  }
  assertRefused(withEvent(exercised({ consuming: 'yes' })), `${EVENT_AT}consuming`, /true or false/)
  assertRefused(withEvent(exercised({ choice: '' })), `${EVENT_AT}choice`, /not empty/)
  assertRefused(withEvent(exercised({ interface_id: 5 })), `${EVENT_AT}interface_id`, /a string/)
  assertRefused(withEvent(exercised({ acting_parties: {} })), `${EVENT_AT}acting_parties`, /array/)
  assertRefused(withEvent(exercised({ child_event_ids: 1 })), `${EVENT_AT}child_event_ids`, /array/)
  assertRefused(withEvent(created({ event_type: 'archived_event' })), `${EVENT_AT}event_type`, /or/)
  assertRefused(withEvent([] as unknown as Json), EVENT_AT.slice(0, -1), /an object, not an array/)
  for (const item of [null, [], 'x', 5, true]) assertRefused(item, 'The update', /an object/)
})

test('a value that is no ledger value is refused with its place', () => {
  const wrong = { record: { fields: [{ label: 'x', value: { int64: 'many' } }] } }
  assertRefused(
    withEvent(created({ create_arguments: wrong })),
    `${EVENT_AT}create_arguments`,
    /is not a ledger value: record\.x\.int64 must be a whole number/,
  )
  assertRefused(withEvent(exercised({ choice_argument: {} })), `${EVENT_AT}choice_argument`, /kind/)
  assertRefused(withEvent(exercised({ exercise_result: 5 })), `${EVENT_AT}exercise_result`, /kind/)
  assertRefused(
    withEvent(created({ create_arguments: { record: { fields: [{ value: { unit: {} } }] } } })),
    `${EVENT_AT}create_arguments`,
    /without labels.*supply both forms/,
  )
})

test('events form one tree in which each is reached once, in order', () => {
  const [root, left, right] = [`${ID}:0`, `${ID}:1`, `${ID}:2`]
  const roots = { root_event_ids: [root] }
  const ok = [exercisedEvent(root, [left, right]), createdEvent(left), createdEvent(right)]
  prepareLine(JSON.stringify(transactionOf(ok)))
  const children = `events_by_id["${root}"].child_event_ids`
  const cases: [item: Json, field: string, reason: RegExp][] = [
    [transaction({ root_event_ids: [`${ID}:9`] }), 'root_event_ids', /:9", which is not in events/],
    [
      transactionOf([exercisedEvent(root, [left])], roots),
      children,
      /which is not in events_by_id/,
    ],
    [transaction({ root_event_ids: [root, root] }), 'root_event_ids', /already part of the tree/],
    [transactionOf([exercisedEvent(root, [left, left]), createdEvent(left)]), children, /already/],
    [transactionOf([exercisedEvent(root, [root])], roots), children, /already part of the tree/],
    [
      transactionOf([exercisedEvent(root, [left]), exercisedEvent(left, [root])], roots),
      `events_by_id["${left}"].child_event_ids`,
      /already part of the tree/,
    ],
    [transaction({ root_event_ids: [] }), `events_by_id["${root}"]`, /not reached/],
    [
      transactionOf([exercisedEvent(root, [right, left]), createdEvent(left), createdEvent(right)]),
      'events_by_id',
      /out of order: event 1 comes after event 2/,
    ],
    [withEvent(createdEvent(`${ID}:1`)), `${EVENT_AT}event_id`, /must equal its key/],
    [transaction({ root_event_ids: [''] }), 'root_event_ids[0]', /not empty/],
  ]
  for (const [item, field, reason] of cases) assertRefused(item, field, reason)
})

test('a deep tree and the names of inherited properties are ordinary', () => {
  const depth = 20_000
  const events = Array.from({ length: depth }, (_, n) =>
    exercisedEvent(`${ID}:${n}`, n + 1 < depth ? [`${ID}:${n + 1}`] : []),
  )
  assert.equal(prepareLine(JSON.stringify(transactionOf(events))).eventCount, depth)
  for (const id of ['__proto__', 'constructor', 'toString']) {
    assertRefused(transaction({ root_event_ids: [id] }), 'root_event_ids', /is not in events_by_id/)
  }
  const text = JSON.stringify(transaction()).replaceAll(`${ID}:0`, '__proto__')
  assert.equal(prepareLine(text).eventCount, 1)
})

test('times must be ISO-8601 instants of microseconds', () => {
  const wrong = [
    '',
    'now',
    '2024-09-20',
    '2024-09-20T13:31:28',
    '2024-09-20 13:31:28Z',
    '2024-02-30T00:00:00Z',
    '2024-09-20T25:00:00Z',
    '0000-01-01T00:00:00Z',
    '10000-01-01T00:00:00Z',
    '2024-09-20T13:31:28.1234567Z',
    '2024-09-20T13:31:28.0000001Z',
    '2024-09-20T13:31:28.12345678901Z',
  ]
  for (const time of wrong) {
    for (const field of ['record_time', 'effective_at']) {
      assertRefused(transaction({ [field]: time }), field, /must be an ISO-8601 time/)
    }
    assertRefused(withEvent(created({ created_at: time })), `${EVENT_AT}created_at`, /ISO-8601/)
    assertRefused(unassignment({ record_time: time }), 'record_time', /ISO-8601/)
  }
  const same = prepareLine(
    JSON.stringify(transaction({ record_time: '2024-09-20T15:31:28+02:00' })),
  )
  assert.equal(same.recordTime, '2024-09-20T13:31:28.000000Z')
})

test('integers are 64 bits wide and exact', () => {
  const lineWith = (number: string) =>
    JSON.stringify(transaction()).replace('"migration_id":1', `"migration_id":${number}`)
  for (const number of ['9223372036854775807', '-9223372036854775808', '9007199254740993', '0']) {
    assert.equal(prepareLine(lineWith(number)).migrationId, BigInt(number))
  }
  const wrong = ['9223372036854775808', '-9223372036854775809', '1.5', '1e+21', '1e300', '1e999']
  for (const number of [...wrong, '9'.repeat(5000), '123456789012345678901e-2']) {
    const error = refusal(lineWith(number))
    assert.match(error.message, /^migration_id must be a whole number of 64 bits, not a number\.$/)
  }
  const counter = JSON.stringify(unassignment()).replace('counter":1', 'counter":1e+21')
  assert.equal(refusal(counter).field, 'event.reassignment_counter')
  assertRefused(
    unassignment({}, { reassignment_counter: -1 }),
    'event.reassignment_counter',
    /must not be negative/,
  )
})

test('a hash is hexadecimal, and kept in lower case', () => {
  for (const hash of ['', 'a', 'abc', 'zz', '0x12', 5, 'ab'.repeat(1025)]) {
    assertRefused(
      transaction({ external_transaction_hash: hash }),
      'external_transaction_hash',
      /must be hexadecimal/,
    )
  }
  const kept = prepareLine(JSON.stringify(transaction({ external_transaction_hash: 'ABcd' })))
  assert.equal(kept.externalHash, 'abcd')
  const none = prepareLine(JSON.stringify(transaction({ external_transaction_hash: null })))
  assert.equal(none.externalHash, undefined)
})

test('names hold neither NUL nor half a character, and are not too long', () => {
  for (const name of ['', 'a\0b', 'a\ud800']) {
    assertRefused(transaction({ update_id: name }), 'update_id', /no NUL/)
    assertRefused(transaction({ synchronizer_id: name }), 'synchronizer_id', /no NUL/)
    assertRefused(withEvent(created({ contract_id: name })), `${EVENT_AT}contract_id`, /no NUL/)
    assertRefused(withEvent(created({ observers: [name] })), `${EVENT_AT}observers[0]`, /no NUL/)
  }
  assertRefused(transaction({ update_id: 'u'.repeat(2067) }), 'update_id', /longer than 2066/)
})

test('an update is a transaction or a reassignment, and a reassignment one of its two kinds', () => {
  assertRefused({ ...transaction(), event: {} }, 'The update', /either a transaction/)
  assertRefused({ update_id: 'a' }, 'The update', /either a transaction/)
  assertRefused(unassignment({}, { created_event: createdEvent('x:0') }), 'event', /either an assi/)
  assertRefused(unassignment({ event: [] }), 'event', /must be an object, not an array/)
  assertRefused(
    assignment({}, { created_event: exercisedEvent('x:0', []) }),
    'event.created_event.event_type',
    /must be created_event/,
  )
  assertRefused(assignment({}, { created_event: 5 }), 'event.created_event', /an object/)
})

test('an import update creates one contract', () => {
  assert.equal(prepareLine(JSON.stringify(importUpdate('u', '00aa'))).importedContractId, '00aa')
  const time = { record_time: '0001-01-01T00:00:00Z' }
  const two = [createdEvent(`${ID}:0`), createdEvent(`${ID}:1`)]
  for (const item of [
    transactionOf(two, time),
    transactionOf([exercised()], time),
    transactionOf([], time),
  ]) {
    assertRefused(item, 'events_by_id', /exactly one created event/)
  }
  assertRefused(unassignment(time), 'record_time', /cannot be a reassignment/)
})

test('a line that is not one JSON text is refused', () => {
  for (const line of ['{', 'x', '{"a":1}{"a":2}', "{'a':1}", '{"a":NaN}']) {
    const error = refusal(line)
    assert.match(error.message, /^The line is not JSON: .*\.$/)
  }
  const deep = `{"protobuf_json":${JSON.stringify(transaction())},"compact_json":${JSON.stringify(
    transaction({ events_by_id: { [`${ID}:0`]: created({ create_arguments: '@' }) } }),
  ).replace('"@"', `${'['.repeat(3000)}${']'.repeat(3000)}`)}}`
  assert.match(refusal(deep).message, /differs between|nested too deeply|Maximum call stack/)
})

test('both forms of an update must say the same', () => {
  const lossless = { record: { fields: [{ label: 'n', value: { int64: '1' } }] } }
  const item = (value: unknown, changes: Json = {}) => ({
    ...withEvent(created({ create_arguments: value })),
    ...changes,
  })
  const both = (compact: unknown, changes: Json = {}) => ({
    protobuf_json: item(lossless),
    compact_json: item(compact, changes),
  })
  const derived = prepareLine(JSON.stringify(both({ n: '1' })))
  assert.equal(derived.derived, true)
  const wider = prepareLine(JSON.stringify(both({ n: '1', later: null })))
  assert.equal(wider.derived, false)
  assert.match(Buffer.from(wider.compact).toString(), /"create_arguments":\{"n":"1","later":null\}/)
  for (const compact of [{ n: '2' }, { n: '1', m: 5 }, { n: 1 }, {}, [], null]) {
    assertRefused(both(compact), `${EVENT_AT}create_arguments`, /differs between/)
  }
  assertRefused(
    both({ n: '1' }, { workflow_id: 'w' }),
    'compact_json',
    /differs from protobuf_json/,
  )
  assertRefused({ protobuf_json: item(lossless) }, 'compact_json', /is missing beside/)
})

test('the compact form of values without labels is kept as received, numbers and all', () => {
  const lossless = { record: { fields: [{ value: { int64: '1' } }] } }
  const line = `{"compact_json":${JSON.stringify(
    withEvent(created({ create_arguments: '@' })),
  ).replace(
    '"@"',
    '[12345678901234567890, 1.50, {"b":1,"a":2}]',
  )},"protobuf_json":${JSON.stringify(withEvent(created({ create_arguments: lossless })))}}`
  const kept = prepareLine(line)
  assert.equal(kept.derived, false)
  assert.match(
    Buffer.from(kept.compact).toString(),
    /"create_arguments":\[12345678901234567890,1.50,\{"b":1,"a":2\}\]/,
  )
})

test('an item is brought into canonical form', () => {
  const events = [
    exercisedEvent(`#${ID}:10`, [`#${ID}:20`, `#${ID}:50`], { interface_id: null }),
    exercisedEvent(`#${ID}:20`, [`#${ID}:30`, `#${ID}:40`]),
    createdEvent(`#${ID}:30`, { signatories: ['b', 'a', 'B'], observers: ['z', 'y'] }),
    createdEvent(`#${ID}:40`),
    exercisedEvent(`#${ID}:50`, [`#${ID}:60`, `#${ID}:70`]),
    createdEvent(`#${ID}:60`),
    createdEvent(`#${ID}:70`, { created_at: '2024-09-20T13:31:28.405180Z' }),
  ]
  const shuffled = transactionOf(events, {
    events_by_id: Object.fromEntries(events.toReversed().map((event) => [event.event_id, event])),
    root_event_ids: [`#${ID}:10`],
    effective_at: '2024-09-20T13:31:28.400000Z',
    record_time: '2024-09-20T13:31:28Z',
  })
  const prepared = prepareLine(JSON.stringify(shuffled))
  assert.deepEqual(prepared.nodeIds, [10, 20, 30, 40, 50, 60, 70])
  const item = JSON.parse(Buffer.from(prepared.compact).toString())
  assert.deepEqual(Object.keys(item), [
    ...['update_id', 'migration_id', 'workflow_id', 'record_time', 'synchronizer_id'],
    ...['effective_at', 'offset', 'root_event_ids', 'events_by_id'],
  ])
  assert.equal(item.record_time, '2024-09-20T13:31:28.000000Z')
  assert.equal(item.effective_at, '2024-09-20T13:31:28.400Z')
  assert.deepEqual(item.root_event_ids, [`${ID}:0`])
  assert.deepEqual(
    Object.keys(item.events_by_id),
    [0, 1, 2, 3, 4, 5, 6].map((n) => `${ID}:${n}`),
  )
  assert.deepEqual(item.events_by_id[`${ID}:0`].child_event_ids, [`${ID}:1`, `${ID}:4`])
  assert.deepEqual(item.events_by_id[`${ID}:2`].signatories, ['B', 'a', 'b'])
  assert.deepEqual(item.events_by_id[`${ID}:2`].observers, ['y', 'z'])
  assert.equal(item.events_by_id[`${ID}:6`].created_at, '2024-09-20T13:31:28.40518Z')
  assert.equal('interface_id' in item.events_by_id[`${ID}:0`], false)
})
