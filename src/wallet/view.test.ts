import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { forEachEngine } from '../../test/support/engines.ts'
import type { Db } from '../db/db.ts'
import { coin } from '../ledger/coin.ts'
import { tapCoins } from '../ledger/rules.ts'
import { decimal, printDecimal } from '../values/decimal.ts'
import type { ActiveContract, Transaction, Update } from './ledger-event.ts'
import type { Participant } from './participant.ts'
import { openView, type View, type ViewLog } from './view.ts'
import { openWalletLog } from './wallet-log.ts'
import { selectLogPage } from './wallet-store.ts'

const PLACE = { participantId: 'participant::1220', migrationId: 0n }
const SYNCHRONIZER = 'global::1220'
const DSO = 'dso::1'

/** Each update is a tap of a coin for one of the parties. */
function tapOf(offset: number, receiver: string): Transaction {
  const contractId = offset.toString(16).padStart(8, '0')
  const amount = printDecimal(BigInt(offset) * decimal('1'))
  const payload = {
    dso: DSO,
    owner: receiver,
    amount: {
      initialAmount: amount,
      createdAt: { number: '0' },
      ratePerRound: { rate: '0.0' },
    },
  }
  const both = { witnesses: [receiver], signatories: [receiver], observers: [] }
  return {
    kind: 'transaction',
    updateId: `update-${offset}`,
    offset: BigInt(offset),
    recordTime: new Date(offset * 1000).toISOString(),
    commandId: '',
    workflowId: '',
    synchronizerId: SYNCHRONIZER,
    events: [
      {
        kind: 'exercised',
        nodeId: 0,
        contractId: '00',
        templateId: 'p:Splice.AmuletRules:AmuletRules',
        template: 'Splice.AmuletRules:AmuletRules',
        choice: tapCoins.name,
        argument: { receiver, amount, openRound: '00' },
        result: {},
        consuming: false,
        actingParties: [receiver],
        witnesses: [receiver],
        lastDescendantNodeId: 1,
      },
      {
        kind: 'created',
        nodeId: 1,
        contractId,
        templateId: `p:${coin.name}`,
        template: coin.name,
        payload,
        createdAt: new Date(0).toISOString(),
        ...both,
      },
    ],
  }
}

type Script = { parties: string[]; end: number; fails: () => boolean }

/** A participant that knows the first so many updates of the script, and fails now and then. */
function participantOf(script: Script): Participant {
  const updates = () => script.parties.slice(0, script.end).map((p, n) => tapOf(n + 1, p))
  const concerning = (parties: readonly string[]) =>
    updates().filter(({ events }) =>
      events.some((e) => e.witnesses.some((w) => parties.includes(w))),
    )
  const trouble = () => {
    if (script.fails()) throw new Error('The participant is away.')
  }
  const offered: Partial<Participant> = {
    async ledgerEnd() {
      trouble()
      return BigInt(script.end)
    },
    prunedOffset: async () => 0n,
    async *activeContracts({ parties, offset }) {
      trouble()
      yield concerning(parties)
        .filter((update) => update.offset <= offset)
        .flatMap(({ events }) => events)
        .flatMap((event): ActiveContract[] =>
          event.kind === 'created' ? [{ ...event, synchronizerId: SYNCHRONIZER }] : [],
        )
    },
    async updatesAfter({ parties, offset, until, limit }): Promise<Update[]> {
      trouble()
      return concerning(parties)
        .filter((update) => update.offset > offset && update.offset <= (until ?? offset))
        .slice(0, limit)
    },
    waitAfter: () => new Promise((resolve) => setTimeout(resolve, 1)),
  }
  return offered as Participant
}

/** Dies at a random append, before or after it is durable, as a node does that is killed. */
function mortalLog(db: Db, dies: () => 'before' | 'after' | undefined): ViewLog {
  const log = openWalletLog({ db, place: PLACE, isReadOnly: false })
  return {
    offsetOf: (party) => log.offsetOf(party),
    async append(batch) {
      const death = dies()
      if (death === 'before') throw new Error('killed')
      await log.append(batch)
      if (death === 'after') throw new Error('killed')
    },
  }
}

forEachEngine((engine) => {
  test(`${engine.name}: whenever a node dies, its logs have every update once and its wallets every coin`, async (t) => {
    const db = await engine.open(t, 'app')
    let run = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 30 }),
        fc.infiniteStream(fc.nat(99)),
        async (names, chances) => {
          run += 1
          const luck = () => chances.next().value as number
          const nameOf = (name: string) => `${name}-${run}::1`
          const script: Script = {
            parties: names.map(nameOf),
            end: 0,
            fails: () => luck() < 5,
          }
          const participant = participantOf(script)
          const open = (dies: Parameters<typeof mortalLog>[1], parties: string[]) =>
            openView({
              participant,
              log: mortalLog(db, dies),
              parties,
              synchronizerId: SYNCHRONIZER,
              onError: () => {},
            })
          const deaths = () => {
            const chance = luck()
            return chance < 10 ? 'before' : chance < 20 ? 'after' : undefined
          }
          for (let start = 0; start < 4; start += 1) {
            script.end = Math.min(names.length, script.end + 1 + (luck() % names.length))
            const parties = ['a', 'b'].map(nameOf)
            const view = await open(deaths, parties).catch(() => undefined)
            if (luck() < 50) await view?.add(nameOf('c')).catch(() => {})
            await view?.waitFor(BigInt(script.end), AbortSignal.timeout(5))
            await view?.close()
          }
          script.end = names.length
          script.fails = () => false
          const all = ['a', 'b', 'c'].map(nameOf)
          const view = await open(() => undefined, all)
          await view.waitFor(BigInt(script.end))
          for (const party of all) await checkWallet(db, view, { party, script })
          await view.close()
        },
      ),
      { numRuns: 15 },
    )
  })
})

test('a party that is new is not looked for in the past', async () => {
  const script = { parties: Array(900).fill('a'), end: 900, fails: () => false }
  const participant = participantOf(script)
  const asked: bigint[] = []
  const view = await openView({
    participant: {
      ...participant,
      updatesAfter(query) {
        if (query.parties.includes('b')) asked.push(query.offset)
        return participant.updatesAfter(query)
      },
    },
    log: { offsetOf: async () => undefined, append: async () => {} },
    parties: ['a'],
    synchronizerId: SYNCHRONIZER,
    onError: () => {},
  })
  await view.waitFor(900n)
  script.parties.push('b')
  script.end = 901
  await view.add('b', 900n)
  await view.waitFor(901n)
  assert.equal(view.coins('b').length, 1)
  assert.ok(asked.every((offset) => offset >= 900n))
  await view.close()
})

async function checkWallet(
  db: Db,
  view: View,
  { party, script }: { party: string; script: Script },
): Promise<void> {
  const expected = script.parties
    .flatMap((owner, n) => (owner === party ? [`update-${n + 1}`] : []))
    .toReversed()
  const logged = await selectLogPage(db, { party, beforeSequence: undefined, limit: 1000 })
  assert.deepEqual(
    logged.map(({ transaction_id }) => transaction_id),
    expected,
  )
  assert.equal(view.coins(party).length, expected.length)
}
