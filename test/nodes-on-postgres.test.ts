import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { COIN, formatOf, ROUND, RULES } from './support/coin-world.ts'
import { newDirectory, post } from './support/node.ts'
import { FREE_PORTS, runCommand, spawnNode, startCommand } from './support/node-process.ts'
import { type PrivatePostgres, startPrivatePostgres } from './support/postgres-supervised.ts'

/** A start takes about this long; kills are spread over it. */
const KILL_DELAYS_MS = [500, 900, 1300]
const TAPS = 60
const SHARED_COMMANDS = 20

let server: PrivatePostgres
const cleaning: (() => unknown)[] = []
before(async () => {
  server = await startPrivatePostgres({ after: (clean) => cleaning.unshift(clean) })
})
after(async () => {
  for (const clean of cleaning) await clean()
})

async function createDatabases(...names: string[]): Promise<void> {
  const admin = new pg.Client(server.connection)
  await admin.connect()
  for (const name of names) await admin.query(`create database ${name}`)
  await admin.end()
}

/** Values files of a node whose databases are on the server, and the arguments that name them. */
function sourcesFor(
  t: TestContext,
  { app, participant, migration = '' }: { app: string; participant: string; migration?: string },
): string[] {
  const { host, port, user } = server.connection
  const persistence = `persistence:\n  host: ${host}\n  port: ${port}\n  user: ${user}\n  secretName: s\n`
  const directory = newDirectory(t)
  const files = {
    'v.yaml': `${migration}${persistence}  databaseName: ${app}\n  schema: validator\n`,
    'p.yaml': `${persistence}  databaseName: ${participant}\n  schema: participant\n`,
    'secrets/s/postgresPassword': 'unused\n',
  }
  mkdirSync(join(directory, 'secrets/s'), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  const path = (name: string) => join(directory, name)
  return ['-f', path('v.yaml'), '-p', path('p.yaml'), '--secrets', path('secrets')]
}

async function pageOf(scan: string, version = 1): Promise<{ update_id: string }[]> {
  const { body } = await post(`${scan}/v${version}/updates`, { page_size: 2000 })
  return (body as { transactions: { update_id: string }[] }).transactions
}

test('a node on PostgreSQL migrates, also after it was killed while migrating, and refuses what does not fit', async (t) => {
  await createDatabases('app_m', 'participant_0', 'participant_1')
  const data = ['--data', newDirectory(t)]
  const on = (id: number, migration = '') =>
    sourcesFor(t, { app: 'app_m', participant: `participant_${id}`, migration })
  const first = await startCommand(t, [...data, ...on(0), '--seed', 'x'])
  const demo = ['demo', ...data, '--rate', '500', '--count', '40']
  assert.equal((await runCommand([...demo, '--url', first.urls.ledger])).code, 0)
  const oldPage = await pageOf(first.urls.scan)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')

  const one = 'migration: { id: 1 }\n'
  const flagged = 'migration: { id: 1, migrating: true }\n'
  const unflagged = await runCommand(['start', ...FREE_PORTS, ...data, ...on(1, one)])
  assert.equal(unflagged.code, 1)
  assert.match(unflagged.stderr, /set migration\.migrating to true/)
  const misnamed = await runCommand(['start', ...FREE_PORTS, ...data, ...on(0, flagged)])
  assert.equal(misnamed.code, 2)
  assert.match(misnamed.stderr, /participant_0, but the migration id is 1[\s\S]*participant_1/)

  for (const delayMs of KILL_DELAYS_MS) {
    const { kill } = spawnNode(t, [...data, ...on(1, flagged)])
    await wait(delayMs)
    await kill()
  }
  const second = await startCommand(t, [...data, ...on(1, flagged)])
  const page = await pageOf(second.urls.scan)
  assert.deepEqual(page.slice(0, oldPage.length), oldPage)
  const ids = (await pageOf(second.urls.scan, 0)).map((item) => item.update_id)
  assert.equal(new Set(ids).size, ids.length)
  assert.ok(ids.length > page.length + 10, 'the carried contracts are import updates')
  const paid = await runCommand([...demo, '--url', second.urls.ledger])
  assert.equal(paid.code, 0, paid.stderr)
  assert.equal(await second.stop(), 0)

  const lowered = await runCommand([
    'start',
    ...FREE_PORTS,
    ...data,
    ...on(0, 'migration: { id: 0 }\n'),
  ])
  assert.equal(lowered.code, 1)
  assert.match(lowered.stderr, /already at migration 1/)
  const verified = await runCommand(['verify', ...data, ...on(1, one)])
  assert.equal(verified.code, 0, verified.stderr)
})

test('two nodes on one database submit at the same time: nothing is lost or doubled, and both show the same', async (t) => {
  await createDatabases('app_two', 'participant_00')
  const sources = sourcesFor(t, { app: 'app_two', participant: 'participant_00' })
  const open = async () => {
    const data = newDirectory(t)
    const node = await startCommand(t, ['--data', data, ...sources])
    const { stdout } = await runCommand(['token', '--data', data, ...sources])
    const authorization = `Bearer ${stdout.trim()}`
    const ask = async (path: string, body?: unknown) => {
      const response = await fetch(`${node.urls.ledger}${path}`, {
        headers: { authorization },
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    return { node, ask, authorization }
  }
  const nodes = [await open(), await open()]
  const [one, two] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
  const [led, left] = await Promise.all(
    nodes.map(({ node, authorization }) =>
      fetch(`${node.urls.validator}/v0/admin/automations`, { headers: { authorization } }),
    ),
  )
  assert.deepEqual([led?.status, left?.status], [200, 503])
  assert.match(String(await left?.text()), /leaves automations and pruning to the node that shares/)
  const { body: parties } = await one.ask('/v2/parties')
  const dso = (parties.partyDetails as { party: string }[])
    .map(({ party }) => party)
    .find((party) => party.startsWith('DSO::')) as string
  const alice = dso.replace('DSO', 'alice')
  type Entry = {
    contractEntry: {
      JsActiveContract: {
        createdEvent: { contractId: string; createArgument: { owner: string; amount: Amount } }
      }
    }
  }
  type Amount = { initialAmount: string }
  const activeOf = async ({ ask }: typeof one, party: string, template: string) => {
    const { body } = await ask('/v2/state/active-contracts', {
      eventFormat: formatOf(party, template),
    })
    return (body as unknown as Entry[]).map((entry) => entry.contractEntry.JsActiveContract)
  }
  const [rules] = await activeOf(one, dso, RULES)
  const [round] = await activeOf(two, dso, ROUND)
  assert.ok(rules && round)
  const before = await activeOf(one, alice, COIN)
  const start = (await pageOf(one.node.urls.scan)).length
  const tap = ({ ask }: typeof one, commandId: string, amount: string) =>
    ask('/v2/commands/submit-and-wait', {
      commandId,
      actAs: [alice],
      commands: [
        {
          ExerciseCommand: {
            templateId: RULES,
            contractId: rules.createdEvent.contractId,
            choice: 'AmuletRules_DevNet_Tap',
            choiceArgument: {
              receiver: alice,
              amount,
              openRound: round.createdEvent.contractId,
            },
          },
        },
      ],
    })
  const own = nodes.flatMap((node, place) =>
    Array.from({ length: TAPS }, (_, n) => tap(node, `${place}-${n}`, `${1000 + n}.${place + 1}`)),
  )
  // The same command on both nodes: one of them is accepted.
  const shared = Array.from({ length: SHARED_COMMANDS }, (_, n) =>
    Promise.all(nodes.map((node) => tap(node, `shared-${n}`, `${5000 + n}.5`))),
  )
  for (const { status, body } of await Promise.all(own)) {
    assert.equal(status, 200, JSON.stringify(body))
  }
  for (const pair of await Promise.all(shared)) {
    assert.deepEqual(pair.map(({ status }) => status).toSorted(), [200, 409])
  }
  const accepted = 2 * TAPS + SHARED_COMMANDS
  const coins = await activeOf(one, alice, COIN)
  assert.deepEqual(await activeOf(two, alice, COIN), coins)
  const amounts = coins.map(({ createdEvent }) => createdEvent.createArgument.amount.initialAmount)
  const wanted = [
    ...before.map(({ createdEvent }) => createdEvent.createArgument.amount.initialAmount),
    ...[1, 2].flatMap((place) =>
      Array.from({ length: TAPS }, (_, n) => `${1000 + n}.${place}000000000`),
    ),
    ...Array.from({ length: SHARED_COMMANDS }, (_, n) => `${5000 + n}.5000000000`),
  ]
  assert.deepEqual(amounts.toSorted(), wanted.toSorted())
  const pages = await Promise.all(
    nodes.map(async ({ node }) => {
      for (;;) {
        const page = await pageOf(node.urls.scan)
        if (page.length >= start + accepted) return page
        await wait(20)
      }
    }),
  )
  assert.equal(pages[0]?.length, start + accepted)
  assert.deepEqual(pages[1], pages[0])
  assert.equal(new Set(pages[0]?.map((item) => item.update_id)).size, start + accepted)
  for (const { node } of nodes) assert.equal(await node.stop(), 0)
})
