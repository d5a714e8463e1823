import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld, ROUND } from './support/coin-world.ts'
import { newDirectory } from './support/node.ts'
import { runCommand } from './support/node-process.ts'

const PAYMENTS = 40

test('annals demo makes as many payments as it says, also when another round opens meanwhile', async (t) => {
  const dataDirectory = newDirectory(t)
  const { node, ledger, submit, dso, round } = await openWorld(t, { dataDirectory })
  const { end } = ledger
  const args = ['--url', node.urls.ledger, '--rate', '100', '--count', String(PAYMENTS)]
  const running = runCommand(['demo', '--data', dataDirectory, ...args])
  await ledger.waitAfter(end + 4n, AbortSignal.timeout(30_000))
  const advance = {
    templateId: ROUND,
    contractId: round.contractId,
    choice: 'OpenMiningRound_Advance',
    choiceArgument: { amuletPrice: '0.01' },
  }
  const advanced = await submit('participant_admin', [dso], [{ ExerciseCommand: advance }])
  assert.equal(advanced.status, 200, JSON.stringify(advanced.body))
  const demo = await running
  assert.equal(demo.code, 0, demo.stderr)
  assert.match(demo.stderr, new RegExp(`^${PAYMENTS} payments were made`, 'm'))
  const updates = await ledger.updatesAfter(end, 10 * PAYMENTS)
  const paid = updates.filter(({ item }) => item.includes('"AmuletRules_Transfer"'))
  assert.equal(paid.length, PAYMENTS)
})
