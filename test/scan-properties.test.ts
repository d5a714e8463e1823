import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Encoding } from '../src/history/encode.ts'
import { prepareLine } from '../src/history/encode.ts'
import type { History } from '../src/history/history.ts'
import type { Position } from '../src/history/position.ts'
import { verifyHistory } from '../src/history/verify.ts'
import { type Instant, instantFromMicros, microsOf } from '../src/values/instant.ts'
import type { RandomUpdate } from './support/draft-items.ts'
import { type Cleanup, forEachEngine } from './support/engines.ts'
import { exportText, importText, newPool, openTestHistory, pageText } from './support/histories.ts'
import { historyArbitrary } from './support/random-history.ts'
import { nodeIdsOf, referenceItem } from './support/reference.ts'
import { reformat } from './support/reformat.ts'

const histories = historyArbitrary({ maxUpdates: 120 })
const RUNS = { sqlite: 15, postgres: 8 }

const VERSIONS = [0, 1, 2] as const
const ENCODINGS = ['compact_json', 'protobuf_json'] as const
const form = fc.record({
  version: fc.constantFrom(...VERSIONS),
  encoding: fc.constantFrom(...ENCODINGS),
})

/** Cleans up after each run of a property, not only after the test. */
async function withCleanup<T>(work: (cleanup: Cleanup) => Promise<T>): Promise<T> {
  await using stack = new AsyncDisposableStack()
  return await work({ after: (clean) => stack.defer(async () => clean()) })
}

function referencePage(
  updates: RandomUpdate[],
  asked: { version: 0 | 1 | 2; encoding: Encoding },
  nodeIds?: (number[] | undefined)[],
): string[] {
  return updates.map(({ line }, n) => {
    const own = nodeIds?.[n]
    return referenceItem(line, { ...asked, offset: n + 1, ...(own ? { nodeIds: own } : {}) })
  })
}

/** A position on, beside or between updates, in one of the migrations or another. */
function positionNear(updates: RandomUpdate[]): fc.Arbitrary<Position> {
  const elsewhere = fc.record({
    migrationId: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    recordTime: fc
      .bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n })
      .map((micros) => instantFromMicros(micros) as Instant),
  })
  if (updates.length === 0) return elsewhere
  const nearby = fc
    .tuple(
      fc.constantFrom(...updates),
      fc.constantFrom(-1n, 0n, 0n, 0n, 1n),
      fc.constantFrom(-1n, 0n, 0n, 0n, 0n, 1n),
    )
    .map(([{ migrationId, recordTime }, microsAside, migrationsAside]) => ({
      migrationId: migrationId + migrationsAside,
      recordTime:
        instantFromMicros(microsOf(recordTime as Instant) + microsAside) ?? (recordTime as Instant),
    }))
  return fc.oneof({ weight: 4, arbitrary: nearby }, { weight: 1, arbitrary: elsewhere })
}

function isAfter(update: RandomUpdate, { migrationId, recordTime }: Position): boolean {
  if (update.migrationId !== migrationId) return update.migrationId > migrationId
  return update.recordTime > recordTime
}

async function appendInBatches(history: History, lines: string[], sizes: number[]): Promise<void> {
  for (let at = 0, n = 0; at < lines.length; n += 1) {
    const size = sizes[n % sizes.length] as number
    await history.append(lines.slice(at, at + size).map(prepareLine))
    at += size
  }
}

const batchSizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 })

forEachEngine((engine) => {
  const runs = { numRuns: RUNS[engine.name] }

  test(`any page at any position, in every version and encoding, is that slice of the whole on ${engine.name}`, async () => {
    await fc.assert(
      fc.asyncProperty(histories, batchSizes, fc.gen(), (updates, sizes, draw) =>
        withCleanup(async (cleanup) => {
          const history = await openTestHistory(cleanup, engine)
          await appendInBatches(
            history,
            updates.map(({ line }) => line),
            sizes,
          )
          for (const version of VERSIONS) {
            for (const encoding of ENCODINGS) {
              const whole = referencePage(updates, { version, encoding })
              assert.equal(await pageText(history, { version, encoding }), whole.join(','))
              for (let n = 0; n < 12; n += 1) {
                const after = draw(() => positionNear(updates))
                const pageSize = draw(() =>
                  fc.oneof(fc.integer({ min: 1, max: 130 }), fc.constant(2 ** 31 - 1)),
                )
                const first = updates.findIndex((update) => isAfter(update, after))
                const expected = first < 0 ? [] : whole.slice(first, first + pageSize)
                const page = await pageText(history, { version, encoding, after, pageSize })
                assert.equal(page, expected.join(','))
              }
            }
          }
        }),
      ),
      runs,
    )
  })

  test(`any split into pages, following the last update, is the whole on ${engine.name}`, async () => {
    await fc.assert(
      fc.asyncProperty(
        histories,
        batchSizes,
        form,
        fc.integer({ min: 1, max: 60 }),
        (updates, sizes, asked, pageSize) =>
          withCleanup(async (cleanup) => {
            const history = await openTestHistory(cleanup, engine)
            await appendInBatches(
              history,
              updates.map(({ line }) => line),
              sizes,
            )
            const whole = referencePage(updates, asked)
            const pages: string[] = []
            for (let at = 0; at < updates.length; at += pageSize) {
              const last = updates[at - 1]
              const after = last && {
                migrationId: last.migrationId,
                recordTime: last.recordTime as Instant,
              }
              pages.push(await pageText(history, { ...asked, after, pageSize }))
            }
            assert.equal(pages.join(','), whole.join(','))
          }),
      ),
      runs,
    )
  })

  test(`two nodes fed differently formatted input answer alike, byte for byte, on ${engine.name}`, async (t) => {
    const pool = newPool(t)
    await fc.assert(
      fc.asyncProperty(histories, fc.nat(), batchSizes, (updates, seed, sizes) =>
        withCleanup(async (cleanup) => {
          const one = await openTestHistory(cleanup, engine)
          await appendInBatches(
            one,
            updates.map(({ line }) => line),
            sizes,
          )
          const other = await openTestHistory(cleanup, engine)
          const lines = updates.map(({ line }, n) => reformat(line, seed + n))
          await importText(other, pool, lines.join('\n'))
          for (const encoding of ENCODINGS) {
            for (const version of [1, 2] as const) {
              const asked = { version, encoding }
              assert.equal(await pageText(other, asked), await pageText(one, asked))
            }
            const nodeIds = lines.map((line) => nodeIdsOf(line))
            const own = referencePage(updates, { version: 0, encoding }, nodeIds)
            assert.equal(await pageText(other, { version: 0, encoding }), own.join(','))
          }
        }),
      ),
      runs,
    )
  })

  test(`export and import go round byte for byte, and verify finds nothing, on ${engine.name}`, async (t) => {
    const pool = newPool(t)
    await fc.assert(
      fc.asyncProperty(histories, fc.gen(), (updates, draw) =>
        withCleanup(async (cleanup) => {
          const lines = updates.map(({ line }) => `${line}\n`)
          const history = await openTestHistory(cleanup, engine)
          assert.equal((await importText(history, pool, lines.join(''))).stored, updates.length)
          assert.equal(await exportText(history), lines.join(''))
          for (let n = 0; n < 6; n += 1) {
            const from = draw(() => fc.option(positionNear(updates), { nil: undefined }))
            const to = draw(() => fc.option(positionNear(updates), { nil: undefined }))
            const isAtOrAfter = (update: RandomUpdate, position: Position) =>
              isAfter(update, position) ||
              (update.migrationId === position.migrationId &&
                update.recordTime === position.recordTime)
            const expected = lines.filter((_, i) => {
              const update = updates[i] as RandomUpdate
              return (!from || isAtOrAfter(update, from)) && !(to && isAtOrAfter(update, to))
            })
            const range = { ...(from ? { from } : {}), ...(to ? { to } : {}) }
            assert.equal(await exportText(history, range), expected.join(''))
          }
          const copy = await openTestHistory(cleanup, engine)
          await importText(copy, pool, await exportText(history))
          for (const version of VERSIONS) {
            assert.equal(await pageText(copy, { version }), await pageText(history, { version }))
          }
          assert.equal((await verifyHistory(copy, { pool })).checked, updates.length)
        }),
      ),
      runs,
    )
  })
})
