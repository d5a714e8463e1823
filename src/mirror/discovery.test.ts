import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Answer, createAnsweringScans } from '../../test/support/answering-scans.ts'
import { type Cleanup, forEachEngine } from '../../test/support/engines.ts'
import type { Db } from '../db/db.ts'
import { type DiscoveryOptions, startDiscovery } from './discovery.ts'
import { createPeers, type Peer } from './peers.ts'
import { readMirrorId } from './peers-store.ts'

const TRUST = { mode: 'all', agreement: 'f+1' } as const

forEachEngine((engine) => {
  const on = `on ${engine.name}`

  test(`a seed names the scans, which are kept for a start without it, ${on}`, async (t) => {
    const db = await engine.open(t, 'app')
    let isSeedThere = true
    const answer = (host: string, path: string): Answer => {
      if (host === 'seed.test' && !isSeedThere) return 'away'
      return path === '/v0/scans' ? listOf(['a', 'b', 'c', 'd']) : NOT_HERE
    }
    assert.deepEqual(await discover(t, db, answer), ['a.test', 'b.test', 'c.test', 'd.test'])
    isSeedThere = false
    assert.deepEqual(await discover(t, db, answer), ['a.test', 'b.test', 'c.test', 'd.test'])
  })

  test(`the list follows the network, as enough of the known scans tell it, ${on}`, async (t) => {
    const db = await engine.open(t, 'app')
    let names = ['a', 'b', 'c', 'd']
    const answer = (host: string, path: string): Answer => {
      if (path !== '/v0/scans') return NOT_HERE
      return listOf(host === 'b.test' ? ['evil'] : names)
    }
    await discover(t, db, answer)
    names = ['a', 'b', 'c', 'e', 'f']
    assert.deepEqual(
      await discover(t, db, answer, { isSettled: (list) => list.includes('f.test') }),
      ['a.test', 'b.test', 'c.test', 'e.test', 'f.test'],
    )
  })

  test(`of several synchronizers the one of the rules counts, ${on}`, async (t) => {
    const db = await engine.open(t, 'app')
    const scans = [
      { domainId: 'old::12', scans: ['x', 'y', 'z'].map(scanOf) },
      { domainId: 'new::12', scans: ['a', 'b'].map(scanOf) },
    ]
    const answer = (_host: string, path: string): Answer => {
      if (path === '/v0/scans') return { status: 200, json: { scans } }
      const rules = { amulet_rules_update: { domain_id: 'new::12', contract: {} } }
      return path === '/v0/amulet-rules' ? { status: 200, json: rules } : NOT_HERE
    }
    assert.deepEqual(await discover(t, db, answer), ['a.test', 'b.test'])
  })

  test(`only chosen super validators are asked, and never the node itself, ${on}`, async (t) => {
    const db = await engine.open(t, 'app')
    const mirrorId = await readMirrorId(db)
    const answer = (host: string, path: string): Answer => {
      if (path === '/v0/scans') return listOf(['a', 'b', 'c', 'd'])
      return host === 'c.test' ? { status: 200, json: { mirrorId } } : NOT_HERE
    }
    assert.deepEqual(await discover(t, db, answer, { svNames: ['SV a', 'SV c'] }), ['a.test'])
  })

  test(`a network that lists nobody is the one of the seeds, ${on}`, async (t) => {
    const db = await engine.open(t, 'app')
    const answer = (_host: string, path: string) => (path === '/v0/scans' ? listOf([]) : NOT_HERE)
    assert.deepEqual(await discover(t, db, answer), ['seed.test'])
  })
})

const NOT_HERE: Answer = { status: 404, json: { error: 'not here' } }

function scanOf(name: string) {
  return { publicUrl: `http://${name}.test`, svName: `SV ${name}` }
}

function listOf(names: string[]): Answer {
  const group = { domainId: 'global-domain::12', scans: names.map(scanOf) }
  return { status: 200, json: { scans: names.length === 0 ? [] : [group] } }
}

/** The hosts that are known in the end. */
async function discover(
  t: Cleanup,
  db: Db,
  answer: (host: string, path: string) => Answer,
  options: Partial<DiscoveryOptions> & { isSettled?: (hosts: string[]) => boolean } = {},
): Promise<string[]> {
  const { exchange } = createAnsweringScans(answer)
  const peers = createPeers({ exchange, trust: TRUST, perSecondMax: 100_000 })
  const seeds: Peer[] = [{ base: 'http://seed.test/api/scan', svName: 'seed' }]
  const discovery = await startDiscovery({
    db,
    peers,
    trust: TRUST,
    seeds,
    mirrorId: await readMirrorId(db),
    isWriter: () => true,
    onChange: () => {},
    onFailure: () => {},
    intervalMs: 20,
    ...options,
  })
  t.after(() => discovery.close())
  await discovery.known
  const hosts = () => peers.list().map(({ base }) => new URL(base).hostname)
  const deadline = performance.now() + 5_000
  while (options.isSettled?.(hosts()) === false && performance.now() < deadline) await wait(10)
  await discovery.close()
  return hosts().toSorted()
}
