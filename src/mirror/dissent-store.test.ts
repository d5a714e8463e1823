import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../../test/support/engines.ts'
import type { Instant } from '../values/instant.ts'
import type { Dissent } from './dissent.ts'
import { insertDissent, readDissentCounts, readDissents } from './dissent-store.ts'

const DISSENT: Dissent = {
  peer: { base: 'http://a.test/api/scan', svName: 'SV a' },
  after: { migrationId: 2n ** 62n, recordTime: '2025-01-01T00:00:00.000000Z' as Instant },
  index: 3,
  encoding: 'compact_json',
  agreed: '{"a":1}',
  found: '{"a":2}',
}

forEachEngine((engine) => {
  test(`a dissent is kept with its evidence on ${engine.name}`, async (t) => {
    const db = await engine.open(t, 'app')
    await insertDissent(db, DISSENT, 1_700_000_000_000)
    await insertDissent(db, { ...DISSENT, after: undefined, found: 'NUL \0, half \ud800' }, 1)
    const [second, first] = await readDissents(db, 10)
    const { peer, ...evidence } = DISSENT
    assert.deepEqual(first, { ...evidence, ...peer, number: 1, notedAt: 1_700_000_000_000 })
    assert.equal(second?.after, undefined)
    assert.equal(second?.found, 'NUL \ufffd, half \ufffd')
  })

  test(`the newest are kept, and all are counted, on ${engine.name}`, async (t) => {
    const db = await engine.open(t, 'app')
    for (let n = 0; n < 510; n += 1) await insertDissent(db, { ...DISSENT, index: n }, n)
    const kept = await readDissents(db, 1000)
    assert.deepEqual([kept.length, kept[0]?.index, kept.at(-1)?.index], [500, 509, 10])
    assert.deepEqual(await readDissentCounts(db), new Map([[DISSENT.peer.base, 510]]))
  })
})
