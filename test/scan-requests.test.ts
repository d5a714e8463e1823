import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { forEachEngine, type TestEngine } from './support/engines.ts'
import { startTestNode, type TestNodeOptions } from './support/node.ts'
import type { Json } from './support/random-values.ts'
import {
  assignment,
  createdEvent,
  exercisedEvent,
  importUpdate,
  SYNCHRONIZER,
  transaction,
  transactionOf,
  unassignment,
} from './support/sample-items.ts'
import { createScanClient, type ScanClient } from './support/scan-client.ts'

const day = (time: string) => `2024-09-20T${time}Z`
const at = (id: string, migrationId: number, time: string, changes: Json = {}) =>
  transaction({ update_id: id, migration_id: migrationId, record_time: day(time), ...changes })

// Migrations 1 and 3, whose times overlap; m3-shared has the record time of m1-middle.
const HISTORY = [
  at('m1-first', 1, '10:00:00.000000'),
  at('m1-middle', 1, '10:00:01.123456'),
  at('m1-next', 1, '10:00:01.123457', { effective_at: day('10:00:01.400000') }),
  unassignment({ update_id: 'm1-unassign', record_time: day('10:00:02') }),
  at('m1-last', 1, '10:00:03', { external_transaction_hash: 'AB12' }),
  at('m3-early', 3, '09:00:00'),
  at('m3-shared', 3, '10:00:01.123456'),
  assignment({ update_id: 'm3-assign', record_time: day('10:00:02') }, { migration_id: 3 }),
  at('m3-last', 3, '10:00:05'),
].map((item) => JSON.stringify(item))
const IDS = HISTORY.map((line) => JSON.parse(line).update_id as string)
const M3 = IDS.filter((id) => id.startsWith('m3'))

async function serve(
  t: TestContext,
  engine: TestEngine,
  lines: string[],
  options: TestNodeOptions = {},
): Promise<ScanClient> {
  const target = await engine.newTarget(t)
  const node = await startTestNode(t, { lines, target, ...options })
  return createScanClient(node.urls.scan)
}

const idsOf = (answer: { body: { transactions: Json[] } }) =>
  answer.body.transactions.map((item) => item.update_id)
const after = (id: number | bigint, time: string) => ({
  after: { after_migration_id: id, after_record_time: time },
})

forEachEngine((engine) => {
  test(`pages on ${engine.name}`, async (t) => {
    const scan = await serve(t, engine, HISTORY)

    await t.test(
      'a page is ascending by migration id and record time, at most page_size',
      async () => {
        for (const version of [0, 1, 2]) {
          const all = await scan.post(`/v${version}/updates`, { page_size: 10 })
          assert.equal(all.status, 200)
          assert.deepEqual(idsOf(all), IDS)
          const some = await scan.post(`/v${version}/updates`, { page_size: 4 })
          assert.deepEqual(idsOf(some), IDS.slice(0, 4))
        }
      },
    )

    await t.test(
      'following the cursor gives every update once, in the order of one big page',
      async () => {
        for (const version of [1, 2]) {
          for (const pageSize of [1, 2, 4, 9]) {
            const seen: unknown[] = []
            let cursor: Json = {}
            for (;;) {
              const page = await scan.post(`/v${version}/updates`, {
                page_size: pageSize,
                ...cursor,
              })
              seen.push(...idsOf(page))
              const last = page.body.transactions.at(-1)
              if (last === undefined) break
              cursor = after(Number(last.migration_id ?? last.event.migration_id), last.record_time)
            }
            assert.deepEqual(seen, IDS)
          }
        }
      },
    )

    const sizes: [body: unknown, status: number, says: RegExp][] = [
      [{ page_size: 1000 }, 200, /"transactions"/],
      [{ page_size: 1001 }, 200, /"transactions"/],
      [{ page_size: 2147483647 }, 200, /"transactions"/],
      [{ page_size: '10' }, 200, /"transactions"/],
      ['{"page_size":10.0}', 200, /"transactions"/],
      ['{"page_size":1e1}', 200, /"transactions"/],
      [{ page_size: 0 }, 400, /page_size must be at least 1, not 0/],
      [{ page_size: -5 }, 400, /page_size must be at least 1, not -5/],
      [{}, 400, /page_size is required/],
      [{ page_size: null }, 400, /page_size is required/],
      [{ page_size: 10.5 }, 400, /page_size must be an integer, not 10.5/],
      [{ page_size: 2147483648 }, 400, /page_size must be an integer of 32 bits/],
      ['{"page_size":1e999}', 400, /page_size must be an integer, not a number/],
      [`{"page_size":${'9'.repeat(100_000)}}`, 400, /page_size must be an integer, not a number/],
      [{ page_size: '10.5' }, 400, /page_size must be an integer/],
      [{ page_size: true }, 400, /page_size must be an integer, not a boolean/],
      [{ page_size: [1] }, 400, /page_size must be an integer, not an array/],
    ]
    await t.test(
      'page_size is an integer from 1 to 2147483647, and has no lower ceiling',
      async () => {
        for (const [body, status, says] of sizes) {
          const answer = await scan.post('/v1/updates', body)
          assert.equal(answer.status, status, answer.text.slice(0, 200))
          assert.match(answer.text, says)
          assert.ok(status === 200 || answer.text.length < 300)
        }
      },
    )

    const MIDDLE = day('10:00:01.123456')
    const positions: [name: string, from: Json, ids: string[]][] = [
      ['the update at the position is left out', after(1, MIDDLE), IDS.slice(2)],
      ['a microsecond earlier it comes first', after(1, day('10:00:01.123455')), IDS.slice(1)],
      ['the end of a migration continues with the next', after(1, day('10:00:03')), M3],
      ['an unknown migration continues with the next', after(2, day('12:00:00')), M3],
      ['so does the end of time', after(1, '9999-12-31T23:59:59.999999Z'), M3],
      ['after the last migration there is nothing', after(99, '0001-01-01T00:00:00Z'), []],
      ['after the last update there is nothing', after(3, day('10:00:05')), []],
      ['before all migrations is everything', after(-1, day('23:00:00')), IDS],
      ['the widest migration ids are positions too', after(2n ** 63n - 1n, MIDDLE), []],
      ['the lowest one is before everything', after(-(2n ** 63n), MIDDLE), IDS],
      ['times count within their migration alone', after(3, day('08:00:00')), M3],
      [
        'of equal times, migration 3 comes after 1',
        after(1, day('10:00:02')),
        [IDS[4] as string, ...M3],
      ],
      ['nine fraction digits are floored', after(1, day('10:00:01.123456999')), IDS.slice(2)],
      ['an offset is applied', after(1, '2024-09-20T12:00:01.123456+02:00'), IDS.slice(2)],
      ['after: null is the beginning', { after: null }, IDS],
      ['a migration id may be a string', after('1' as never, MIDDLE), IDS.slice(2)],
    ]
    await t.test('a page starts after the position', async () => {
      for (const [name, from, ids] of positions) {
        for (const version of [0, 1, 2]) {
          const text = JSON.stringify({ page_size: 100, ...from }, (_, value) =>
            typeof value === 'bigint'
              ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(String(value))
              : value,
          )
          const answer = await scan.post(`/v${version}/updates`, text)
          assert.equal(answer.status, 200, name)
          assert.deepEqual(idsOf(answer), ids, name)
        }
      }
    })

    const wrongTimes = [
      ...['Invalid', '2024-09-20T13:31:28', '2024-09-20T13:31:28.1234567890Z', '2024-09-20'],
      ...['0000-01-01T00:00:00Z', '10000-01-01T00:00:00Z', '', '2024-02-30T00:00:00Z'],
    ]
    const wrongAfter: [value: unknown, says: RegExp][] = [
      [{ after_migration_id: 1 }, /after_record_time is required/],
      [{ after_record_time: MIDDLE }, /after_migration_id is required/],
      [
        { after_migration_id: 1, after_record_time: 1726839088 },
        /after_record_time must be a string/,
      ],
      [
        { after_migration_id: 1.5, after_record_time: MIDDLE },
        /after_migration_id must be an integer/,
      ],
      [
        { after_migration_id: '9223372036854775808', after_record_time: MIDDLE },
        /after_migration_id must be an integer of 64 bits/,
      ],
      ['1', /after must be an object/],
      [[], /after must be an object/],
      ...wrongTimes.map((time): [unknown, RegExp] => [
        { after_migration_id: 1, after_record_time: time },
        /after_record_time must be an ISO-8601 time .* such as 2024-/,
      ]),
    ]
    await t.test('a wrong position is refused with the field and what it must be', async () => {
      for (const [value, says] of wrongAfter) {
        const answer = await scan.post('/v1/updates', { page_size: 5, after: value })
        assert.equal(answer.status, 400)
        assert.match(answer.body.error, says)
      }
    })

    await t.test('a body that is no JSON object is refused', async () => {
      const wrong: [body: string, says: RegExp][] = [
        ['{"page_size":1', /not valid JSON/],
        ['', /needs a JSON body, such as/],
        ['   ', /needs a JSON body/],
        ['[]', /must be a JSON object, not an array/],
        ['null', /must be a JSON object, not null/],
        ['5', /must be a JSON object, not a number/],
        ['['.repeat(100_000), /not valid JSON/],
      ]
      for (const [body, says] of wrong) {
        const answer = await scan.post('/v1/updates', body)
        assert.equal(answer.status, 400)
        assert.match(answer.body.error, says)
      }
    })

    await t.test(
      'the body is read whatever its Content-Type, and unknown fields are ignored',
      async () => {
        const body = { page_size: 3, unknown: { deep: [1] }, transactions: null }
        for (const type of [
          'application/xml',
          'text/plain',
          'application/x-www-form-urlencoded',
          'no type',
        ]) {
          const answer = await scan.post('/v1/updates', body, { 'content-type': type })
          assert.equal(answer.status, 200)
        }
        const bytes = await scan.post('/v1/updates', Buffer.from(JSON.stringify(body)))
        assert.deepEqual(idsOf(bytes), IDS.slice(0, 3))
      },
    )

    await t.test('GET of a page is refused with 405 and Allow: POST', async () => {
      const answer = await scan.get('/v1/updates')
      assert.equal(answer.status, 405)
      assert.equal(answer.headers.get('allow'), 'POST')
    })

    await t.test('the encoding is compact unless asked otherwise, under either name', async () => {
      const ask = (path: string, fields: Json) => scan.post(path, { page_size: 100, ...fields })
      const compact = (await ask('/v1/updates', {})).text
      const lossless = (await ask('/v1/updates', { ledger_value_encoding: 'protobuf_json' })).text
      assert.match(compact, /"create_arguments":\{"owner":"alice::12"\}/)
      assert.match(lossless, /"create_arguments":\{"record":\{"fields":\[\{"label":"owner"/)
      const hide = (text: string) =>
        text.replaceAll(
          /"(create_arguments|choice_argument|exercise_result)":\{.*?\},"(created_at|child)/g,
          '$1 $2',
        )
      assert.equal(hide(lossless), hide(compact))
      for (const fields of [
        { ledger_value_encoding: 'compact_json' },
        { daml_value_encoding: 'compact_json', ledger_value_encoding: 'compact_json' },
        { ledger_value_encoding: null },
        { lossless: true },
      ]) {
        assert.equal((await ask('/v1/updates', fields)).text, compact)
      }
      assert.equal(
        (await ask('/v1/updates', { daml_value_encoding: 'protobuf_json' })).text,
        lossless,
      )
      const first = await ask('/v0/updates', { lossless: true })
      assert.match(first.text, /"create_arguments":\{"record"/)
      const contradiction = {
        daml_value_encoding: 'compact_json',
        ledger_value_encoding: 'protobuf_json',
      }
      for (const [path, fields] of [
        ['/v1/updates', { ledger_value_encoding: 'xml' }],
        ['/v2/updates', { daml_value_encoding: 5 }],
        ['/v2/updates', contradiction],
        ['/v0/updates', { lossless: 'yes' }],
        ['/v0/updates', { lossless: true, ledger_value_encoding: 'compact_json' }],
      ] as const) {
        const answer = await ask(path, fields)
        assert.equal(answer.status, 400)
        assert.match(answer.body.error, /_encoding|lossless/)
      }
    })

    await t.test(
      'offsets rise with every update in v0 and v1, and v2 transactions have none',
      async () => {
        for (const version of [0, 1]) {
          const { body } = await scan.post(`/v${version}/updates`, { page_size: 100 })
          const offsets = body.transactions.map((item: Json) => item.offset)
          assert.deepEqual(
            offsets,
            IDS.map((_, n) => (n + 1).toString(16).padStart(18, '0')),
          )
        }
        const { body } = await scan.post('/v2/updates', { page_size: 100 })
        for (const item of body.transactions) {
          assert.equal(item.offset, 'event' in item ? '000000000000000001' : undefined)
        }
      },
    )

    await t.test(
      'reassignments stand among transactions, with their migration id in the event',
      async () => {
        for (const version of [1, 2]) {
          const { body } = await scan.post(`/v${version}/updates`, { page_size: 100 })
          const unassigned = body.transactions[3]
          assert.equal(unassigned.event.contract_id, '00cc')
          assert.equal('created_event' in unassigned.event, false)
          const assigned = body.transactions[7]
          assert.equal(
            assigned.event.created_event.event_id,
            version === 0 ? '#1220ed:0' : 'm3-assign:0',
          )
          assert.equal(assigned.event.migration_id, 3)
          for (const item of [assigned, unassigned]) {
            assert.equal('migration_id' in item || 'synchronizer_id' in item, false)
          }
        }
      },
    )

    await t.test('times are printed as each field wants them', async () => {
      const { body } = await scan.post('/v1/updates', { page_size: 100 })
      assert.equal(body.transactions[0].record_time, day('10:00:00.000000'))
      assert.equal(body.transactions[0].effective_at, day('13:31:28'))
      assert.equal(body.transactions[2].effective_at, day('10:00:01.400'))
    })

    await t.test('interface_id and the hash are left out when there is none', async () => {
      const { text } = await scan.post('/v1/updates', { page_size: 100 })
      assert.doesNotMatch(text, /interface_id|null/)
      assert.equal(text.match(/"external_transaction_hash":"ab12"/g)?.length, 1)
    })

    await t.test('transactions are found by id and by hash, reassignments are not', async () => {
      for (const version of [0, 1, 2]) {
        const found = await scan.get(`/v${version}/updates/m1-last`)
        assert.equal(found.status, 200)
        assert.equal(found.body.update_id, 'm1-last')
        assert.equal(found.body.external_transaction_hash, 'ab12')
        assert.equal('offset' in found.body, version !== 2)
        for (const id of ['unknown', 'm1-unassign', 'm3-assign', '%00', '%F0%9F%98%80']) {
          const missing = await scan.get(`/v${version}/updates/${id}`)
          assert.equal(missing.status, 404)
          assert.match(missing.body.error, /^Transaction with id .* not found\.$/s)
        }
      }
      for (const hash of ['ab12', 'AB12', 'aB12']) {
        const found = await scan.get(`/v2/updates/hash/${hash}`)
        assert.equal(found.body.update_id, 'm1-last')
      }
      for (const hash of ['zz', 'a', 'ab13', '%00']) {
        const missing = await scan.get(`/v2/updates/hash/${hash}`)
        assert.equal(missing.status, 404)
        assert.match(missing.body.error, /^Transaction with hash .* not found\.$/s)
      }
      assert.equal((await scan.get(`/v2/updates/${'x'.repeat(2067)}`)).status, 400)
      assert.equal((await scan.get(`/v2/updates/${'x'.repeat(2066)}`)).status, 404)
      assert.equal((await scan.get(`/v2/updates/hash/${'a'.repeat(2049)}`)).status, 400)
    })

    await t.test('a lookup takes the encoding as a query', async () => {
      const lossless = /"create_arguments":\{"record"/
      for (const [path, isLossless] of [
        ['/v1/updates/m1-last?daml_value_encoding=protobuf_json', true],
        ['/v2/updates/m1-last?ledger_value_encoding=protobuf_json', true],
        ['/v2/updates/hash/ab12?daml_value_encoding=protobuf_json', true],
        ['/v0/updates/m1-last?lossless=true', true],
        ['/v0/updates/m1-last?lossless=false', false],
        ['/v1/updates/m1-last?daml_value_encoding=compact_json', false],
        ['/v1/updates/m1-last?other=1', false],
      ] as const) {
        const { status, text } = await scan.get(path)
        assert.equal(status, 200)
        assert.equal(lossless.test(text), isLossless, path)
      }
      for (const query of [
        'daml_value_encoding=xml',
        'daml_value_encoding=a&daml_value_encoding=b',
      ]) {
        assert.equal((await scan.get(`/v2/updates/m1-last?${query}`)).status, 400)
      }
      assert.equal((await scan.get('/v0/updates/m1-last?lossless=__proto__')).status, 400)
    })

    await t.test('migration-info tells the ranges of a migration', async () => {
      const info = await scan.post('/v0/backfilling/migration-info', { migration_id: 3 })
      assert.deepEqual(info.body, {
        previous_migration_id: 1,
        record_time_range: [
          { synchronizer_id: SYNCHRONIZER, min: day('09:00:00'), max: day('10:00:05') },
        ],
        last_import_update_id: null,
        complete: true,
        import_updates_complete: true,
      })
      const first = await scan.post('/v0/backfilling/migration-info', { migration_id: 1 })
      assert.equal(first.body.previous_migration_id, null)
      const unknown = await scan.post('/v0/backfilling/migration-info', { migration_id: 9 })
      assert.equal(unknown.status, 404)
      assert.equal(unknown.body.error, 'No data for migration 9.')
      assert.equal((await scan.post('/v0/backfilling/migration-info', {})).status, 400)
    })

    await t.test(
      'updates-before gives the newest before a time, newest first, lossless',
      async () => {
        const ask = (fields: Json) =>
          scan.post('/v0/backfilling/updates-before', {
            migration_id: 1,
            synchronizer_id: SYNCHRONIZER,
            before: day('10:00:03'),
            count: 100,
            ...fields,
          })
        const before = IDS.slice(0, 4).toReversed()
        assert.deepEqual(idsOf(await ask({})), before)
        assert.deepEqual(idsOf(await ask({ count: 2 })), before.slice(0, 2))
        assert.deepEqual(idsOf(await ask({ at_or_after: MIDDLE })), before.slice(0, 3))
        assert.deepEqual(
          idsOf(await ask({ at_or_after: day('10:00:01.123457') })),
          before.slice(0, 2),
        )
        assert.deepEqual(idsOf(await ask({ before: day('10:00:00') })), [])
        assert.deepEqual(idsOf(await ask({ migration_id: 2 })), [])
        assert.deepEqual(idsOf(await ask({ synchronizer_id: 'a::b' })), [])
        assert.match((await ask({})).text, /"create_arguments":\{"record"/)
        for (const fields of [
          { count: 0 },
          { count: 1001 },
          { before: 'x' },
          { synchronizer_id: 'a' },
        ]) {
          assert.equal((await ask(fields)).status, 400)
        }
      },
    )

    await t.test('gzip and zstd answers hold what the plain one does', async () => {
      const plain = await scan.post(
        '/v1/updates',
        { page_size: 100 },
        { 'accept-encoding': 'identity' },
      )
      const zipped = await scan.post(
        '/v1/updates',
        { page_size: 100 },
        { 'accept-encoding': 'gzip' },
      )
      assert.equal(zipped.headers.get('content-encoding'), 'gzip')
      assert.equal(zipped.text, plain.text)
      assert.equal(plain.headers.get('content-encoding'), null)
      assert.equal(plain.headers.get('vary'), 'accept-encoding')
    })
  })

  test(`an empty history is an empty page on ${engine.name}`, async (t) => {
    const scan = await serve(t, engine, [])
    for (const version of [0, 1, 2]) {
      const { status, text } = await scan.post(`/v${version}/updates`, { page_size: 5 })
      assert.equal(status, 200)
      assert.equal(text, '{"transactions":[]}')
    }
    const { body } = await scan.post('/v0/backfilling/import-updates', {
      migration_id: 0,
      after_update_id: '',
      limit: 5,
    })
    assert.deepEqual(body, { transactions: [] })
  })

  test(`a configured maximum is refused above, never cut, on ${engine.name}`, async (t) => {
    const limited = { maxPageSize: 500, cacheBytes: 1_000_000, publicUrl: undefined }
    const scan = await serve(t, engine, HISTORY, { config: { scan: limited } })
    assert.equal((await scan.post('/v1/updates', { page_size: 500 })).status, 200)
    const { status, body } = await scan.post('/v1/updates', { page_size: 501 })
    assert.equal(status, 400)
    assert.match(
      body.error,
      /page_size must not exceed the maximum of this node, 500; it was 501\./,
    )
  })

  test(`events on ${engine.name}`, async (t) => {
    const id = '1220ab'
    const event = (n: number) => `#${id}:${n}`
    const tree = transactionOf(
      [
        exercisedEvent(event(10), [event(20), event(50)]),
        exercisedEvent(event(20), [event(30), event(40)]),
        createdEvent(event(30), { signatories: ['c', 'a', 'b'], observers: ['2', '1'] }),
        createdEvent(event(40), { created_at: day('13:31:28.405180') }),
        exercisedEvent(event(50), [event(60), event(70)], { interface_id: 'p:M:I' }),
        createdEvent(event(60)),
        createdEvent(event(70)),
      ],
      { update_id: id, record_time: day('10:00:00') },
    )
    const two = '1220ac'
    const forest = transactionOf(
      [0, 3].flatMap((root) => [
        exercisedEvent(`${two}:${root}`, [`${two}:${root + 1}`, `${two}:${root + 2}`]),
        createdEvent(`${two}:${root + 1}`),
        createdEvent(`${two}:${root + 2}`),
      ]),
      { update_id: two, record_time: day('10:00:01') },
    )
    const wide = '1220ad'
    const eleven = transactionOf(
      Array.from({ length: 12 }, (_, n) => createdEvent(`${wide}:${n}`)),
      { update_id: wide, record_time: day('10:00:02') },
    )
    const scan = await serve(
      t,
      engine,
      [tree, forest, eleven].map((item) => JSON.stringify(item)),
    )
    const pageOf = async (version: number) =>
      (await scan.post(`/v${version}/updates`, { page_size: 10 })).body.transactions as Json[]
    const eventsOf = (item: Json | undefined) => item?.events_by_id as Record<string, Json>

    await t.test('v1 and v2 number events densely in preorder, and children follow', async () => {
      for (const version of [1, 2]) {
        const [first, second] = await pageOf(version)
        const events = eventsOf(first)
        assert.deepEqual(
          Object.keys(events),
          [0, 1, 2, 3, 4, 5, 6].map((n) => `${id}:${n}`),
        )
        assert.deepEqual(events[`${id}:0`]?.child_event_ids, [`${id}:1`, `${id}:4`])
        assert.deepEqual(events[`${id}:4`]?.child_event_ids, [`${id}:5`, `${id}:6`])
        assert.deepEqual(second?.root_event_ids, [`${two}:0`, `${two}:3`])
        assert.equal(Object.keys(eventsOf(second)).length, 6)
      }
    })

    await t.test("v0 has # and the source's own numbers", async () => {
      const [first, second] = await pageOf(0)
      assert.deepEqual(Object.keys(eventsOf(first)), [10, 20, 30, 40, 50, 60, 70].map(event))
      assert.deepEqual(eventsOf(first)[event(20)]?.child_event_ids, [event(30), event(40)])
      assert.deepEqual(second?.root_event_ids, [`#${two}:0`, `#${two}:3`])
    })

    await t.test(
      'every root and child is a key of events_by_id, and event_id equals its key',
      async () => {
        for (const version of [0, 1, 2]) {
          for (const item of await pageOf(version)) {
            const events = eventsOf(item)
            for (const [key, value] of Object.entries(events)) {
              assert.equal(value.event_id, key)
              for (const child of (value.child_event_ids as string[]) ?? [])
                assert.ok(child in events)
            }
            for (const root of item.root_event_ids as string[]) assert.ok(root in events)
          }
        }
      },
    )

    await t.test('v2 lists events in the text order of their ids, v1 in event order', async () => {
      const numbers = (item: Json | undefined) =>
        Object.keys(eventsOf(item)).map((key) => key.split(':')[1])
      assert.equal(numbers((await pageOf(2))[2]).join(), '0,1,10,11,2,3,4,5,6,7,8,9')
      assert.equal(numbers((await pageOf(1))[2]).join(), '0,1,2,3,4,5,6,7,8,9,10,11')
    })

    await t.test(
      'stakeholders are sorted, times shortened, an interface shown where there is one',
      async () => {
        const events = eventsOf((await pageOf(1))[0])
        assert.deepEqual(events[`${id}:2`]?.signatories, ['a', 'b', 'c'])
        assert.deepEqual(events[`${id}:2`]?.observers, ['1', '2'])
        assert.equal(events[`${id}:3`]?.created_at, day('13:31:28.40518'))
        assert.equal(events[`${id}:4`]?.interface_id, 'p:M:I')
      },
    )
  })

  test(`import updates on ${engine.name}`, async (t) => {
    const lines = [
      JSON.stringify(importUpdate('i1', '00cc')),
      JSON.stringify(importUpdate('i2', '00aa')),
      JSON.stringify(importUpdate('i3', '00bb')),
      JSON.stringify(at('m1-first', 1, '10:00:00')),
      JSON.stringify(importUpdate('j1', '00aa', { migration_id: 3 })),
      JSON.stringify(at('m3-first', 3, '09:00:00')),
    ]
    const scan = await serve(t, engine, lines)

    await t.test('v1 and v2 show none of them', async () => {
      for (const version of [1, 2]) {
        assert.deepEqual(idsOf(await scan.post(`/v${version}/updates`, { page_size: 10 })), [
          'm1-first',
          'm3-first',
        ])
      }
    })

    await t.test('v0 shows them first in their migration, at the first instant', async () => {
      const all = await scan.post('/v0/updates', { page_size: 10 })
      const ids = ['i1', 'i2', 'i3', 'm1-first', 'j1', 'm3-first']
      assert.deepEqual(idsOf(all), ids)
      assert.equal(all.body.transactions[0].record_time, '0001-01-01T00:00:00.000000Z')
      for (let n = 1; n < 6; n += 1) {
        assert.deepEqual(idsOf(await scan.post('/v0/updates', { page_size: n })), ids.slice(0, n))
      }
      const skipping = await scan.post('/v0/updates', {
        page_size: 10,
        ...after(1, '0001-01-01T00:00:00Z'),
      })
      assert.deepEqual(idsOf(skipping), ids.slice(3))
      assert.deepEqual(
        idsOf(await scan.post('/v0/updates', { page_size: 10, ...after(0, day('10:00:00')) })),
        ids,
      )
      assert.deepEqual(
        idsOf(await scan.post('/v0/updates', { page_size: 10, ...after(2, day('10:00:00')) })),
        ids.slice(4),
      )
    })

    await t.test(
      'import-updates gives them by contract, named after it, without gaps',
      async () => {
        const ask = (fields: Json) =>
          scan.post('/v0/backfilling/import-updates', {
            migration_id: 1,
            after_update_id: '',
            limit: 2,
            ...fields,
          })
        const first = await ask({})
        assert.deepEqual(idsOf(first), ['00aa', '00bb'])
        const [item] = first.body.transactions
        assert.deepEqual(Object.keys(item.events_by_id), ['00aa:0'])
        assert.match(item.workflow_id, /^canton-network-acs-import/)
        assert.equal(item.record_time, '0001-01-01T00:00:00.000000Z')
        assert.deepEqual(idsOf(await ask({ after_update_id: '00bb' })), ['00cc'])
        assert.deepEqual(idsOf(await ask({ after_update_id: '00cc' })), [])
        assert.deepEqual(idsOf(await ask({ migration_id: 7 })), [])
        for (const fields of [
          { limit: 1001 },
          { after_update_id: 5 },
          { after_update_id: null },
          { after_update_id: 'a\0' },
          { after_update_id: '\ud800' },
        ]) {
          assert.equal((await ask(fields)).status, 400)
        }
      },
    )

    await t.test('migration-info leaves them out of the ranges', async () => {
      const { body } = await scan.post('/v0/backfilling/migration-info', { migration_id: 1 })
      assert.equal(body.record_time_range[0].min, day('10:00:00'))
      assert.equal(body.last_import_update_id, '00cc')
    })
  })

  test(`values are printed as the vectors say on ${engine.name}`, async (t) => {
    type Vector = { name: string; protobuf_json: Json; compact_json: unknown }
    const file = new URL('./data/value-vectors.json', import.meta.url)
    const read: Vector[] | { vectors: Vector[] } = JSON.parse(readFileSync(file, 'utf8'))
    const vectors = Array.isArray(read) ? read : read.vectors
    const itemOf = (n: number, value: unknown) =>
      at(`v${n}`, 1, `10:00:00.${String(n).padStart(6, '0')}`, {
        events_by_id: { [`v${n}:0`]: createdEvent(`v${n}:0`, { create_arguments: value }) },
      })
    const lines = vectors.map(({ protobuf_json, compact_json }, n) =>
      JSON.stringify({
        protobuf_json: itemOf(n, protobuf_json),
        compact_json: itemOf(n, compact_json),
      }),
    )
    const scan = await serve(t, engine, lines)
    const argumentsOf = (answer: { body: { transactions: Json[] } }) =>
      answer.body.transactions.map(
        (item) => (Object.values(item.events_by_id as Json)[0] as Json).create_arguments,
      )
    const body = { page_size: 1000 }
    assert.deepEqual(
      argumentsOf(await scan.post('/v1/updates', body)),
      vectors.map((v) => v.compact_json),
    )
    const lossless = await scan.post('/v1/updates', {
      ...body,
      ledger_value_encoding: 'protobuf_json',
    })
    assert.deepEqual(
      argumentsOf(lossless),
      vectors.map((v) => v.protobuf_json),
    )
    const quoted = { textMap: { entries: [{ key: 'a"\\\n', value: { unit: {} } }] } }
    const zero = { numeric: '0.0000000000' }
    const more = await serve(
      t,
      engine,
      [quoted, zero].map((value, n) => JSON.stringify(itemOf(n, value))),
    )
    assert.deepEqual(argumentsOf(await more.post('/v1/updates', body)), [{ 'a"\\\n': {} }, '0E-10'])
  })
})
