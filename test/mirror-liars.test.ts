import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createRandom } from '../src/base/random.ts'
import type { Dissent } from '../src/mirror/dissent.ts'
import { createPeers } from '../src/mirror/peers.ts'
import type { Trust } from '../src/mirror/quorum.ts'
import { type SyncState, startSync } from '../src/mirror/sync.ts'
import { type Cleanup, forEachEngine, type TestEngine } from './support/engines.ts'
import { type Behaviour, createFakeScans, FAULTS, type Fault } from './support/fake-scans.ts'
import { newPool, openTestHistory, pageText } from './support/histories.ts'
import { historyArbitrary } from './support/random-history.ts'
import { plainLines } from './support/sample-items.ts'

const ENCODINGS = ['compact_json', 'protobuf_json'] as const
const ALL: Trust = { mode: 'all', agreement: 'f+1' }

forEachEngine((engine) => {
  // The engines differ in how they store, not in what the mirror decides.
  if (engine.name !== 'sqlite') return

  suite('a mirror among liars', { concurrency: 1 }, () => {
    for (const seed of ['one', 'two', 'three']) {
      test(`ends byte-identical to the truth, whatever one of four does (${seed})`, async (t) => {
        const { truth, copy, state, dissents } = await mirrorOf(t, engine, {
          seed,
          count: 4,
          behaviour: (peer, random) => (peer === 1 ? FAULTS[random(FAULTS.length)] : undefined),
        })
        assert.equal(await everything(copy), await everything(truth))
        assert.ok(state.pages > 700, `${state.pages} pages`)
        assert.ok(dissents.every(({ peer }) => peer.svName === 'SV 1'))
      })
    }

    test('and whatever two of seven do', async (t) => {
      const { truth, copy, dissents } = await mirrorOf(t, engine, {
        seed: 'seven',
        count: 7,
        lines: randomLines('seven', 250),
        behaviour: (peer, random) => (peer % 5 === 1 ? FAULTS[random(FAULTS.length)] : undefined),
      })
      assert.equal(await everything(copy), await everything(truth))
      assert.ok(dissents.every(({ peer }) => peer.svName === 'SV 1' || peer.svName === 'SV 6'))
    })

    test('a liar is recorded with the position and both items', async (t) => {
      const { dissents } = await mirrorOf(t, engine, {
        seed: 'evidence',
        count: 4,
        lines: plainLines(30),
        pageSizeMax: 5,
        behaviour: (peer) => (peer === 2 ? 'lie' : undefined),
      })
      const [dissent] = dissents
      assert.equal(dissent?.peer.svName, 'SV 2')
      assert.match(String(dissent?.found), /"workflow_id":"lie /)
      assert.equal(dissent?.agreed, dissent?.found.replace('lie ', ''))
      assert.equal(dissent?.encoding, 'protobuf_json')
    })

    test('every scan may print its answers in its own way', async (t) => {
      const { truth, copy, dissents } = await mirrorOf(t, engine, {
        seed: 'layouts',
        count: 4,
        pageSizeMax: 20,
        lines: randomLines('layouts', 60),
        behaviour: (peer) => (peer > 0 ? 'other layout' : undefined),
      })
      assert.equal(await everything(copy), await everything(truth))
      assert.deepEqual(dissents, [])
    })

    test('scans of different heights agree on what they all have', async (t) => {
      const { copy } = await mirrorOf(t, engine, {
        seed: 'heights',
        count: 4,
        pageSizeMax: 7,
        lines: plainLines(60),
        behaviour: () => undefined,
        heightOf: (peer) => [10, 50, 50, 60][peer] as number,
      })
      assert.equal(copy.view.updates, 50)
    })

    for (const fault of ['lie', 'drop', 'invent', 'reorder', 'garbage'] as Fault[]) {
      test(`two of four that ${fault} stop it, and it says so`, async (t) => {
        const { truth, copy, state } = await stopped(t, engine, (peer) =>
          peer < 2 ? fault : undefined,
        )
        // What was stored before they began is the truth.
        for (const encoding of ENCODINGS) {
          const [whole, part] = await Promise.all(
            [truth, copy].map((history) => pageText(history, { encoding })),
          )
          assert.ok(whole?.startsWith(part as string))
        }
        assert.match(String(state.stalled), /scans/)
      })
    }

    test('equal failures of all are no data', async (t) => {
      const { copy, state } = await stopped(t, engine, () => 'not found')
      assert.equal(copy.view.updates, 0)
      assert.match(String(state.stalled), /Only 0 of 4 scans sent a page/)
    })
  })
})

type Setting = {
  seed: string
  count: number
  behaviour: Behaviour
  heightOf?: (peer: number) => number
  pageSizeMax?: number
  lines?: string[]
}

async function open(t: Cleanup, engine: TestEngine, setting: Setting) {
  const { seed } = setting
  const lines = setting.lines ?? randomLines(seed)
  const truth = await openTestHistory(t, engine, lines)
  const copy = await openTestHistory(t, engine)
  const scans = createFakeScans({ ...setting, truth })
  const random = createRandom(`${seed}/order`)
  const peers = createPeers({
    exchange: scans.exchange,
    trust: ALL,
    list: scans.peers,
    random: () => random(1000) / 1000,
    perSecondMax: 100_000,
  })
  const dissents: Dissent[] = []
  const pool = newPool(t)
  const sync = (options: { isOneOff: boolean; onChange?: (state: SyncState) => void }) =>
    startSync({
      ...options,
      history: copy,
      pool,
      peers,
      pageSizeMax: setting.pageSizeMax ?? 1,
      onDissent: (dissent) => dissents.push(dissent),
    })
  return { truth, copy, dissents, sync }
}

async function mirrorOf(t: Cleanup, engine: TestEngine, setting: Setting) {
  const { sync, ...rest } = await open(t, engine, setting)
  const copying = sync({ isOneOff: true })
  await copying.done
  await copying.close()
  return { ...rest, state: copying.state() }
}

/** Honest for a while, so that something is stored; then until it stalls. */
async function stopped(t: Cleanup, engine: TestEngine, behaviour: Behaviour) {
  const stalled = Promise.withResolvers<void>()
  const { sync, ...rest } = await open(t, engine, {
    seed: 'stop',
    count: 4,
    lines: plainLines(40),
    pageSizeMax: 5,
    behaviour,
  })
  const copying = sync({
    isOneOff: false,
    onChange: (state) => state.stalled !== undefined && stalled.resolve(),
  })
  await stalled.promise
  await copying.close()
  return { ...rest, state: copying.state() }
}

/** Odd updates at the beginning and the end, and many plain ones between. */
function randomLines(seed: string, plainCount = 700): string[] {
  const number = Number.parseInt(Buffer.from(seed).toString('hex').slice(0, 7), 16)
  const histories = fc.sample(historyArbitrary({ maxUpdates: 100 }), { seed: number, numRuns: 10 })
  const [odd] = histories.toSorted((a, b) => b.length - a.length)
  const before = (odd ?? []).filter(({ migrationId }) => migrationId < PLAIN_MIGRATION)
  const behind = (odd ?? []).filter(({ migrationId }) => migrationId > PLAIN_MIGRATION)
  const plain = plainLines(plainCount, { migrationId: PLAIN_MIGRATION })
  return [...before.map(({ line }) => line), ...plain, ...behind.map(({ line }) => line)]
}

const PLAIN_MIGRATION = 5

async function everything(history: Parameters<typeof pageText>[0]): Promise<string> {
  const texts = await Promise.all(ENCODINGS.map((encoding) => pageText(history, { encoding })))
  return texts.join('\n')
}
