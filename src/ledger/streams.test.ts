import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openTestLedger, partyOf } from '../../test/support/embedded-ledger.ts'
import { forEachEngine } from '../../test/support/engines.ts'
import { readCompletions } from './streams.ts'

forEachEngine((engine) => {
  test(`${engine.name}: a reader that waits ends when the ledger is closed`, async (t) => {
    const { ledger } = await openTestLedger(t, await engine.open(t, 'participant'))
    const { signal } = new AbortController()
    const range = { after: ledger.end, until: undefined, signal }
    const reader = readCompletions(ledger, range, { userId: 'alice', parties: [partyOf('alice')] })
    const next = reader.next()
    await ledger.close()
    assert.deepEqual(await next, { value: undefined, done: true })
  })
})
