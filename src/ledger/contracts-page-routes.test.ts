import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { openTestLedger, partyOf } from '../../test/support/embedded-ledger.ts'
import { forEachEngine } from '../../test/support/engines.ts'
import { ledgerErrorHandler } from '../http/ledger-error.ts'
import { authenticationOff } from '../users/caller.ts'
import { decimal } from '../values/decimal.ts'
import { chooseInputs, coinsOf, tap, transfer } from './payments.ts'
import { readingRoutes } from './reading-routes.ts'

type Listed = { contractEntry: { JsActiveContract: { createdEvent: { contractId: string } } } }
const idsOf = (list: Listed[]) =>
  list.map(({ contractEntry }) => contractEntry.JsActiveContract.createdEvent.contractId)

forEachEngine((engine) => {
  test(`${engine.name}: pages of any size hold what the list holds, now and at an earlier offset`, async (t) => {
    const db = await engine.open(t, 'participant')
    const { ledger, network } = await openTestLedger(t, db, {
      parties: ['alice', 'bob', 'carol'],
    })
    const [alice, bob, carol] = ['alice', 'bob', 'carol'].map(partyOf) as [string, string, string]
    for (const receiver of [alice, bob, carol, alice, bob, alice]) {
      await tap(ledger, network, { receiver, amount: decimal('5') })
    }
    const earlier = Number(ledger.end)
    const inputs = chooseInputs(await coinsOf(ledger, alice), decimal('12'))?.inputs ?? []
    const of = { sender: alice, receiver: bob, amount: decimal('12'), inputs }
    await transfer(ledger, network, of)

    const app = Fastify()
    t.after(() => app.close())
    app.setErrorHandler(ledgerErrorHandler)
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    app.decorateRequest('caller')
    await readingRoutes(app, { ledger, authentication: authenticationOff })
    const ask = async (path: string, body: object) => {
      const answer = await app.inject({ method: 'POST', url: path, payload: JSON.stringify(body) })
      return { status: answer.statusCode, body: answer.json() }
    }
    const filter = { cumulative: [] }
    for (const filters of [
      { filtersByParty: { [bob]: filter, [alice]: filter } },
      { filtersByParty: { [carol]: filter } },
      { filtersForAnyParty: filter },
    ]) {
      for (const activeAtOffset of [0, earlier, Number(ledger.end)]) {
        const query = { eventFormat: filters, activeAtOffset }
        const list = await ask('/v2/state/active-contracts', query)
        const expected = idsOf(list.body as Listed[]).sort()
        for (const maxPageSize of [1, 2, 1000]) {
          const found: string[] = []
          for (let pageToken: string | undefined = ''; pageToken !== undefined; ) {
            const path = '/v2/state/active-contracts-page'
            const { status, body } = await ask(path, { ...query, maxPageSize, pageToken })
            assert.equal(status, 200, JSON.stringify(body))
            const page = body as { activeContracts: Listed[]; nextPageToken?: string }
            assert.ok(page.activeContracts.length <= maxPageSize)
            found.push(...idsOf(page.activeContracts))
            pageToken = page.nextPageToken
          }
          assert.deepEqual(found.sort(), expected, `${maxPageSize} at ${activeAtOffset}`)
        }
      }
    }
    const eventFormat = { filtersByParty: { [alice]: filter } }
    for (const bad of [
      {},
      { eventFormat, pageToken: 'nonsense' },
      { eventFormat, pageToken: Buffer.from('["x"]').toString('base64url') },
      { eventFormat, pageToken: 7 },
      { eventFormat, maxPageSize: 0 },
      { eventFormat, activeAtOffset: 1_000_000 },
      { eventFormat, activeAtOffset: -1 },
    ]) {
      const { status } = await ask('/v2/state/active-contracts-page', bad)
      assert.equal(status, 400, JSON.stringify(bad))
    }
  })
})
