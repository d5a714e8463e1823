// How many transfers a second the embedded ledger makes durable, beside bare commits of the same bytes.

import { chmodSync, mkdirSync } from 'node:fs'
import type { Db } from '../src/db/db.ts'
import { migrate, readMigrations } from '../src/db/migrate.ts'
import { type DbTarget, openDb } from '../src/db/open.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { coinsOf, tap, transfer } from '../src/ledger/payments.ts'
import type { LedgerUpdate } from '../src/ledger/updates-store.ts'
import { decimal } from '../src/values/decimal.ts'
import { openTestLedger, partyOf } from '../test/support/embedded-ledger.ts'
import type { Cleanup } from '../test/support/engines.ts'
import { createPostgresServer } from '../test/support/postgres-server.ts'
import type { BenchOptions, Section } from './section.ts'
import { median, type SectionReport } from './table.ts'

export const ledgerSection: Section = {
  name: 'ledger',
  summary: 'durable transfers per second, beside bare durable commits of the same bytes',
  run: measureLedger,
}

const RATIO_WANTED = 0.3
const CLIENTS = [1, 8]
/** Commits wait for the disk; a measurement of them takes this many slices. */
const SLICES = 8

const CONTRACT_ID = '"contract_id":"'

type Measured = { transfers: number; commits: number; bytes: number }
type Place = { engine: Db['engine']; newTarget(name: string): DbTarget }

async function measureLedger(options: BenchOptions): Promise<SectionReport> {
  const { workspace } = options
  mkdirSync(workspace.path('ledger'))
  // The server may run as another user.
  chmodSync(workspace.directory, 0o755)
  mkdirSync(workspace.path('postgres'))
  const server = await createPostgresServer(workspace.path('postgres'), { isDurable: true })
  const connection = {
    host: '127.0.0.1',
    port: server.port,
    user: 'postgres',
    database: 'postgres',
  }
  const places: Place[] = [
    {
      engine: 'sqlite',
      newTarget: (name) => ({ engine: 'sqlite', path: workspace.path(`ledger/${name}.sqlite`) }),
    },
    {
      engine: 'postgres',
      newTarget: (schema) => ({ engine: 'postgres', connection, schema }),
    },
  ]
  try {
    return await measurePlaces(places, options)
  } finally {
    await server.stop()
  }
}

async function measurePlaces(places: Place[], options: BenchOptions): Promise<SectionReport> {
  const rows: Record<string, string | number>[] = []
  const aims: SectionReport['aims'] = []
  for (const place of places) {
    for (const clients of CLIENTS) {
      options.say(`ledger on ${place.engine}, ${clients} clients`)
      const measured = await measurePlace(place, clients, options)
      const ratio = median(measured.map(({ transfers, commits }) => transfers / commits))
      const who = clients === 1 ? 'one client' : `${clients} clients`
      rows.push({
        what: `${place.engine}, ${who}`,
        transfers: median(measured.map(({ transfers }) => transfers)),
        commits: median(measured.map(({ commits }) => commits)),
        bytes: median(measured.map(({ bytes }) => bytes)),
        ratio,
      })
      aims.push({
        aim: `ledger on ${place.engine}, ${who}: transfers for each bare durable commit`,
        measured: ratio,
        wanted: RATIO_WANTED,
        isUpperBound: false,
      })
    }
  }
  return {
    tables: [
      {
        title: 'Durable submissions per second',
        columns: [
          { key: 'what', title: '' },
          { key: 'transfers', title: 'transfers/s' },
          { key: 'commits', title: 'bare commits/s' },
          { key: 'bytes', title: 'bytes each' },
          { key: 'ratio', title: 'ratio', digits: 2 },
        ],
        rows,
        notes: [
          'A bare commit is a transaction of one insert of the bytes that a transfer stores, in the same engine, by as many clients.',
        ],
      },
    ],
    aims,
  }
}

/** Transfers and bare commits in turns, so that both meet the same disk. */
async function measurePlace(
  place: Place,
  clients: number,
  { rounds, sliceMs }: BenchOptions,
): Promise<Measured[]> {
  const cleaning: (() => Promise<void> | void)[] = []
  const scope: Cleanup = { after: (clean) => cleaning.unshift(clean) }
  const durationMs = sliceMs * SLICES
  try {
    const db = await openIn(place, `ledger_${clients}`, scope)
    await migrate(db, await readMigrations('participant'))
    const world = await openTestLedger(scope, db, {
      parties: Array.from({ length: 2 * clients }, (_, n) => `payer-${n}`),
    })
    const payers = await Promise.all(Array.from({ length: clients }, (_, n) => openPayer(world, n)))
    const [payer] = payers
    if (payer === undefined) throw new Error('Somebody pays.')
    const content = await contentOf(world.ledger, await payer())
    const bytes = Buffer.byteLength(content)
    const bare = await openBare(await openIn(place, `bare_${clients}`, scope), content)
    const measured: Measured[] = []
    for (let round = 0; round < rounds; round += 1) {
      const transfers = await rateOf(payers, durationMs)
      const commits = await rateOf(Array<() => Promise<unknown>>(clients).fill(bare), durationMs)
      measured.push({ transfers, commits, bytes })
    }
    return measured
  } finally {
    for (const clean of cleaning) await clean()
  }
}

async function openIn(place: Place, name: string, scope: Cleanup): Promise<Db> {
  const db = await openDb(place.newTarget(name))
  scope.after(() => db.close())
  return db
}

/** What a transfer stores: its update, the contract that it makes, and who has a stake in that. */
async function contentOf(ledger: Ledger, update: LedgerUpdate): Promise<string> {
  const { item, witnesses, command, recordTime, updateId } = update
  const at = item.lastIndexOf(CONTRACT_ID) + CONTRACT_ID.length
  const contract = await ledger.contract(item.slice(at, item.indexOf('"', at)))
  if (contract === undefined) throw new Error('A transfer makes a coin.')
  const { contractId, entry, payload, signatories, createdAt, synchronizerId } = contract
  const stakes = signatories.map((party) => [party, entry.template.name, contractId])
  const stored = [
    [witnesses, command, recordTime, updateId],
    [contractId, entry.template.name, entry.template.payload.toLossless(payload)],
    [signatories, createdAt, synchronizerId],
    stakes,
  ]
  return item + JSON.stringify(stored)
}

/** Sends one coin to and fro; each call is a transfer. */
async function openPayer(
  { ledger, network }: Awaited<ReturnType<typeof openTestLedger>>,
  n: number,
): Promise<() => Promise<LedgerUpdate>> {
  let [sender, receiver] = [partyOf(`payer-${2 * n}`), partyOf(`payer-${2 * n + 1}`)]
  const amount = decimal('10')
  await tap(ledger, network, { receiver: sender, amount })
  const [first] = await coinsOf(ledger, sender)
  let value = first?.contractId as string
  let sent = 0
  return async () => {
    sent += 1
    const update = await transfer(ledger, network, {
      sender,
      receiver,
      amount,
      inputs: [{ tag: 'InputAmulet', value }],
      commandId: `${n}/${sent}`,
    })
    // The coin that it made is the last event.
    const at = update.item.lastIndexOf(CONTRACT_ID) + CONTRACT_ID.length
    value = update.item.slice(at, update.item.indexOf('"', at))
    ;[sender, receiver] = [receiver, sender]
    return update
  }
}

async function openBare(db: Db, content: string): Promise<() => Promise<unknown>> {
  await db.execute('create table bare (id bigint primary key, content text not null)')
  let id = 0
  return () =>
    db.transaction((tx) => {
      id += 1
      return tx.execute('insert into bare (id, content) values (?, ?)', [id, content])
    })
}

async function rateOf(clients: (() => Promise<unknown>)[], durationMs: number): Promise<number> {
  const startedAt = performance.now()
  let done = 0
  await Promise.all(
    clients.map(async (act) => {
      while (performance.now() - startedAt < durationMs) {
        await act()
        done += 1
      }
    }),
  )
  return (done * 1000) / (performance.now() - startedAt)
}
