import { systemClock } from '../../src/base/clock.ts'
import { migrate, readMigrations } from '../../src/db/migrate.ts'
import { openDb } from '../../src/db/open.ts'
import { openHistory } from '../../src/history/history.ts'
import { openLedger } from '../../src/ledger/ledger.ts'
import { findNetwork, foundNetwork } from '../../src/ledger/network.ts'
import { chooseInputs, coinsOf, tap, transfer } from '../../src/ledger/payments.ts'
import { planPruning } from '../../src/ledger/prune.ts'
import { pruneBetween } from '../../src/ledger/prune-store.ts'
import { TEMPLATES } from '../../src/ledger/templates.ts'
import { startFollowing } from '../../src/scan/follow.ts'
import { decimal } from '../../src/values/decimal.ts'
import { AMPLE_TRAFFIC, addParty, GLOBAL, partyOf, TRAFFIC } from './embedded-ledger.ts'

// A ledger whose history follows it, and people who pay each other without end. Every acknowledged payment is told as a
// line, "paid <command id>". Arguments: both databases as JSON, and the number of the first payment. A payment that was
// made before it could be told is told as well, when it is tried again. With "prune", everything that may be pruned is,
// all the while.

const PAYERS = 4
const [participantTarget = '', appTarget = '', first = '0', prune = ''] = process.argv.slice(2)
const db = await openDb(JSON.parse(participantTarget))
await migrate(db, await readMigrations('participant'))
const appDb = await openDb(JSON.parse(appTarget))
await migrate(appDb, await readMigrations('app'))
const ledger = await openLedger({
  db,
  clock: systemClock,
  migrationId: 0n,
  synchronizerId: GLOBAL,
  templates: TEMPLATES,
  deduplicationMs: 86_400_000,
  traffic: TRAFFIC,
})
const dso = partyOf('DSO')
const people = Array.from({ length: PAYERS }, (_, n) => partyOf(`person-${n}`))
for (const party of [dso, ...people]) await addParty(db, party)
const network =
  (await findNetwork(ledger, dso)) ??
  (await foundNetwork(ledger, { dso, amuletPrice: decimal('1'), traffic: AMPLE_TRAFFIC }))
const history = await openHistory({ db: appDb, cacheBytes: 1_000_000 })
const following = startFollowing({
  ledger,
  history,
  onError(error) {
    throw error
  },
})
for (const [n, receiver] of people.entries()) {
  await accepted(tap(ledger, network, { receiver, amount: decimal('1000'), commandId: `tap-${n}` }))
}

async function accepted(submission: Promise<unknown>): Promise<boolean> {
  try {
    await submission
    return true
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'DUPLICATE_COMMAND') return true
    if (code?.startsWith('LOCAL_VERDICT')) return false
    throw error
  }
}

async function payForEver(payer: number): Promise<void> {
  for (let n = Number(first); ; n += 1) {
    const sender = people[payer] as string
    const receiver = people[(payer + 1 + (n % (PAYERS - 1))) % PAYERS] as string
    const amount = decimal('0.5') + BigInt(n)
    const commandId = `${payer}-${n}`
    for (;;) {
      const chosen = chooseInputs(await coinsOf(ledger, sender), amount)
      if (chosen === undefined) throw new Error('Everybody has enough.')
      const { inputs } = chosen
      if (
        await accepted(transfer(ledger, network, { sender, receiver, amount, inputs, commandId }))
      )
        break
    }
    process.stdout.write(`paid ${commandId}\n`)
  }
}

async function pruneForEver(): Promise<void> {
  const safeOffsets = [{ name: 'the history', offset: () => following.offset }]
  for (;;) {
    const options = { ledger, deduplicationMs: 0, safeOffsets }
    const { pruned, target } = await planPruning(options, 0)
    if (target > pruned) await pruneBetween(db, pruned, target)
    else await new Promise((resolve) => setImmediate(resolve))
  }
}

if (prune === 'prune') void pruneForEver()
await Promise.all(people.map((_, payer) => payForEver(payer)))
