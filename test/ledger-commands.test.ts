import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  COIN,
  type Created,
  formatOf,
  type Json,
  OFFER,
  openWorld,
  ROUND,
  RULES,
} from './support/coin-world.ts'
import { post } from './support/node.ts'

test('commands are submitted, and their effects are read back', async (t) => {
  const world = await openWorld(t)
  const { ask, party, tap, submit, ledger } = world
  const alice = party('alice')
  const before = Number(ledger.end)
  const done = await submit('alice', [alice], [tap(alice, '12.5'), tap(alice, '1')])
  assert.deepEqual(done, {
    status: 200,
    body: { updateId: done.body.updateId, completionOffset: before + 1 },
  })
  const coins = await world.active('alice', alice, COIN)
  const amounts = coins.map(
    ({ createArgument }) =>
      (createArgument as { amount: { initialAmount: string } }).amount.initialAmount,
  )
  assert.ok(amounts.includes('12.5000000000'))
  assert.deepEqual((await ask('alice', '/v2/state/ledger-end')).body, { offset: before + 1 })
  const { body } = await ask('alice', '/v2/updates', {
    beginExclusive: before,
    updateFormat: {
      includeTransactions: {
        eventFormat: formatOf(alice),
        transactionShape: 'TRANSACTION_SHAPE_LEDGER_EFFECTS',
      },
    },
  })
  const [{ update }] = body as unknown as [
    { update: { Transaction: { value: { events: Json[]; updateId: string } } } },
  ]
  assert.equal(update.Transaction.value.updateId, done.body.updateId)
  assert.deepEqual(
    update.Transaction.value.events.map((event) => Object.keys(event)[0]),
    ['ExercisedEvent', 'CreatedEvent', 'ExercisedEvent', 'CreatedEvent'],
  )
  const completions = await ask('alice', '/v2/commands/completions', {
    parties: [alice],
    beginExclusive: before,
  })
  assert.match(JSON.stringify(completions.body), /"commandId":"c1"/)
})

test('a transaction comes back with what it created and archived', async (t) => {
  const { ask, party, tap, rules, round, active } = await openWorld(t)
  const [alice, bob] = [party('alice'), party('bob')]
  const commands = (actAs: string[], commandId: string, list: unknown[]) => ({
    commands: { commands: list, actAs, commandId },
  })
  const path = '/v2/commands/submit-and-wait-for-transaction'
  const tapped = await ask('alice', path, commands([alice], 'one', [tap(alice, '7')]))
  assert.equal(tapped.status, 200, JSON.stringify(tapped.body))
  type Transaction = {
    transaction: { events: { CreatedEvent?: Created; ArchivedEvent?: Created }[] }
  }
  const [event] = (tapped.body as unknown as Transaction).transaction.events
  const held = event?.CreatedEvent?.contractId
  assert.ok(held)
  const paid = await ask(
    'participant_admin',
    path,
    commands([alice, bob], 'two', [
      {
        ExerciseCommand: {
          templateId: RULES,
          contractId: rules.contractId,
          choice: 'AmuletRules_Transfer',
          choiceArgument: {
            transfer: {
              sender: alice,
              provider: alice,
              inputs: [{ tag: 'InputAmulet', value: held }],
              outputs: [{ receiver: bob, amount: '2.25', lock: null }],
            },
            openMiningRound: round.contractId,
          },
        },
      },
    ]),
  )
  const { events } = (paid.body as unknown as Transaction).transaction
  assert.deepEqual(
    events.map((shown) => Object.keys(shown)[0]),
    ['ArchivedEvent', 'CreatedEvent', 'CreatedEvent'],
  )
  assert.equal(events[0]?.ArchivedEvent?.contractId, held)
  const created = await ask(
    'alice',
    path,
    commands([alice], 'three', [
      {
        CreateAndExerciseCommand: {
          templateId: OFFER,
          createArguments: {
            sender: alice,
            receiver: bob,
            dso: party('DSO'),
            amount: { amount: '1', unit: 'AmuletUnit' },
            description: 'never mind',
            expiresAt: '2099-01-01T00:00:00Z',
            trackingId: 'x',
          },
          choice: 'TransferOffer_Withdraw',
          choiceArgument: { reason: 'never mind' },
        },
      },
    ]),
  )
  assert.equal(created.status, 200, JSON.stringify(created.body))
  assert.deepEqual((created.body as unknown as Transaction).transaction.events, [])
  assert.ok(
    !(await active('alice', alice, OFFER)).some(
      ({ createArgument }) => (createArgument as { trackingId: string }).trackingId === 'x',
    ),
  )
})

test('who may not act or read is refused, and nothing else is told', async (t) => {
  const { ask, party, tap, submit, ledger } = await openWorld(t)
  const [alice, bob] = [party('alice'), party('bob')]
  const { end } = ledger
  const refusals = [
    await submit('alice', [bob], [tap(bob, '1')]),
    await submit('alice', [alice, bob], [{ Nonsense: 1 }]),
    await submit('alice', [alice], [tap(alice, '1')], { readAs: [bob] }),
    await submit('alice', [alice], [tap(alice, '1')], { userId: 'bob' }),
    await ask('alice', '/v2/state/active-contracts', { eventFormat: formatOf(bob) }),
    await ask('alice', '/v2/state/active-contracts', { eventFormat: { filtersForAnyParty: {} } }),
    await ask('alice', '/v2/updates', { updateFormat: { includeReassignments: formatOf(bob) } }),
    await ask('alice', '/v2/commands/completions', { parties: [bob] }),
  ]
  for (const { status, body } of refusals) {
    assert.equal(status, 403)
    assert.equal(body.code, 'NA')
  }
  assert.equal(ledger.end, end)
  const anonymous = await fetch(`${(await openWorld(t)).node.urls.ledger}/v2/state/ledger-end`)
  assert.equal(anonymous.status, 401)
})

test('what is wrong with a command is told with its code and place', async (t) => {
  const world = await openWorld(t)
  const { party, tap, submit, ask, ledger } = world
  const alice = party('alice')
  const exercise = (changes: object) => {
    const { ExerciseCommand } = tap(alice, '1')
    return [{ ExerciseCommand: { ...ExerciseCommand, ...changes } }]
  }
  const cases: [list: unknown[], status: number, code: string, more?: object][] = [
    [exercise({ templateId: '#x:Y:Z' }), 404, 'TEMPLATES_OR_INTERFACES_NOT_FOUND'],
    [exercise({ choice: 'Fly' }), 400, 'COMMAND_PREPROCESSING_FAILED'],
    [exercise({ contractId: '00ab' }), 404, 'CONTRACT_NOT_FOUND'],
    [
      exercise({ templateId: ROUND, choice: 'Archive', choiceArgument: {} }),
      400,
      'WRONGLY_TYPED_CONTRACT',
    ],
    [[tap(party('bob'), '1')], 400, 'DAML_AUTHORIZATION_ERROR'],
    [[tap(alice, '0')], 400, 'INTERPRETATION_USER_ERROR'],
    [[tap(alice, '1')], 400, 'INVALID_PRESCRIBED_SYNCHRONIZER_ID', { synchronizerId: 'x::y' }],
    [[], 400, 'MISSING_FIELD'],
    [[tap(alice, '1')], 400, 'MISSING_FIELD', { commandId: '' }],
  ]
  for (const [list, status, code, more] of cases) {
    const answer = await submit('alice', [alice], list, more)
    assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(answer.body))
  }
  const malformed = await submit('alice', [alice], [tap(alice, '1'), tap(alice, 'much')])
  assert.equal(malformed.status, 400)
  assert.equal(
    (malformed.body.context as { path: string }).path,
    'commands[1].ExerciseCommand.choiceArgument.amount',
  )
  const once = { commandId: 'same' }
  assert.equal((await submit('alice', [alice], [tap(alice, '1')], once)).status, 200)
  const again = await submit('alice', [alice], [tap(alice, '1')], once)
  assert.deepEqual([again.status, again.body.code], [409, 'DUPLICATE_COMMAND'])
  const late = await ask('alice', '/v2/updates', {
    beginExclusive: Number(ledger.end) + 5,
    updateFormat: { includeReassignments: formatOf(alice) },
  })
  assert.deepEqual([late.status, late.body.code], [400, 'OFFSET_AFTER_LEDGER_END'])
})

test('a contract is reassigned through the API, and the history shows the pair', async (t) => {
  const { ask, party, active, ledger, node } = await openWorld(t)
  const alice = party('alice')
  const [held] = await active('alice', alice, COIN)
  assert.ok(held)
  const { body } = await ask('alice', '/v2/state/connected-synchronizers')
  const [source, target] = (body.connectedSynchronizers as { synchronizerId: string }[]).map(
    ({ synchronizerId }) => synchronizerId,
  )
  const path = '/v2/commands/submit-and-wait-for-reassignment'
  const reassign = (command: object, user = 'alice') =>
    ask(user, path, {
      reassignmentCommands: { submitter: alice, commandId: 'r', commands: [{ command }] },
    })
  const unassign = { UnassignCommand: { value: { contractId: held.contractId, source, target } } }
  assert.equal((await reassign(unassign, 'bob')).status, 403)
  const out = await reassign(unassign)
  assert.equal(out.status, 200, JSON.stringify(out.body))
  const [event] = (
    out.body.reassignment as {
      events: { JsUnassignedEvent: { value: { reassignmentId: string } } }[]
    }
  ).events
  const reassignmentId = event?.JsUnassignedEvent.value.reassignmentId
  const back = await reassign({ AssignCommand: { value: { reassignmentId, source, target } } })
  assert.equal(back.status, 200, JSON.stringify(back.body))
  assert.equal((await ledger.contract(held.contractId))?.synchronizerId, target)
  const [, assigned] = await ledger.updatesAfter(ledger.end - 2n, 2)
  assert.ok(assigned)
  while (node.history.view.last?.recordTime !== assigned.recordTime) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  const page = await post(`${node.urls.scan}/v1/updates`, { page_size: 1000 })
  const { transactions } = page.body as { transactions: { event?: { unassign_id: string } }[] }
  const pair = transactions.filter(({ event }) => event?.unassign_id === reassignmentId)
  assert.equal(pair.length, 2)
})

test('a WebSocket streams updates as they come', async (t) => {
  const { node, party, tap, submit, tokenOf, ledger } = await openWorld(t)
  const alice = party('alice')
  const url = `${node.urls.ledger.replace('http', 'ws')}/v2/updates`
  const socket = new WebSocket(url, [`jwt.token.${await tokenOf('alice')}`, 'daml.ws.auth'])
  const messages: { update: { Transaction: { value: { offset: number } } } }[] = []
  let wake = () => {}
  socket.onmessage = ({ data }) => {
    messages.push(JSON.parse(String(data)))
    wake()
  }
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  assert.equal(socket.protocol, 'daml.ws.auth')
  const start = Number(ledger.end)
  socket.send(
    JSON.stringify({
      beginExclusive: start,
      updateFormat: { includeTransactions: { eventFormat: formatOf(alice) } },
    }),
  )
  for (let n = 0; n < 5; n += 1) await submit('alice', [alice], [tap(alice, '1')])
  while (messages.length < 5) {
    await new Promise<void>((resolve) => {
      wake = resolve
    })
  }
  assert.deepEqual(
    messages.map(({ update }) => update.Transaction.value.offset),
    [1, 2, 3, 4, 5].map((n) => start + n),
  )
  const closed = new Promise((resolve) => {
    socket.onclose = resolve
  })
  socket.close()
  await closed
  const refused = new WebSocket(url, ['daml.ws.auth'])
  await new Promise((resolve) => {
    refused.onerror = resolve
  })
})

test('a WebSocket that asks for what it may not read gets the error and is closed', async (t) => {
  const { node, party, tokenOf } = await openWorld(t)
  const url = `${node.urls.ledger.replace('http', 'ws')}/v2/state/active-contracts`
  const socket = new WebSocket(url, [`jwt.token.${await tokenOf('alice')}`, 'daml.ws.auth'])
  const messages: string[] = []
  socket.onmessage = ({ data }) => messages.push(String(data))
  socket.onopen = () => socket.send(JSON.stringify({ eventFormat: formatOf(party('bob')) }))
  await new Promise((resolve) => {
    socket.onclose = resolve
  })
  assert.deepEqual(
    messages.map((text) => JSON.parse(text).code),
    ['NA'],
  )
})

test('with --sim-time an offer expires 48 hours later', async (t) => {
  const { ask, party, submit, active, node } = await openWorld(t, { simTime: true })
  const [alice, bob] = [party('alice'), party('bob')]
  const { now } = (await ask('alice', '/v2/time')).body as unknown as { now: string }
  const expiresAt = new Date(Date.parse(now) + 86_400_000).toISOString()
  const offer = {
    CreateCommand: {
      templateId: OFFER,
      createArguments: {
        sender: alice,
        receiver: bob,
        dso: party('DSO'),
        amount: { amount: '1', unit: 'AmuletUnit' },
        description: '',
        expiresAt,
        trackingId: 'late',
      },
    },
  }
  assert.equal((await submit('alice', [alice], [offer])).status, 200)
  const later = await ask('alice', '/v2/time', { advance: '48h' })
  assert.equal(Date.parse(String(later.body.now)) - Date.parse(now), 2 * 86_400_000)
  const offers = await active('bob', bob, OFFER)
  const late = offers.find(
    ({ createArgument }) => (createArgument as { trackingId: string }).trackingId === 'late',
  )
  assert.ok(late)
  const accept = await submit(
    'bob',
    [bob],
    [
      {
        ExerciseCommand: {
          templateId: OFFER,
          contractId: late.contractId,
          choice: 'TransferOffer_Accept',
          choiceArgument: {},
        },
      },
    ],
  )
  assert.deepEqual([accept.status, accept.body.code], [400, 'INTERPRETATION_USER_ERROR'])
  assert.equal((await ask('alice', '/v2/time', { set: now })).status, 400)
  assert.equal(node.history.view.last?.recordTime.slice(0, 10), now.slice(0, 10))
})
