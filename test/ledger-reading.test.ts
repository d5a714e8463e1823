import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { COIN, formatOf, type Json, openWorld, ROUND, RULES } from './support/coin-world.ts'
import type { Cleanup } from './support/engines.ts'

const HOLDING = '#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding'
const INSTRUCTION =
  '#splice-api-token-transfer-instruction-v1:Splice.Api.Token.TransferInstructionV1:TransferInstruction'
const FACTORY =
  '#splice-api-token-transfer-instruction-v1:Splice.Api.Token.TransferInstructionV1:TransferFactory'
const LOCKED = '#splice-amulet:Splice.Amulet:LockedAmulet'

type World = Awaited<ReturnType<typeof openWorld>>
type View = { interfaceId: string; viewValue: Json; viewStatus: { code: number } }
type Shown = {
  contractId: string
  templateId: string
  createdEventBlob: string
  interfaceViews: View[]
  createArgument: Json
}

/** One node for all: what they read was there before, or is their own. */
let world: World
const cleaning: (() => unknown)[] = []
before(async () => {
  const scope: Cleanup = { after: (clean) => cleaning.unshift(clean) }
  world = await openWorld(scope)
})
after(async () => {
  for (const clean of cleaning) await clean()
})

const filterOf = (party: string, ...filters: object[]) => ({
  filtersByParty: {
    [party]: { cumulative: filters.map((identifierFilter) => ({ identifierFilter })) },
  },
})
const interfaceFilter = (interfaceId: string, more: object = {}) => ({
  InterfaceFilter: { value: { interfaceId, includeInterfaceView: true, ...more } },
})
const templateFilter = (templateId: string, more: object = {}) => ({
  TemplateFilter: { value: { templateId, ...more } },
})

async function contractsOf(eventFormat: object): Promise<Shown[]> {
  const answer = await world.ask('participant_admin', '/v2/state/active-contracts', { eventFormat })
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  type Entry = { contractEntry: { JsActiveContract: { createdEvent: Shown } } }
  return (answer.body as unknown as Entry[]).map(
    ({ contractEntry }) => contractEntry.JsActiveContract.createdEvent,
  )
}

test('completions tell of accepted and of refused commands, in order, with code and message', async () => {
  const { ask, party, submit, tap, ledger } = world
  const alice = party('alice')
  const start = Number(ledger.end)
  const accepted = await submit('alice', [alice], [tap(alice, '1')], { commandId: 'good' })
  const refused = await submit('alice', [alice], [tap(alice, '0')], { commandId: 'bad' })
  const repeated = await submit('alice', [alice], [tap(alice, '1')], { commandId: 'good' })
  assert.deepEqual([accepted.status, refused.status, repeated.status], [200, 400, 409])
  assert.equal((await ask('alice', '/v2/state/ledger-end')).body.offset, start + 3)
  const query = { userId: 'alice', parties: [alice], beginExclusive: start }
  const { body } = await ask('alice', '/v2/commands/completions', query)
  type Completion = {
    commandId: string
    status: { code: number; message: string }
    updateId: string
    offset: number
    actAs: string[]
    userId: string
  }
  const completions = (
    body as unknown as { completionResponse: { Completion: { value: Completion } } }[]
  ).map(({ completionResponse }) => completionResponse.Completion.value)
  assert.deepEqual(
    completions.map(({ commandId, offset, status, updateId }) => [
      commandId,
      offset - start,
      status.code,
      updateId === '',
    ]),
    [
      ['good', 1, 0, false],
      ['bad', 2, 9, true],
      ['good', 3, 6, true],
    ],
  )
  assert.match(completions[1]?.status.message ?? '', /^INTERPRETATION_USER_ERROR\(9,0\): \w/)
  assert.match(completions[2]?.status.message ?? '', /^DUPLICATE_COMMAND\(10,0\): /)
  assert.deepEqual([completions[1]?.actAs, completions[1]?.userId], [[alice], 'alice'])
  const others = await ask('bob', '/v2/commands/completions', {
    parties: [party('bob')],
    beginExclusive: start,
  })
  assert.deepEqual(others.body, [])
  const none = await ask('alice', '/v2/commands/completions', { beginExclusive: start })
  assert.deepEqual([none.status, none.body.code], [400, 'MISSING_FIELD'])
  const stranger = await ask('alice', '/v2/commands/completions', { ...query, userId: 'bob' })
  assert.equal(stranger.status, 403)
})

test('a refused command changes nothing but the end, and the history goes on after it', async () => {
  const { party, submit, tap, ledger, node } = world
  const alice = party('alice')
  const { updates } = node.history.view
  for (let n = 0; n < 5; n += 1) await submit('alice', [alice], [tap(alice, '0')])
  const done = await submit('alice', [alice], [tap(alice, '1')])
  assert.equal(done.status, 200)
  const last = await ledger.update(done.body.updateId as string)
  assert.ok(last)
  while (node.history.view.last?.recordTime !== last.recordTime) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(node.history.view.updates, updates + 1)
})

test('filters by template, by interface and for everything are cumulative', async () => {
  const { party, ask, tap, submit } = world
  const alice = party('alice')
  await submit('alice', [alice], [tap(alice, '3')])
  const everything = await contractsOf(filterOf(alice, { WildcardFilter: { value: {} } }))
  assert.deepEqual(everything, await contractsOf(formatOf(alice)))
  const nameOf = ({ templateId }: Shown) => templateId.slice(templateId.indexOf(':') + 1)
  const coins = await contractsOf(filterOf(alice, templateFilter(COIN)))
  assert.ok(coins.length > 0 && coins.every((shown) => nameOf(shown) === 'Splice.Amulet:Amulet'))
  assert.ok(coins.every(({ interfaceViews }) => interfaceViews.length === 0))
  const holdings = await contractsOf(filterOf(alice, interfaceFilter(HOLDING)))
  const isHolding = (shown: Shown) => /:(Locked)?Amulet$/.test(shown.templateId)
  assert.deepEqual(
    holdings.map(({ contractId }) => contractId).toSorted(),
    everything
      .filter(isHolding)
      .map(({ contractId }) => contractId)
      .toSorted(),
  )
  for (const { interfaceViews, createArgument } of holdings) {
    const [view] = interfaceViews
    const { amulet = createArgument } = createArgument as { amulet?: Json }
    assert.match(view?.interfaceId ?? '', /^[0-9a-f]{64}:Splice\.Api\.Token\.HoldingV1:Holding$/)
    assert.equal(view?.viewStatus.code, 0)
    assert.deepEqual(
      [view?.viewValue.owner, view?.viewValue.amount],
      [amulet.owner, (amulet.amount as Json).initialAmount],
    )
  }
  const without = interfaceFilter(HOLDING, { includeInterfaceView: false })
  assert.ok(
    (await contractsOf(filterOf(alice, without))).every((shown) => !shown.interfaceViews.length),
  )
  const both = await contractsOf(filterOf(alice, templateFilter(COIN), interfaceFilter(HOLDING)))
  assert.deepEqual(both, holdings)
  for (const filter of [interfaceFilter('#x:Y:Z'), templateFilter('#x:Y:Z')]) {
    const eventFormat = filterOf(alice, filter)
    const unknown = await ask('alice', '/v2/state/active-contracts', { eventFormat })
    assert.deepEqual(
      [unknown.status, unknown.body.code],
      [404, 'TEMPLATES_OR_INTERFACES_NOT_FOUND'],
    )
  }
  const odd = await ask('alice', '/v2/state/active-contracts', {
    eventFormat: filterOf(alice, { PackageFilter: {} }),
  })
  assert.deepEqual([odd.status, odd.body.code], [400, 'INVALID_ARGUMENT'])
})

test('a choice of an interface is exercised by its id, and updates are filtered by interface', async () => {
  const { party, dso, rules, round, submit, tap, ask, ledger } = world
  const [alice, bob] = [party('alice'), party('bob')]
  await submit('alice', [alice], [tap(alice, '9')])
  const coins = await contractsOf(filterOf(alice, templateFilter(COIN)))
  const held = coins.find(
    ({ createArgument }) =>
      createArgument.owner === alice &&
      (createArgument.amount as Json).initialAmount === '9.0000000000',
  )
  const [factory] = await contractsOf(filterOf(dso, interfaceFilter(FACTORY)))
  assert.ok(held && factory)
  assert.equal(factory.interfaceViews[0]?.viewValue.admin, dso)
  const context = { amuletRules: rules.contractId, openMiningRound: round.contractId }
  const transfer = {
    sender: alice,
    receiver: bob,
    amount: '4',
    instrumentId: { admin: dso, id: 'Amulet' },
    requestedAt: '2026-01-01T00:00:00Z',
    executeBefore: '2099-01-01T00:00:00Z',
    inputHoldingCids: [held.contractId],
    meta: { values: {} },
  }
  const start = Number(ledger.end)
  const exercise = (
    contractId: string,
    templateId: string,
    choice: string,
    choiceArgument: Json,
  ) => [{ ExerciseCommand: { templateId, contractId, choice, choiceArgument } }]
  const argument = { expectedAdmin: dso, transfer, extraArgs: { context } }
  const begun = await submit(
    'alice',
    [alice],
    exercise(factory.contractId, FACTORY, 'TransferFactory_Transfer', argument),
  )
  assert.equal(begun.status, 200, JSON.stringify(begun.body))
  const [instruction] = await contractsOf(filterOf(bob, interfaceFilter(INSTRUCTION)))
  assert.equal((instruction?.interfaceViews[0]?.viewValue.transfer as Json).receiver, bob)
  const accept = (templateId: string, choice: string) =>
    submit(
      'bob',
      [bob],
      exercise(instruction?.contractId ?? '', templateId, choice, { extraArgs: { context } }),
    )
  const wrong = [
    await accept(HOLDING, 'TransferInstruction_Accept'),
    await accept(INSTRUCTION, 'Fly'),
  ]
  assert.deepEqual(
    wrong.map(({ body }) => body.code),
    ['CONTRACT_DOES_NOT_IMPLEMENT_INTERFACE', 'COMMAND_PREPROCESSING_FAILED'],
  )
  assert.equal((await accept(INSTRUCTION, 'TransferInstruction_Accept')).status, 200)
  const includeTransactions = {
    eventFormat: filterOf(bob, interfaceFilter(HOLDING), interfaceFilter(INSTRUCTION)),
    transactionShape: 'TRANSACTION_SHAPE_ACS_DELTA',
  }
  const { body } = await ask('bob', '/v2/updates', {
    beginExclusive: start,
    updateFormat: { includeTransactions },
  })
  type Event = { CreatedEvent?: Shown; ArchivedEvent?: { implementedInterfaces: string[] } }
  type Listed = { update: { Transaction: { value: { events: Event[] } } } }
  const events = (body as unknown as Listed[]).flatMap(
    ({ update }) => update.Transaction.value.events,
  )
  assert.deepEqual(
    events.map(({ CreatedEvent, ArchivedEvent }) =>
      (CreatedEvent?.interfaceViews[0]?.interfaceId ?? ArchivedEvent?.implementedInterfaces[0])
        ?.split(':')
        .at(-1),
    ),
    ['TransferInstruction', 'TransferInstruction', 'Holding'],
  )
})

test('a disclosed contract needs the blob that says what the contract says', async () => {
  const { party, submit, tap } = world
  const [alice, bob] = [party('alice'), party('bob')]
  await submit('alice', [alice], [tap(alice, '6')])
  const withBlob = { includeCreatedEventBlob: true }
  const coins = await contractsOf(filterOf(alice, templateFilter(COIN, withBlob)))
  const [one, two] = coins.filter(({ createArgument }) => createArgument.owner === alice)
  assert.ok(one && two && one.createdEventBlob !== '')
  assert.equal((await contractsOf(filterOf(alice, templateFilter(COIN))))[0]?.createdEventBlob, '')
  const archive = (disclosed?: object) =>
    submit(
      'bob',
      [bob],
      [
        {
          ExerciseCommand: {
            templateId: COIN,
            contractId: one.contractId,
            choice: 'Archive',
            choiceArgument: {},
          },
        },
      ],
      disclosed === undefined ? {} : { disclosedContracts: [disclosed] },
    )
  const { contractId, createdEventBlob } = one
  const altered = Buffer.from(
    Buffer.from(createdEventBlob, 'base64')
      .toString()
      .replace(/"numeric":"\d/, '"numeric":"9'),
  ).toString('base64')
  assert.notEqual(altered, createdEventBlob)
  const cases: [disclosed: object | undefined, code: string, text: RegExp][] = [
    [undefined, 'CONTRACT_NOT_FOUND', /could not be found/],
    [{ contractId }, 'MISSING_FIELD', /createdEventBlob/],
    [{ contractId, createdEventBlob: 'bm9uc2Vuc2U=' }, 'INVALID_ARGUMENT', /Unable to decode/],
    [{ contractId, createdEventBlob: altered }, 'INVALID_ARGUMENT', /not what that contract says/],
    [{ contractId, createdEventBlob: two.createdEventBlob }, 'INVALID_ARGUMENT', /contract_id/],
    [{ contractId, createdEventBlob, templateId: LOCKED }, 'INVALID_ARGUMENT', /template_id/],
    // Bob now knows of it, and still may not archive it.
    [{ contractId, createdEventBlob, templateId: COIN }, 'DAML_AUTHORIZATION_ERROR', /consent/],
    [{ createdEventBlob }, 'DAML_AUTHORIZATION_ERROR', /consent/],
  ]
  for (const [disclosed, code, text] of cases) {
    const { body } = await archive(disclosed)
    assert.equal(body.code, code, JSON.stringify(body))
    assert.match(String(body.cause), text)
  }
})

test('lists are pages: the limit cuts them, and the last offset says where to go on', async () => {
  const { party, submit, tap, ask, ledger } = world
  const alice = party('alice')
  const start = Number(ledger.end)
  for (let n = 0; n < 7; n += 1) await submit('alice', [alice], [tap(alice, '1')])
  const updateFormat = { includeTransactions: { eventFormat: formatOf(alice) } }
  const seen: number[] = []
  for (let beginExclusive = start; ; ) {
    const path = '/v2/updates?limit=3'
    const { status, body } = await ask('alice', path, { beginExclusive, updateFormat })
    assert.equal(status, 200)
    const page = (
      body as unknown as { update: { Transaction: { value: { offset: number } } } }[]
    ).map(({ update }) => update.Transaction.value.offset)
    if (page.length === 0) break
    assert.ok(page.length <= 3)
    seen.push(...page)
    beginExclusive = page.at(-1) ?? beginExclusive
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 7 }, (_, n) => start + n + 1),
  )
  const bounded = await ask('alice', '/v2/updates', {
    beginExclusive: start,
    endInclusive: start + 2,
    updateFormat,
  })
  assert.equal((bounded.body as unknown as unknown[]).length, 2)
  for (const query of ['limit=0', 'limit=x', 'stream_idle_timeout_ms=-1']) {
    const wrong = await ask('alice', `/v2/updates?${query}`, { updateFormat })
    assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_ARGUMENT'])
  }
})

test('an empty list waits for something that the reader wants', async () => {
  const { party, submit, tap, ask, ledger } = world
  const [alice, bob] = [party('alice'), party('bob')]
  const updateFormat = { includeTransactions: { eventFormat: formatOf(bob) } }
  const beginExclusive = Number(ledger.end)
  const waiting = ask('bob', '/v2/updates?stream_idle_timeout_ms=20000', {
    beginExclusive,
    updateFormat,
  })
  await submit('alice', [alice], [tap(alice, '1')])
  await submit('bob', [bob], [tap(bob, '1')])
  const { body } = await waiting
  const [first] = body as unknown as [{ update: { Transaction: { value: { offset: number } } } }]
  assert.equal(first.update.Transaction.value.offset, beginExclusive + 2)
  const nothing = await ask('bob', '/v2/updates?stream_idle_timeout_ms=1', {
    beginExclusive: Number(ledger.end),
    updateFormat,
  })
  assert.deepEqual(nothing.body, [])
})

test('a list that would be too long is refused with a remedy, and the limit or a stream gets it', async () => {
  const { party, submit, tap, ask, node, tokenOf } = world
  const carol = party('carol')
  const commands = Array.from({ length: 1000 }, () => tap(carol, '1'))
  for (let n = 0; n < 10; n += 1) {
    const done = await submit('carol', [carol], commands)
    assert.equal(done.status, 200, JSON.stringify(done.body))
  }
  const path = '/v2/state/active-contracts'
  const body = { eventFormat: filterOf(carol, templateFilter(COIN)) }
  const refused = await ask('carol', path, body)
  assert.deepEqual(
    [refused.status, refused.body.code],
    [413, 'JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED'],
  )
  assert.match(String(refused.body.cause), /\?limit=10000.*WebSocket/)
  const cut = await ask('carol', `${path}?limit=5`, body)
  assert.equal((cut.body as unknown as unknown[]).length, 5)
  const url = `${node.urls.ledger.replace('http', 'ws')}${path}`
  const socket = new WebSocket(url, [`jwt.token.${await tokenOf('carol')}`, 'daml.ws.auth'])
  const ids = new Set<string>()
  socket.onmessage = ({ data }) => ids.add(String(data).match(/"contractId":"(\w+)"/)?.[1] ?? '')
  socket.onopen = () => socket.send(JSON.stringify(body))
  await new Promise((resolve) => {
    socket.onclose = resolve
  })
  assert.ok(ids.size > 10_000, `${ids.size} contracts`)
})

test('a stream ends when a right of its user is revoked, and says so', async () => {
  const { party, ask, submit, tap, node, tokenOf, ledger } = world
  const alice = party('alice')
  const rights = [{ kind: { CanReadAs: { value: { party: alice } } } }]
  const made = await ask('participant_admin', '/v2/users', { user: { id: 'reader' }, rights })
  assert.equal(made.status, 200, JSON.stringify(made.body))
  const url = `${node.urls.ledger.replace('http', 'ws')}/v2/updates`
  const token = await tokenOf('reader')
  const socket = new WebSocket(url, [`jwt.token.${token}`, 'daml.ws.auth'])
  const messages: string[] = []
  const first = Promise.withResolvers<void>()
  socket.onmessage = ({ data }) => {
    messages.push(String(data))
    first.resolve()
  }
  const updateFormat = { includeTransactions: { eventFormat: formatOf(alice) } }
  const beginExclusive = Number(ledger.end)
  socket.onopen = () => socket.send(JSON.stringify({ beginExclusive, updateFormat }))
  await submit('alice', [alice], [tap(alice, '1')])
  await first.promise
  const closed = new Promise((resolve) => {
    socket.onclose = resolve
  })
  await fetch(`${node.urls.ledger}/v2/users/reader/rights`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${await tokenOf('participant_admin')}` },
    body: JSON.stringify({ userId: 'reader', rights }),
  })
  await closed
  assert.equal(messages.length, 2)
  assert.equal(JSON.parse(messages[1] ?? '').code, 'STALE_STREAM_AUTHORIZATION')
})

test('rules and rounds are read by template filters of whom they concern', async () => {
  const { dso } = world
  const found = await contractsOf(filterOf(dso, templateFilter(RULES), templateFilter(ROUND)))
  assert.equal(found.length, 2)
})
