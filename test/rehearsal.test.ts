import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from './support/engines.ts'
import { newDirectory } from './support/node.ts'
import { runCommand } from './support/node-process.ts'

const ALICE = `acme-validator-1::1220${'ab'.repeat(32)}`
const TREASURY = `treasury::1220${'cd'.repeat(32)}`
const FRIEND = `friend::1220${'ef'.repeat(32)}`
const EXAMPLE = fileURLToPath(new URL('../examples/validator-values.yaml', import.meta.url))

const VALUES = `svSponsorAddress: "https://sv.example.net"
scanAddress: "https://scan.example.net"
validatorPartyHint: acme-validator-1
nodeIdentifier: acme-validator-1
topup: { enabled: true, targetThroughput: 20000, minTopupInterval: 1m }
walletSweep:
  "${ALICE}": { maxBalanceUSD: 300, minBalanceUSD: 100, receiver: "${TREASURY}" }
autoAcceptTransfers:
  "${ALICE}": { fromParties: ["${FRIEND}"] }
`

type Rehearsal = {
  totals: { automation: string; acts: number; usd: string }[]
  acts: { automation: string; what: string; updateId: string }[]
  samples: { balances: Record<string, string>; trafficBytes: string }[]
  troubles: unknown[]
}

function writeFiles(t: Cleanup, files: Record<string, string>) {
  const directory = newDirectory(t)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  return { directory, path: (name: string) => join(directory, name) }
}

test('a rehearsal tells what automations would have done, the same for the same seed, and touches nothing', async (t) => {
  const files = writeFiles(t, { 'v.yaml': VALUES })
  const run = (...args: string[]) =>
    runCommand(['rehearse', '-f', files.path('v.yaml'), '--days', '5', ...args], {
      cwd: files.directory,
    })
  const [one, two] = await Promise.all([run('--seed', 'x', '--json'), run('--seed', 'x', '--json')])
  assert.equal(one.code, 0, one.stderr)
  assert.equal(one.stdout, two.stdout)
  const { totals, acts, samples } = JSON.parse(one.stdout) as Rehearsal
  assert.deepEqual(totals.map(({ automation }) => automation).toSorted(), [
    'auto-accept',
    'completion',
    'expiry',
    'sweep',
    'top-up',
  ])
  assert.ok(acts.every(({ updateId }) => /^1220[0-9a-f]{64}$/.test(updateId)))
  assert.equal(samples.length, 5 * 24 + 1)
  const shown = await run('--seed', 'x')
  assert.match(shown.stdout, /^TIME +AUTOMATION +PARTY +ACT\n2026-01-01T00:00:00Z/)
  assert.match(shown.stdout, /\nAUTOMATION +PARTY +ACTS +COINS +USD\n/)
  assert.match(shown.stdout, /\nBalance of acme-validator-1::.*in USD\n.*┤.*█/)
  assert.match(shown.stdout, /\nBought traffic that is left, in kB\n/)
  assert.match(shown.stdout, /traffic cost \d+\.\d\d USD/)
  assert.match(shown.stdout, /The seed was x\.\n$/)
  assert.ok(!shown.stdout.includes('\u001b'), 'no colours')
  assert.deepEqual(readdirSync(files.directory), ['v.yaml'])
})

test('the example is rehearsed without its secrets, and troubles are told', async () => {
  const args = ['rehearse', '-f', EXAMPLE, '--days', '1', '--seed', 'x', '--balance', '1']
  const { code, stdout, stderr } = await runCommand([...args, '--income', '0'])
  assert.equal(code, 0, stderr)
  assert.match(stdout, /warning: top-up of .*, \d+ times?, first: .*send coins to it/)
  assert.match(stdout, /0\.00 USD came in/)
})

test('what cannot be rehearsed is said', async (t) => {
  const files = writeFiles(t, {
    'off.yaml': 'enableWallet: false\n',
    'typo.yaml': 'walletSweeep: {}\n',
    'none.yaml': 'enableWallet: true\n',
  })
  const run = (name: string, ...args: string[]) =>
    runCommand(['rehearse', '-f', files.path(name), ...args], { cwd: files.directory })
  const off = await run('off.yaml')
  assert.equal(off.code, 2)
  assert.match(off.stderr, /enableWallet is false/)
  const typo = await run('typo.yaml')
  assert.equal(typo.code, 2)
  assert.match(typo.stderr, /walletSweep/)
  assert.equal((await run('none.yaml', '--days', '400')).code, 2)
  const none = await run('none.yaml', '--days', '1')
  assert.equal(none.code, 0)
  assert.match(none.stderr, /so little will happen/)
})
