import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import fastify from 'fastify'
import { readingRoutes } from '../src/ledger/reading-routes.ts'
import { authenticationOff } from '../src/users/caller.ts'
import { COIN, formatOf, type Json, openWorld, RULES } from './support/coin-world.ts'

// What clients send that no honest client would, and what it must not do to the others.

let world: Awaited<ReturnType<typeof openWorld>>
const cleaning: (() => unknown)[] = []
before(async () => {
  world = await openWorld({ after: (clean) => cleaning.unshift(clean) })
})
after(async () => {
  for (const clean of cleaning) await clean()
})

/** The largest amount that a decimal holds. */
const LARGEST = '9999999999999999999999999999.9999999999'
const INSTRUCTION =
  '#splice-api-token-transfer-instruction-v1:Splice.Api.Token.TransferInstructionV1:TransferInstruction'

const STRANGE = ['a\u0000b', '\ud800', 'tab\t', 'é', 'x'.repeat(256)]

test('ids with strange characters, or too long, are refused before anything is stored', async () => {
  const { party, submit, tap, ledger } = world
  const alice = party('alice')
  const { end } = ledger
  for (const id of STRANGE) {
    for (const key of ['commandId', 'workflowId', 'submissionId', 'synchronizerId', 'userId']) {
      const { status, body } = await submit('alice', [alice], [tap(alice, '1')], { [key]: id })
      assert.deepEqual([status, body.code], [400, 'INVALID_FIELD'], `${key} ${JSON.stringify(id)}`)
    }
    const { status, body } = await submit('participant_admin', [id], [tap(alice, '1')])
    assert.deepEqual([status, body.code], [400, 'INVALID_ARGUMENT'], JSON.stringify(id))
  }
  assert.equal(ledger.end, end)
})

test('the same holds for parties that are read as, and for contracts that are named', async () => {
  const { party, ask, submit } = world
  const alice = party('alice')
  for (const id of STRANGE) {
    const read = await ask('participant_admin', '/v2/state/active-contracts', {
      eventFormat: formatOf(id),
    })
    assert.deepEqual([read.status, read.body.code], [400, 'INVALID_ARGUMENT'])
  }
  for (const contractId of ['zz', '00a', "00'; drop table x", '00\u0000', '00'.repeat(256)]) {
    const command = { templateId: COIN, contractId, choice: 'Archive', choiceArgument: {} }
    const { status, body } = await submit('alice', [alice], [{ ExerciseCommand: command }])
    assert.deepEqual([status, body.code], [400, 'INVALID_FIELD'])
    const reassigned = await ask('alice', '/v2/commands/submit-and-wait-for-reassignment', {
      reassignmentCommands: {
        submitter: alice,
        commandId: 'r',
        commands: [{ command: { UnassignCommand: { value: { contractId } } } }],
      },
    })
    assert.deepEqual([reassigned.status, reassigned.body.code], [400, 'INVALID_FIELD'])
  }
})

test('an unknown shape and an offset that is none are refused', async () => {
  const { party, ask } = world
  const eventFormat = formatOf(party('alice'))
  const shaped = (transactionShape: unknown) => ({
    updateFormat: { includeTransactions: { transactionShape, eventFormat } },
  })
  const wrong = [
    shaped('TRANSACTION_SHAPE_FLAT'),
    shaped('constructor'),
    { ...shaped(''), beginExclusive: [5] },
    { ...shaped(''), beginExclusive: { toString: 5 } },
    { ...shaped(''), beginExclusive: -1 },
    { ...shaped(''), beginExclusive: 1.5 },
    { ...shaped(''), endInclusive: true },
  ]
  for (const body of wrong) {
    const answer = await ask('alice', '/v2/updates', body)
    assert.deepEqual([answer.status, answer.body.code], [400, 'INVALID_FIELD'])
  }
})

test('coins that hold more together than a decimal can are not merged', async () => {
  const { party, submit, tap, active } = world
  const alice = party('alice')
  await submit('alice', [alice], [tap(alice, LARGEST), tap(alice, LARGEST)])
  const huge = (await active('alice', alice, COIN)).filter((coin) => amountOf(coin) === LARGEST)
  assert.equal(huge.length, 2)
  const { status, body } = await submit('alice', [alice], [transfer(huge, '1')])
  assert.deepEqual([status, body.code], [400, 'INTERPRETATION_USER_ERROR'])
  assert.match(String(body.cause), /28 digits/)
  const spent = await submit('alice', [alice], [transfer(huge.slice(0, 1), LARGEST)])
  assert.equal(spent.status, 200, JSON.stringify(spent.body))
})

test('traffic that could not be counted is not sold, and does not harm who submits beside', async () => {
  const { party, submit, tap, active, rules, round, dso } = world
  const alice = party('alice')
  const [known] = await active(
    'participant_admin',
    dso,
    '#splice-amulet:Splice.DecentralizedSynchronizer:MemberTraffic',
  )
  assert.ok(known)
  const { memberId, synchronizerId, migrationId } = known.createArgument
  await submit('alice', [alice], [tap(alice, LARGEST)])
  const purse = await active('alice', alice, COIN)
  const coin = purse.find((one) => amountOf(one) === LARGEST)
  assert.ok(coin)
  const choiceArgument = {
    inputs: [{ tag: 'InputAmulet', value: coin.contractId }],
    openMiningRound: round.contractId,
    provider: alice,
    memberId,
    synchronizerId,
    migrationId,
    trafficAmount: '9223372036854775807',
  }
  const { contractId } = rules
  const choice = 'AmuletRules_BuyMemberTraffic'
  const purchase = { ExerciseCommand: { templateId: RULES, contractId, choice, choiceArgument } }
  const [refused, ...others] = await Promise.all([
    submit('alice', [alice], [purchase]),
    ...Array.from({ length: 8 }, () => submit('bob', [party('bob')], [tap(party('bob'), '1')])),
  ])
  assert.deepEqual([refused.status, refused.body.code], [400, 'INTERPRETATION_USER_ERROR'])
  assert.deepEqual(new Set(others.map(({ status }) => status)), new Set([200]))
})

test('a choice of an interface tells nothing about a contract that the submitter does not see', async () => {
  const { party, submit, active } = world
  const [coin] = await active('alice', party('alice'), COIN)
  assert.ok(coin)
  const command = {
    templateId: INSTRUCTION,
    contractId: coin.contractId,
    choice: 'TransferInstruction_Accept',
    choiceArgument: {},
  }
  const asStranger = await submit('bob', [party('bob')], [{ ExerciseCommand: command }])
  assert.deepEqual([asStranger.status, asStranger.body.code], [404, 'CONTRACT_NOT_FOUND'])
  const asOwner = await submit('alice', [party('alice')], [{ ExerciseCommand: command }])
  assert.equal(asOwner.body.code, 'CONTRACT_DOES_NOT_IMPLEMENT_INTERFACE')
})

test('there is a bound on open streams, which is told with a remedy', async (t) => {
  const app = fastify()
  t.after(() => app.close())
  const streamsMax = 2
  await app.register(readingRoutes, {
    ledger: world.ledger,
    authentication: authenticationOff,
    streamsMax,
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const open = () => new WebSocket(`${url.replace('http', 'ws')}/v2/updates`)
  const streams = [open(), open()]
  await Promise.all(streams.map((stream) => once(stream, 'open')))
  const refused = await refusalOf(`${url}/v2/updates`)
  assert.equal(refused.status, 409)
  assert.equal(refused.body.code, 'MAXIMUM_NUMBER_OF_STREAMS')
  assert.match(String(refused.body.cause), /already serves 2 streams. Close/)
  const closed = streams.map((stream) => once(stream, 'close') as Promise<[CloseEvent]>)
  await app.close()
  for (const [{ code }] of await Promise.all(closed)) assert.equal(code, 1001)
})

test('a node that stops while streams are open tells them that it goes away', async (t) => {
  const { node, party, tokenOf } = await openWorld(t)
  const token = await tokenOf('alice')
  const url = `${node.urls.ledger.replace('http', 'ws')}/v2/updates`
  const stream = new WebSocket(url, [`jwt.token.${token}`, 'daml.ws.auth'])
  await once(stream, 'open')
  const wanted = {
    updateFormat: { includeTransactions: { eventFormat: formatOf(party('alice')) } },
  }
  stream.send(JSON.stringify(wanted))
  await once(stream, 'message')
  const closed = once(stream, 'close') as Promise<[CloseEvent]>
  await node.close()
  const [{ code }] = await closed
  assert.equal(code, 1001)
})

function amountOf({ createArgument }: { createArgument: Json }): string {
  return String((createArgument.amount as Json).initialAmount)
}

function transfer(inputs: { contractId: string }[], amount: string) {
  const sender = world.party('alice')
  return {
    ExerciseCommand: {
      templateId: RULES,
      contractId: world.rules.contractId,
      choice: 'AmuletRules_Transfer',
      choiceArgument: {
        transfer: {
          sender,
          provider: sender,
          inputs: inputs.map(({ contractId }) => ({ tag: 'InputAmulet', value: contractId })),
          outputs: [{ receiver: sender, amount, lock: null }],
        },
        openMiningRound: world.round.contractId,
      },
    },
  }
}

/** The answer to who asks for a stream and gets none. */
async function refusalOf(url: string): Promise<{ status: number; body: Json }> {
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'eA==',
    'sec-websocket-version': '13',
  }
  const [response] = (await once(request(url, { headers }).end(), 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, body: (await json(response)) as Json }
}
