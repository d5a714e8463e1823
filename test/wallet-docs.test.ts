import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { PROGRAM, ROOT } from './support/command.ts'
import { checkLog, startWalletNode, until } from './support/wallet.ts'

const run = promisify(execFile)
const manual = readFileSync(`${ROOT}/docs/wallet.md`, 'utf8')

test('the tour of the manual runs as it stands', async (t) => {
  const wallet = await startWalletNode(t, { simTime: false })
  const tour = manual.split('## A tour')[1]?.split('\n## ')[0] ?? ''
  const blocks = [...tour.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block ?? '')
  assert.equal(blocks.length, 3)
  const script = blocks
    .join('\n')
    .replaceAll('http://127.0.0.1:5003/api/validator', wallet.node.urls.validator)
    .replaceAll(
      /npx annals token/g,
      `"${process.execPath}" "${PROGRAM}" token --data "${wallet.dataDirectory}"`,
    )
    .replaceAll('curl -s ', 'curl -sS --fail-with-body -w "\\n" ')
  const { stdout } = await run('/bin/sh', ['-e', '-c', script], { cwd: wallet.dataDirectory })
  assert.doesNotMatch(stdout, /"error"/)
  assert.match(stdout, /"effective_unlocked_qty":"\d/)
  assert.match(stdout, /"status":"(accepted|completed)"/)
  assert.match(stdout, /"amount":"0\.0000000001"/)
  type Status = { status: string }
  const status = () => wallet.post<Status>('alice', '/v0/wallet/transfer-offers/lunch-1/status')
  await until(async () => (await status()).status === 'completed', 'the payment')
  for (const user of ['alice', 'bob']) await checkLog(wallet, user)
})

test('annals wallet does what its help shows', async (t) => {
  const wallet = await startWalletNode(t, { simTime: false })
  const at = ['--url', wallet.node.urls.validator.replace('/api/validator', '')]
  const data = ['--data', wallet.dataDirectory]
  const annals = async (user: string, ...args: string[]) => {
    const line = [PROGRAM, 'wallet', ...args, '--user', user, ...at, ...data]
    return (await run(process.execPath, line, { cwd: wallet.dataDirectory })).stdout.trim()
  }
  const { stdout: help } = await run(process.execPath, [PROGRAM, 'wallet', '--help'])
  const shown = [...help.matchAll(/^ {2}annals wallet (\w+)/gm)].map(([, name]) => name)
  const bob = await annals('bob', 'register')
  assert.match(bob, /^bob::1220/)
  await annals('alice', 'register')
  assert.match(await annals('alice', 'balance'), /^COIN +USD\nfree +\d+\.\d{10} /)
  assert.match(await annals('alice', 'tap', '100'), /worth 100 USD/)
  const offer = await annals('alice', 'offer', bob, '12.5', '--description', 'for lunch')
  assert.match(await annals('bob', 'offers'), new RegExp(`${offer.slice(0, 16)} .*for lunch`))
  assert.match(await annals('bob', 'accept', offer.slice(0, 40)), /accepted/)
  await annals('bob', 'preapprove')
  const send = ['send', bob, '3', '--tracking-id', 'invoice-17', '--json']
  const sent = await annals('alice', ...send)
  assert.equal(await annals('alice', ...send), sent)
  const other = await annals('alice', 'offer', bob, '1', '--expires-in', '2h', '--json')
  const { offer_contract_id: id } = JSON.parse(other) as { offer_contract_id: string }
  assert.match(await annals('alice', 'withdraw', id), /withdrawn/)
  const later = ['offer', bob, '1.50', '--tracking-id', 'invoice-18', '--expires-in']
  const made = await annals('alice', ...later, '2h')
  assert.equal(await annals('alice', ...later, '3h'), made)
  await assert.rejects(annals('alice', 'offer', bob, '2', '--tracking-id', 'invoice-18'))
  const log = (await annals('alice', 'log', '--limit', '50', '--json')).split('\n')
  assert.ok(log.some((line) => (JSON.parse(line) as { amount: string }).amount.startsWith('-3.')))
  assert.match(await annals('alice', 'log'), /^TIME +AMOUNT +WHAT/)
  const used = [
    'register',
    'balance',
    'tap',
    'offer',
    'offers',
    'accept',
    'preapprove',
    'send',
    'log',
  ]
  assert.deepEqual(new Set(shown), new Set(used))

  await assert.rejects(annals('alice', 'offer', bob, 'much'), { code: 1 })
  await assert.rejects(annals('alice', 'accept', 'xyz'), { code: 2 })
  await assert.rejects(annals('nobody', 'balance'), { code: 1 })
})
