import { setTimeout as wait } from 'node:timers/promises'
import { createLogs } from '../../src/base/log.ts'
import { findNetwork } from '../../src/ledger/network.ts'
import { tap } from '../../src/ledger/payments.ts'
import { startNode } from '../../src/node.ts'
import { decimal } from '../../src/values/decimal.ts'
import { testConfig } from './node.ts'

// A node whose automations have much to do, until it is killed: coins come in without end, each told as a line,
// "in <command id>". Arguments: the data directory, the app database and the wallet's settings as JSON, who
// governs and who receives, and the number of the first payment.

/** Leaves the ledger to the automations. */
const PAUSE_MS = 50

const [dataDirectory = '', target = '', wallet = '', dso = '', receiver = '', first = '0'] =
  process.argv.slice(2)
const forEver = { after() {} }
const base = testConfig(forEver, { dataDirectory, target: JSON.parse(target) })
const node = await startNode({
  config: { ...base, wallet: { ...base.wallet, ...JSON.parse(wallet) } },
  logs: createLogs({ level: 'error', pretty: false }),
  empty: false,
})
const { ledger } = node
const network = ledger && (await findNetwork(ledger, dso))
if (ledger === undefined || network === undefined) throw new Error('The node has a network.')
for (let n = Number(first); ; n += 1) {
  const commandId = `in-${n}`
  await tap(ledger, network, { receiver, amount: decimal('500') + BigInt(n), commandId }).catch(
    (error: { code?: string }) => {
      if (error.code !== 'DUPLICATE_COMMAND') throw error
    },
  )
  process.stdout.write(`in ${commandId}\n`)
  await wait(PAUSE_MS)
}
