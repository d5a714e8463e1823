import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COIN, formatOf, type Json, openWorld } from './support/coin-world.ts'

test('an update is found by its id and by its offset, as an update and as a transaction', async (t) => {
  const { ask, party, submit, tap } = await openWorld(t)
  const alice = party('alice')
  const made = await submit('alice', [alice], [tap(alice, '7')])
  const { updateId, completionOffset: offset } = made.body
  const transactionFormat = {
    eventFormat: formatOf(alice),
    transactionShape: 'TRANSACTION_SHAPE_LEDGER_EFFECTS',
  }
  const updateFormat = { includeTransactions: transactionFormat }
  const updateOf = (body: Json) =>
    (body.update as { Transaction: { value: Json } }).Transaction.value
  const byId = await ask('alice', '/v2/updates/update-by-id', { updateId, updateFormat })
  const byOffset = await ask('alice', '/v2/updates/update-by-offset', { offset, updateFormat })
  const transaction = await ask('alice', '/v2/updates/transaction-by-id', {
    updateId,
    transactionFormat,
  })
  const atOffset = await ask('alice', '/v2/updates/transaction-by-offset', {
    offset,
    transactionFormat,
  })
  assert.equal(updateOf(byId.body).updateId, updateId)
  assert.deepEqual(byOffset.body, byId.body)
  assert.deepEqual(transaction.body.transaction, updateOf(byId.body))
  assert.deepEqual(atOffset.body, transaction.body)
  const older = await ask('alice', '/v2/updates/transaction-by-id', {
    updateId,
    requestingParties: [alice],
  })
  assert.equal((older.body.transaction as Json).updateId, updateId)
})

test('an update that is not there, or that the caller may not see, is not found', async (t) => {
  const { ask, party, submit, tap, ledger } = await openWorld(t)
  const [alice, bob] = [party('alice'), party('bob')]
  const { body } = await submit('alice', [alice], [tap(alice, '7')])
  const { updateId, completionOffset: offset } = body
  const asBob = { transactionFormat: { eventFormat: formatOf(bob) } }
  const asked: [path: string, body: object, status: number][] = [
    ['transaction-by-id', { updateId, ...asBob }, 404],
    ['transaction-by-offset', { offset, ...asBob }, 404],
    ['transaction-by-offset', { offset: Number(ledger.end) + 1, ...asBob }, 404],
    ['transaction-by-id', { updateId: 'none', ...asBob }, 404],
    ['transaction-by-offset', asBob, 400],
    ['transaction-by-offset', { offset: 'x', ...asBob }, 400],
    ['transaction-by-id', { updateId }, 400],
    ['transaction-by-id', { updateId, requestingParties: [alice] }, 403],
  ]
  for (const [path, request, status] of asked) {
    const answer = await ask('bob', `/v2/updates/${path}`, request)
    assert.equal(answer.status, status, `${path} ${JSON.stringify(answer.body)}`)
  }
})

test('the older path for transactions alone tells no reassignments', async (t) => {
  const { ask, party } = await openWorld(t)
  const filter = formatOf(party('alice'))
  const all = await ask('alice', '/v2/updates', { filter })
  const flat = await ask('alice', '/v2/updates/flats', { filter })
  const updates = (body: unknown) => (body as { update: Json }[]).map(({ update }) => update)
  assert.ok(updates(all.body).some((update) => 'Reassignment' in update))
  assert.deepEqual(
    updates(flat.body),
    updates(all.body).filter((update) => 'Transaction' in update),
  )
})

test('a wallet that asks for the whole token standard gets what there is of it', async (t) => {
  const { ask, party } = await openWorld(t)
  const alice = party('alice')
  const read = async (...interfaceIds: string[]) => {
    const cumulative = interfaceIds.map((interfaceId) => ({
      identifierFilter: { InterfaceFilter: { value: { interfaceId, includeInterfaceView: true } } },
    }))
    const filtersByParty = { [alice]: { cumulative } }
    return ask('alice', '/v2/state/active-contracts', { eventFormat: { filtersByParty } })
  }
  const holding = '#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding'
  const allocation = '#splice-api-token-allocation-v1:Splice.Api.Token.AllocationV1:Allocation'
  const held = await read(holding)
  assert.deepEqual((await read(holding, allocation)).body, held.body)
  assert.deepEqual((await read(allocation)).body, [])
  assert.equal((await read('#nobody:No.Such:Interface')).status, 404)
})

test('a contract tells how it came and went to those who see it', async (t) => {
  const { ask, party, submit, tap, active, dso } = await openWorld(t)
  const alice = party('alice')
  await submit('alice', [alice], [tap(alice, '7.25')])
  const coin = (await active('alice', alice, COIN)).at(-1)
  assert.ok(coin)
  const { contractId } = coin
  const path = '/v2/events/events-by-contract-id'
  const request = { contractId, eventFormat: formatOf(alice) }
  const { body } = await ask('alice', path, request)
  assert.deepEqual((body.created as Json).createdEvent, coin)
  assert.ok(!('archived' in body))
  const archive = { templateId: COIN, contractId, choice: 'Archive', choiceArgument: {} }
  const gone = await submit('participant_admin', [alice, dso], [{ ExerciseCommand: archive }])
  const { archived } = (await ask('alice', path, request)).body as {
    archived: { archivedEvent: Json; synchronizerId: string }
  }
  const { archivedEvent } = archived
  assert.deepEqual(
    [archivedEvent.contractId, archivedEvent.offset, archivedEvent.nodeId],
    [contractId, gone.body.completionOffset, 0],
  )
  assert.match(archived.synchronizerId, /::/)
  const strangers = [
    await ask('bob', path, { contractId, eventFormat: formatOf(party('bob')) }),
    await ask('alice', path, { ...request, contractId: '00ab' }),
  ]
  for (const { status, body } of strangers) {
    assert.deepEqual([status, body.code], [404, 'CONTRACT_EVENTS_NOT_FOUND'])
  }
})
