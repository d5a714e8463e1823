import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { whyLedgerIsOff } from '../src/open-ledger.ts'
import { openTestLedger } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory } from './support/node.ts'
import { runCommand, spawnNode, startCommand } from './support/node-process.ts'

/** What needs a ledger. */
const VALUES = `
topup:
  targetThroughput: 20000
  minTopupInterval: 1m
participantPruningSchedule:
  cron: "0 0 3 * * ?"
  maxDuration: 30m
  retention: 30d
`
const REMEDY = /set migration\.id to 3 and migration\.migrating to true .* another data directory/

forEachEngine(({ name, open }) => {
  // The commands below run on files; where the items come from does not matter.
  if (name !== 'sqlite') return
  test('a history of a later migration switches the ledger off, and everybody is told why and what to do', async (t) => {
    const world = await openTestLedger(t, await open(t, 'participant'), {
      ledger: { migrationId: 3n },
    })
    const items = (await world.ledger.updatesAfter(0n, 10)).map(({ item }) => item)
    const data = newDirectory(t)
    const file = join(newDirectory(t), 'history.ndjson')
    writeFileSync(file, `${items.join('\n')}\n`)
    const imported = await runCommand(['import', file, '--data', data])
    assert.equal(imported.code, 0, imported.stderr)

    const needy = join(newDirectory(t), 'needy.yaml')
    writeFileSync(needy, VALUES)
    const node = await startCommand(t, ['--data', data, '-f', needy])
    const { stdout: token } = await runCommand(['token', '--data', data])
    const headers = { authorization: `Bearer ${token.trim()}` }
    const asked = [
      await fetch(`${node.urls.ledger}/v2/state/ledger-end`, { headers }),
      await fetch(`${node.urls.ledger}/v2/updates`, { headers, method: 'POST', body: '{}' }),
      await fetch(`${node.urls.ledger}/v2/commands/submit-and-wait`, {
        headers,
        method: 'POST',
        body: '{}',
      }),
    ]
    for (const answer of asked) {
      const body = (await answer.json()) as { code: string; cause: string }
      assert.deepEqual([answer.status, body.code], [404, 'LEDGER_IS_OFF'])
      assert.match(body.cause, REMEDY)
    }
    const anonymous = await fetch(`${node.urls.ledger}/v2/state/ledger-end`)
    assert.equal(anonymous.status, 401)
    const ready = await fetch(`${node.urls.validator}/readyz`)
    assert.equal(ready.status, 200)
    const told = await ready.text()
    assert.match(told, REMEDY)
    assert.match(told, /^Warning: pruning of annals-validator-1::1220.* no ledger of its own/m)
    assert.match(told, /^Warning: top-up of annals-validator-1: there are no wallets/m)
    const url = ['--url', node.urls.ledger]
    const demo = await runCommand(['demo', '--data', data, ...url])
    assert.equal(demo.code, 1)
    assert.match(demo.stderr, REMEDY)
    assert.equal(await node.stop(), 0)
    const shown = spawnNode(t, ['--data', data])
    while (!shown.output.stdout.includes('Ctrl-C'))
      await once(shown.child.stdout ?? shown.child, 'data')
    assert.match(shown.output.stdout, /^Note: .*embedded ledger is off/m)
    assert.match(shown.output.stdout, REMEDY)
    await shown.kill()

    // The remedy works.
    const values = join(newDirectory(t), 'validator.yaml')
    writeFileSync(values, 'migration: { id: 3, migrating: true }\n')
    const mended = await startCommand(t, ['--data', data, '-f', values])
    const end = await fetch(`${mended.urls.ledger}/v2/state/ledger-end`, { headers })
    assert.equal(end.status, 200)
    assert.equal(await mended.stop(), 0)
  })
})

test('a node that mirrors says that its ledger is off, and where to submit', () => {
  const migration = {
    id: 0n,
    migrating: false,
    migrateValidatorParty: false,
    identitiesDump: undefined,
  }
  const view = { last: undefined } as never
  assert.match(
    whyLedgerIsOff({ historyWriter: 'mirror', migration }, { view }) ?? '',
    /copies the history of a network\. Submit commands to a participant of that network/,
  )
  assert.equal(whyLedgerIsOff({ historyWriter: 'ledger', migration }, { view }), undefined)
})
