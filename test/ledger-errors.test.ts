import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { COIN, type Json, OFFER, openWorld, ROUND, RULES } from './support/coin-world.ts'

/** All ten, always. */
const KEYS = [
  'code',
  'cause',
  'correlationId',
  'traceId',
  'context',
  'resources',
  'errorCategory',
  'grpcCodeValue',
  'retryInfo',
  'definiteAnswer',
]

let world: Awaited<ReturnType<typeof openWorld>>
const cleaning: (() => unknown)[] = []
before(async () => {
  world = await openWorld({ after: (clean) => cleaning.unshift(clean) })
})
after(async () => {
  for (const clean of cleaning) await clean()
})

type Case = {
  what: string
  commands: unknown[]
  more?: object
  code: string
  /** HTTP status, category, gRPC code. */
  as: [status: number, category: number, grpc: number]
  resources?: [string, string][]
  path?: string
  cause?: RegExp
}

const exercise = (changes: Json) => [{ ExerciseCommand: { choiceArgument: {}, ...changes } }]
const create = (templateId: string, createArguments: unknown) => [
  { CreateCommand: { templateId, createArguments } },
]

function casesOf(alice: string, bob: string, gone: string): Case[] {
  const { tap, rules, round, dso } = world
  const missing = `00${'ab'.repeat(32)}`
  const offer = {
    sender: alice,
    receiver: bob,
    dso,
    amount: { amount: '1', unit: 'AmuletUnit' },
    description: '',
    expiresAt: '2099-01-01T00:00:00Z',
    trackingId: 't',
  }
  const malformed = (createArguments: unknown, path: string): Case => ({
    what: `a malformed value at ${path}`,
    commands: create(OFFER, createArguments),
    code: 'COMMAND_PREPROCESSING_FAILED',
    as: [400, 8, 3],
    path: `commands[0].CreateCommand.createArguments${path}`,
  })
  return [
    {
      what: 'a contract that never was',
      commands: exercise({ templateId: COIN, contractId: missing, choice: 'Archive' }),
      code: 'CONTRACT_NOT_FOUND',
      as: [404, 11, 5],
      resources: [['CONTRACT_ID', missing]],
    },
    {
      what: 'a contract that is archived',
      commands: exercise({ templateId: OFFER, contractId: gone, choice: 'Archive' }),
      code: 'LOCAL_VERDICT_INACTIVE_CONTRACTS',
      as: [404, 11, 5],
      resources: [['CONTRACT_ID', gone]],
    },
    {
      what: 'a create without its signatory',
      commands: create(OFFER, { ...offer, sender: bob }),
      code: 'DAML_AUTHORIZATION_ERROR',
      as: [400, 8, 3],
      cause: /consent of bob::/,
    },
    {
      what: 'a choice without its controller',
      commands: [tap(bob, '1')],
      code: 'DAML_AUTHORIZATION_ERROR',
      as: [400, 8, 3],
      cause: /consent of bob::/,
    },
    {
      what: 'a choice that refuses',
      commands: [tap(alice, '0')],
      code: 'INTERPRETATION_USER_ERROR',
      as: [400, 9, 9],
    },
    {
      what: 'a contract of another template',
      commands: exercise({
        templateId: ROUND,
        contractId: rules.contractId,
        choice: 'OpenMiningRound_Advance',
        choiceArgument: { amuletPrice: '1' },
      }),
      code: 'WRONGLY_TYPED_CONTRACT',
      as: [400, 9, 9],
      resources: [['CONTRACT_ID', rules.contractId]],
    },
    {
      what: 'an unknown template',
      commands: create('#no-such:Module:Entity', {}),
      code: 'TEMPLATES_OR_INTERFACES_NOT_FOUND',
      as: [404, 11, 5],
      resources: [['TEMPLATE_ID', '#no-such:Module:Entity']],
    },
    {
      what: 'an unknown choice',
      commands: exercise({ templateId: ROUND, contractId: round.contractId, choice: 'Fly' }),
      code: 'COMMAND_PREPROCESSING_FAILED',
      as: [400, 8, 3],
      cause: /its choices are Archive, /,
    },
    {
      what: 'a party that nobody allocated',
      commands: create(OFFER, { ...offer, receiver: 'nobody::1220ab' }),
      code: 'UNKNOWN_INFORMEES',
      as: [404, 11, 5],
      resources: [['PARTY', 'nobody::1220ab']],
    },
    {
      what: 'a synchronizer that is not connected',
      commands: [tap(alice, '1')],
      more: { synchronizerId: 'other::1220ab' },
      code: 'INVALID_PRESCRIBED_SYNCHRONIZER_ID',
      as: [400, 9, 9],
    },
    malformed({ ...offer, amount: { amount: 'much', unit: 'AmuletUnit' } }, '.amount.amount'),
    malformed({ ...offer, amount: { amount: '1.00000000001', unit: 'x' } }, '.amount.amount'),
    malformed({ ...offer, expiresAt: 'tomorrow' }, '.expiresAt'),
    malformed({ ...offer, receiver: 5 }, '.receiver'),
    malformed({ ...offer, extra: 1 }, '.extra'),
    malformed([], ''),
    {
      what: 'a malformed value in a list of the second command',
      commands: [
        tap(alice, '1'),
        ...exercise({
          templateId: RULES,
          contractId: rules.contractId,
          choice: 'AmuletRules_Transfer',
          choiceArgument: {
            transfer: {
              sender: alice,
              provider: alice,
              inputs: [{ tag: 'InputAmulet', value: 'xyz' }],
              outputs: [],
            },
            openMiningRound: round.contractId,
          },
        }),
      ],
      code: 'COMMAND_PREPROCESSING_FAILED',
      as: [400, 8, 3],
      path: 'commands[1].ExerciseCommand.choiceArgument.transfer.inputs[0].value',
    },
  ]
}

test('what is refused is told as the ledger tells it: code, category, status, resources, place', async (t) => {
  const { party, submit, active } = world
  const [alice, bob] = [party('alice'), party('bob')]
  const [offered] = (await active('alice', alice, OFFER)).filter(
    ({ createArgument }) => createArgument.sender === alice,
  )
  assert.ok(offered)
  const archive = { templateId: OFFER, contractId: offered.contractId, choice: 'Archive' }
  assert.equal((await submit('alice', [alice], exercise(archive))).status, 200)
  for (const expected of casesOf(alice, bob, offered.contractId)) {
    await t.test(expected.what, async () => {
      const { status, body } = await submit('alice', [alice], expected.commands, expected.more)
      const text = JSON.stringify(body)
      assert.deepEqual(Object.keys(body), KEYS)
      assert.equal(body.code, expected.code, text)
      assert.deepEqual([status, body.errorCategory, body.grpcCodeValue], expected.as, text)
      assert.equal(body.retryInfo, null)
      assert.equal(body.definiteAnswer, false)
      const context = body.context as Record<string, string>
      assert.equal(context.category, String(expected.as[1]))
      if (expected.resources !== undefined) assert.deepEqual(body.resources, expected.resources)
      if (expected.path !== undefined) assert.equal(context.path, expected.path, text)
      if (expected.cause !== undefined) assert.match(String(body.cause), expected.cause)
    })
  }
})

/** Requests race to the node, so it may take some tries until two are under way at once. */
const RACES_MAX = 50

test('of those who consume a contract at once one succeeds, and others meet contention, which may be tried again', async () => {
  const { party, submit, tap, active, rules, round, ledger } = world
  const alice = party('alice')
  const spend = (contractId: string) =>
    exercise({
      templateId: RULES,
      contractId: rules.contractId,
      choice: 'AmuletRules_Transfer',
      choiceArgument: {
        transfer: {
          sender: alice,
          provider: alice,
          inputs: [{ tag: 'InputAmulet', value: contractId }],
          outputs: [{ receiver: alice, amount: '70', lock: null }],
        },
        openMiningRound: round.contractId,
      },
    })
  for (let race = 1; race <= RACES_MAX; race += 1) {
    await submit('alice', [alice], [tap(alice, `77.${race}`)])
    const [held] = (await active('alice', alice, COIN)).filter(({ createArgument }) =>
      String((createArgument.amount as Json).initialAmount).startsWith('77.'),
    )
    assert.ok(held)
    const { end } = ledger
    const all = await Promise.all(
      Array.from({ length: 8 }, () => submit('alice', [alice], spend(held.contractId))),
    )
    const codes = all.map(({ status, body }) => `${status} ${body.code ?? ''}`)
    assert.equal(codes.filter((code) => code === '200 ').length, 1, codes.join())
    assert.equal(ledger.end, end + 8n)
    const contended = all.filter(({ status }) => status === 409)
    for (const { body } of contended) {
      assert.equal(body.code, 'LOCAL_VERDICT_LOCKED_CONTRACTS')
      assert.deepEqual(
        [body.errorCategory, body.grpcCodeValue, body.retryInfo],
        [2, 10, '1 second'],
      )
      assert.deepEqual(body.resources, [['CONTRACT_ID', held.contractId]])
    }
    if (contended.length > 0) return
    await submit('alice', [alice], [tap(alice, '1')])
  }
  assert.fail('no two submissions were under way at once')
})

test('a repeated command is told where the first one was completed', async () => {
  const { party, submit, tap } = world
  const alice = party('alice')
  const once = { commandId: 'once', submissionId: 'first' }
  const first = await submit('alice', [alice], [tap(alice, '1')], once)
  const { status, body } = await submit('alice', [alice], [tap(alice, '1')], once)
  assert.deepEqual([status, body.code, body.errorCategory], [409, 'DUPLICATE_COMMAND', 10])
  const context = body.context as Json
  assert.equal(context.completion_offset, String(first.body.completionOffset))
  assert.equal(context.existing_submission_id, 'first')
})
