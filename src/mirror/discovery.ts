import { setTimeout as wait } from 'node:timers/promises'
import type { Db } from '../db/db.ts'
import { SCAN_LIMITS, scanBase } from '../scan/client.ts'
import { isObject } from '../values/json.ts'
import { createPeers, type Peer, type Peers } from './peers.ts'
import { readNetwork, type StoredNetwork, writeNetwork } from './peers-store.ts'
import type { Trust } from './quorum.ts'
import { readAgreed } from './read.ts'

export type DiscoveryOptions = {
  db: Db
  peers: Peers
  trust: Trust
  seeds: readonly Peer[]
  /** The scans of these super validators alone, where they were chosen. */
  svNames?: readonly string[] | undefined
  /** One seed is all there is, and no other is wanted. */
  isSingle?: boolean
  /** The name of this copy, to leave itself out. */
  mirrorId: string
  /** Whether this node may write what it learns. */
  isWriter: () => boolean
  onChange: (network: StoredNetwork) => void
  onFailure: (reason: string) => void
  intervalMs?: number
}

export type Discovery = {
  network(): StoredNetwork
  /** Resolves when the scans are known, from the database or from the network. */
  readonly known: Promise<void>
  close(): Promise<void>
}

/** As deployed validators do. */
const INTERVAL_MS = 10 * 60_000
/** When the list cannot be read it is asked for soon, and then ever more seldom. */
const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 30_000
/** A network of a few dozen super validators; more would make every read expensive. */
const PEERS_MAX = 200
const SELF_LIMITS = { ...SCAN_LIMITS, headMs: 3_000, wholeMs: 5_000, bytesMax: 1024 * 1024 }

/**
 * Learns which scans the network has. The first time the seeds are asked; what they agree on is
 * stored and from then on asked itself, so that a restart does not need the seeds.
 */
export async function startDiscovery(options: DiscoveryOptions): Promise<Discovery> {
  const { db, peers, seeds } = options
  const stop = new AbortController()
  const known = Promise.withResolvers<void>()
  const strangers = new Set<string>()
  let network = await readNetwork(db)
  if (options.isSingle) {
    network = { synchronizerId: undefined, peers: [...seeds] }
    peers.set(seeds)
    known.resolve()
    return { network: () => network, known: known.promise, close: async () => {} }
  }
  if (network.peers.length > 0) {
    peers.set(network.peers)
    known.resolve()
  } else {
    peers.set(seeds)
  }

  async function run(): Promise<void> {
    let retryMs = RETRY_MS_MIN
    while (!stop.signal.aborted) {
      const failure = await refresh()
      if (failure === undefined) retryMs = RETRY_MS_MIN
      else if (!stop.signal.aborted) options.onFailure(failure)
      const ms = failure === undefined ? (options.intervalMs ?? INTERVAL_MS) : retryMs
      await wait(ms, undefined, { signal: stop.signal }).catch(() => {})
      if (failure !== undefined) retryMs = Math.min(RETRY_MS_MAX, retryMs * 2)
    }
    known.resolve()
  }

  async function refresh(): Promise<string | undefined> {
    try {
      if (!options.isWriter()) {
        // The one that copies keeps the list; the others follow it.
        await take(await readNetwork(db))
        return undefined
      }
      const known = { ...options, network, strangers, signal: stop.signal }
      let found = await findNetwork(known)
      if ('reason' in found && found.answered === 0 && network.peers.length > 0) {
        // Nobody of the stored list is there any more: begin again from the seeds.
        const first = createPeers({ exchange: peers.exchange, trust: options.trust, list: seeds })
        found = await findNetwork({ ...known, peers: first })
      }
      if ('reason' in found) return found.reason
      if (!isSameNetwork(found, network)) await writeNetwork(db, found)
      await take(found)
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }

  async function take(next: StoredNetwork): Promise<void> {
    if (next.peers.length === 0) return
    const isChanged = !isSameNetwork(next, network)
    network = next
    peers.set(next.peers)
    if (isChanged) options.onChange(next)
    known.resolve()
  }

  const running = run()
  return {
    network: () => network,
    known: known.promise,
    async close() {
      stop.abort()
      await running
    },
  }
}

export type FindOptions = Pick<DiscoveryOptions, 'peers' | 'seeds' | 'svNames' | 'mirrorId'> & {
  /** What is known already. */
  network: StoredNetwork
  /** Scans that are known to be others than this node. */
  strangers: Set<string>
  signal?: AbortSignal | undefined
}

/** Asks the peers once which scans their network has. */
export async function findNetwork(
  options: FindOptions,
): Promise<StoredNetwork | { reason: string; answered: number }> {
  const { peers, seeds, svNames, signal } = options
  const answer = await readAgreed(peers, {
    method: 'GET',
    path: '/v0/scans',
    keyOf: (json) => JSON.stringify(readGroups(json)),
    signal,
  })
  if (answer.kind === 'none') return answer
  const groups = answer.kind === 'agreed' ? readGroups(answer.json) : []
  const group = await chooseGroup(groups, options)
  const chosen = (group?.peers ?? []).filter(({ svName }) => svNames?.includes(svName) ?? true)
  const listed = await withoutSelf(chosen, options)
  // A network that lists nobody is the one that is known, or else that of the seeds.
  const isUnlisted = svNames === undefined && listed.length === 0
  if (isUnlisted && options.network.peers.length > 0) return options.network
  const list = isUnlisted ? await withoutSelf(seeds, options) : listed
  if (list.length > 0) return { synchronizerId: group?.synchronizerId, peers: list }
  const reason =
    svNames === undefined
      ? 'The network lists no scan but this node itself.'
      : `The network lists no scan of ${svNames.join(', ')}; check scanClient.svNames.`
  return { reason, answered: 1 }
}

async function withoutSelf(list: readonly Peer[], options: FindOptions): Promise<Peer[]> {
  const isSelf = await Promise.all(list.map((peer) => isThisNode(peer, options)))
  return list.filter((_, i) => !isSelf[i])
}

async function isThisNode(
  peer: Peer,
  { peers, strangers, mirrorId, signal }: FindOptions,
): Promise<boolean> {
  if (strangers.has(peer.base)) return false
  const request = { method: 'GET', path: '/v0/annals/mirror' } as const
  const answer = await peers.ask(peer, request, { limits: SELF_LIMITS, signal })
  if (answer.kind === 'fault') return false
  const isSelf = answer.status === 200 && answer.bytes.includes(`"mirrorId":"${mirrorId}"`)
  if (!isSelf) strangers.add(peer.base)
  return isSelf
}

/** The scans of the synchronizer that the network uses now; older ones may be listed beside it. */
async function chooseGroup(groups: Group[], options: FindOptions): Promise<Group | undefined> {
  if (groups.length < 2) return groups[0]
  const { peers, network, signal } = options
  const rules = await readAgreed(peers, {
    method: 'POST',
    path: '/v0/amulet-rules',
    body: '{}',
    keyOf: (json) => String(synchronizerOfRules(json)),
    signal,
  })
  const current = rules.kind === 'agreed' ? synchronizerOfRules(rules.json) : undefined
  const bases = new Set(peers.list().map(({ base }) => base))
  const knownIn = (group: Group) => group.peers.filter(({ base }) => bases.has(base)).length
  return (
    groups.find(({ synchronizerId }) => synchronizerId === current) ??
    groups.find(({ synchronizerId }) => synchronizerId === network.synchronizerId) ??
    groups.toSorted((a, b) => knownIn(b) - knownIn(a) || b.peers.length - a.peers.length)[0]
  )
}

type Group = { synchronizerId: string; peers: Peer[] }

/** In one order, since scans need not list them in the same. Addresses that are none are left out. */
function readGroups(json: unknown): Group[] {
  const groups = isObject(json) && Array.isArray(json.scans) ? json.scans : undefined
  if (groups === undefined) throw new TypeError('The answer is not a list of scans.')
  return groups
    .filter(isObject)
    .map(({ domainId, scans }) => ({
      synchronizerId: String(domainId ?? ''),
      peers: (Array.isArray(scans) ? scans : []).slice(0, PEERS_MAX).flatMap(readPeer),
    }))
    .map(({ synchronizerId, peers }) => ({ synchronizerId, peers: inOrder(peers) }))
    .toSorted((a, b) => (a.synchronizerId < b.synchronizerId ? -1 : 1))
}

function readPeer(scan: unknown): Peer[] {
  if (!isObject(scan) || typeof scan.publicUrl !== 'string') return []
  const base = scanBase(scan.publicUrl)
  return base === undefined ? [] : [{ base, svName: String(scan.svName ?? '') }]
}

function inOrder(peers: Peer[]): Peer[] {
  const byBase = new Map(peers.map((peer) => [peer.base, peer]))
  return [...byBase.values()].toSorted((a, b) => (a.base < b.base ? -1 : 1))
}

function synchronizerOfRules(json: unknown): string | undefined {
  const update = isObject(json) ? json.amulet_rules_update : undefined
  const id = isObject(update) ? update.domain_id : undefined
  return typeof id === 'string' ? id : undefined
}

function isSameNetwork(one: StoredNetwork, other: StoredNetwork): boolean {
  return (
    one.synchronizerId === other.synchronizerId &&
    JSON.stringify(inOrder(one.peers)) === JSON.stringify(inOrder(other.peers))
  )
}
