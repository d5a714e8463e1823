import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../../test/support/engines.ts'
import { listAudit, recordAct } from './audit.ts'

forEachEngine((engine) => {
  test(`${engine.name}: an act of an automation is recorded once, however often it is told`, async (t) => {
    const db = await engine.open(t, 'participant')
    const act = (trackingId: string, party = 'alice') => ({
      userId: undefined,
      party,
      trackingId,
      after: { what: 'send 5 to bob' },
    })
    await recordAct(db, act('one'))
    await recordAct(db, act('two'))
    await recordAct(db, act('one'))
    await recordAct(db, act('one', 'bob'))
    const subject = { kind: 'party' as const, id: 'alice' }
    const { entries } = await listAudit(db, { subject, pageSize: undefined, pageToken: '' })
    assert.equal(entries.length, 2)
    assert.deepEqual(
      [entries[0]?.action, entries[0]?.after],
      ['automation.act', { what: 'send 5 to bob' }],
    )
    assert.match(entries[0]?.traceId ?? '', /^[0-9a-f]{32}$/)
  })
})
