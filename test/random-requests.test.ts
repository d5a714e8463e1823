import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { scanOpenApi } from '../src/scan/openapi.ts'
import { forEachEngine } from './support/engines.ts'
import { openTestHistory } from './support/histories.ts'
import { answerChecker, type OpenApiDocument } from './support/openapi.ts'
import { assignment, importUpdate, plainLines } from './support/sample-items.ts'
import { createScanApp } from './support/scan-app.ts'

const REQUESTS = { sqlite: 20_000, postgres: 3_000 }
/** Requests under way at a time; more would only wait for each other. */
const PARALLEL = 20

const PATHS = [
  ...['/v0/updates', '/v1/updates', '/v2/updates'],
  ...['migration-info', 'updates-before', 'import-updates'].map(
    (name) => `/v0/backfilling/${name}`,
  ),
]

const oddNumber = fc.constantFrom(
  ...[
    '0',
    '-0',
    '1',
    '25',
    '-1',
    '1.5',
    '1e2',
    '1e999',
    '-1e-999',
    '1e+21',
    '2147483647',
    '2147483648',
  ],
  ...['9007199254740993', '9223372036854775807', '9223372036854775808', '-9223372036854775808'],
  ...['9'.repeat(400), `0.${'1'.repeat(400)}`, '0e400', '10.0', '1E5'],
)
const oddString = fc.oneof(
  fc.constantFrom(
    ...['', '10', '1e3', '\0', '\ud800', '😀', '__proto__', 'global-domain::1220abcd', 'a::b'],
    ...['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z', '2025-01-01T00:00:10+18:00'],
    ...['compact_json', 'protobuf_json', '2025-01-01', '0000-01-01T00:00:00Z', 'x'.repeat(3000)],
  ),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 6 }),
)
const oddJson: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: oddNumber },
  { weight: 4, arbitrary: oddString.map((text) => JSON.stringify(text)) },
  { weight: 1, arbitrary: fc.constantFrom('null', 'true', 'false', '{}', '[]', '[[1]]') },
  { weight: 1, arbitrary: fc.json({ maxDepth: 2 }) },
)

const FIELDS = [
  ...['page_size', 'after', 'ledger_value_encoding', 'daml_value_encoding', 'lossless'],
  ...[
    'migration_id',
    'synchronizer_id',
    'before',
    'at_or_after',
    'count',
    'after_update_id',
    'limit',
  ],
]
const field = fc.constantFrom(...FIELDS)
const after = fc
  .tuple(oddJson, oddJson)
  .map(([id, time]) => `{"after_migration_id":${id},"after_record_time":${time}}`)
/** Fields that may be there, each with anything or with something close to right. */
const mutated = fc
  .tuple(
    fc.constantFrom('{"page_size":7', '{"migration_id":1,"limit":3,"count":3'),
    fc.array(fc.tuple(field, fc.oneof(oddJson, after)), { maxLength: 5 }),
  )
  .map(
    ([start, fields]) =>
      `${start}${fields.map(([name, value]) => `,"${name}":${value}`).join('')}}`,
  )
const deep = fc
  .tuple(fc.constantFrom('[', '{"a":', '{"after":'), fc.integer({ min: 100, max: 30_000 }))
  .map(([open, depth]) => open.repeat(depth))
const body: fc.Arbitrary<string | Buffer> = fc.oneof(
  { weight: 12, arbitrary: mutated },
  { weight: 4, arbitrary: fc.json({ maxDepth: 3 }) },
  { weight: 2, arbitrary: oddJson },
  { weight: 2, arbitrary: fc.tuple(mutated, fc.nat(60)).map(([text, at]) => text.slice(0, at)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: deep },
)
const id = fc.oneof(
  fc.constantFrom(
    '122000000001',
    '%00',
    '%',
    '%zz',
    '..',
    '%2e%2e',
    'hash',
    'hash/ab',
    'a/b',
    '%F0%9F%98%80',
    '',
  ),
  fc.webSegment(),
)
const query = fc.oneof(
  fc.constantFrom(
    '',
    '?',
    '?daml_value_encoding=protobuf_json',
    '?lossless=1',
    '?a[b]=c',
    '?%zz=1',
  ),
  fc.webQueryParameters().map((text) => `?${text}`),
)
type Request = { method: 'GET' | 'POST'; path: string; body?: string | Buffer; type?: string }
const request: fc.Arbitrary<Request> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      method: fc.constant('POST' as const),
      path: fc.constantFrom(...PATHS),
      body,
      type: fc.constantFrom(
        'application/json',
        'text/plain',
        'nonsense',
        ';',
        'multipart/form-data',
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('/v0', '/v1', '/v2', '/v2/updates/hash', '/v3'), id, query)
      .map(([base, name, ask]) => ({
        method: 'GET' as const,
        path: `${base}${base.endsWith('hash') ? '' : '/updates'}/${name}${ask}`,
      })),
  },
)

forEachEngine((engine) => {
  test(`${REQUESTS[engine.name]} random requests never make the node fail on ${engine.name}`, async (t) => {
    const lines = [
      JSON.stringify(importUpdate('i1', '00aa')),
      ...plainLines(60),
      JSON.stringify(assignment({ record_time: '2025-06-01T00:00:00Z' })),
    ]
    const history = await openTestHistory(t, engine, lines)
    const app = await createScanApp(t, history)
    const check = answerChecker(scanOpenApi('test') as unknown as OpenApiDocument)
    const requests = fc.sample(request, REQUESTS[engine.name])[Symbol.iterator]()
    const statuses = new Map<number, number>()

    async function work(): Promise<void> {
      for (const { method, path, body: payload, type } of requests) {
        const answer = await app.inject({
          method,
          url: `/api/scan${path}`,
          ...(payload === undefined ? {} : { payload, headers: { 'content-type': type } }),
        })
        const { statusCode: status } = answer
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        assert.ok(
          status < 500,
          `${method} ${path} ${String(payload).slice(0, 500)} gives ${answer.body}`,
        )
        // Long answers are all alike.
        if (status === 200 && answer.body.length > 20_000) continue
        const mediaType = String(answer.headers['content-type'])
        check({
          method,
          path: path.split('?')[0] as string,
          status,
          body: answer.body,
          type: mediaType,
        })
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, work))
    for (const status of [200, 400, 404]) {
      assert.ok(
        (statuses.get(status) ?? 0) > REQUESTS[engine.name] / 100,
        JSON.stringify([...statuses]),
      )
    }
  })
})
