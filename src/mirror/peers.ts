import type { Exchange } from '../http/exchange.ts'
import {
  askScan,
  type ScanAnswer,
  type ScanLimits,
  type ScanRequest,
  scanBase,
} from '../scan/client.ts'
import { createGate, type Gate } from './gate.ts'
import { type Sizes, sizesOf, type Trust } from './quorum.ts'

/** A scan of the network. */
export type Peer = { readonly base: string; readonly svName: string }

/** The scan at an address that an operator gave, known by its host; undefined when it is none. */
export function peerAt(address: string): Peer | undefined {
  const base = scanBase(address)
  return base === undefined ? undefined : { base, svName: new URL(base).host }
}

/** What is known of how a peer has behaved since the start. */
export type PeerRecord = {
  peer: Peer
  answers: number
  failures: number
  /** Failures since it last answered. */
  failuresInRow: number
  dissents: number
  lastFailure: string | undefined
  lastMs: number | undefined
  /** Versions of the update pages that it does not serve. */
  lacks: Set<1 | 2>
}

/** The scans that are asked, and what is remembered of them while the process runs. */
export type Peers = {
  readonly exchange: Exchange
  /** Replaces the list; what is known of those that stay is kept. */
  set(list: readonly Peer[]): void
  list(): Peer[]
  record(peer: Peer): PeerRecord
  records(): PeerRecord[]
  sizes(): Sizes
  /** All peers in the order in which they should be asked: at random, those in trouble last. */
  order(): Peer[]
  /** Asks one peer, politely; one that rests is not asked. */
  ask(peer: Peer, request: ScanRequest, options: AskOptions): Promise<ScanAnswer>
  /**
   * Which version of the update pages to ask for. v1 is what scans of our kind have stored; where its
   * offsets, which are each node's own affair, make equal updates look different, v2 leaves them out.
   */
  pageVersion(): 1 | 2
  preferPlainVersion(): void
  /** Notes an answer that the others contradict. */
  noteDissent(peer: Peer): void
  /** Notes that a peer makes others wait. */
  noteLaggard(peer: Peer): void
}

export type AskOptions = { limits: ScanLimits; signal?: AbortSignal | undefined }

/** A scan whose history is incomplete refuses pages and yet answers everything else. */
type Lane = 'pages' | 'other'

type State = PeerRecord & {
  gate: Gate
  restsUntil: Record<Lane, number>
  dissentedAt: number | undefined
  laggedAt: number | undefined
}

const REST_MS_MIN = 250
const REST_MS_MAX = 30_000
/** A peer that was contradicted is asked after the others for so long. */
const DISTRUST_MS = 10 * 60_000
/** And one that made the others wait, for so long. */
const LAGGARD_MS = 30_000
/** Now and then such a peer is asked all the same, to see whether it has mended its ways. */
const PROBED_SHARE = 1 / 50

export function createPeers(options: {
  exchange: Exchange
  trust: Trust
  list?: readonly Peer[]
  random?: () => number
  /** Questions to each peer; tests ask as fast as they can. */
  perSecondMax?: number
  now?: () => number
}): Peers {
  const { exchange, trust, random = Math.random, now = () => performance.now() } = options
  let states = new Map<string, State>()
  let version: 1 | 2 = 1
  const newState = (peer: Peer) => startState(peer, createGate(options.perSecondMax))
  const stateOf = (peer: Peer) => states.get(peer.base) ?? newState(peer)
  const peers: Peers = {
    exchange,
    set(list) {
      states = new Map(
        list.map((peer) => {
          const known = states.get(peer.base)
          return [peer.base, known === undefined ? newState(peer) : Object.assign(known, { peer })]
        }),
      )
    },
    list: () => [...states.values()].map(({ peer }) => peer),
    record: stateOf,
    records: () => [...states.values()],
    sizes: () => sizesOf(states.size, trust),
    order() {
      const troubleOf = (state: State) => {
        if (state.restsUntil.pages > now()) return 2
        if (random() < PROBED_SHARE) return 0
        const isRecent = (at: number | undefined, ms: number) => at !== undefined && now() - at < ms
        const { dissentedAt, laggedAt } = state
        return isRecent(dissentedAt, DISTRUST_MS) || isRecent(laggedAt, LAGGARD_MS) ? 1 : 0
      }
      return [...states.values()]
        .map((state) => ({ state, rank: troubleOf(state) + random() }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ state }) => state.peer)
    },
    async ask(peer, request, { limits, signal }) {
      const state = stateOf(peer)
      const lane = laneOf(request)
      if (state.restsUntil[lane] > now()) {
        const reason = `It rests after a failure: ${state.lastFailure ?? 'too many requests'}`
        return { kind: 'fault', fault: 'resting', reason, ms: 0 }
      }
      const leave = await state.gate.enter()
      if (leave === undefined) {
        return { kind: 'fault', fault: 'resting', reason: 'Too many questions wait.', ms: 0 }
      }
      try {
        const answer = await askScan({ exchange, base: peer.base, request, limits, signal })
        if (signal?.aborted !== true) note(state, lane, answer, now())
        return answer
      } finally {
        leave()
      }
    },
    pageVersion: () => version,
    preferPlainVersion() {
      version = 2
    },
    noteDissent(peer) {
      const state = stateOf(peer)
      state.dissents += 1
      state.dissentedAt = now()
    },
    noteLaggard(peer) {
      stateOf(peer).laggedAt = now()
    },
  }
  peers.set(options.list ?? [])
  return peers
}

function startState(peer: Peer, gate: Gate): State {
  return {
    peer,
    answers: 0,
    failures: 0,
    failuresInRow: 0,
    dissents: 0,
    lastFailure: undefined,
    lastMs: undefined,
    lacks: new Set(),
    gate,
    restsUntil: { pages: 0, other: 0 },
    dissentedAt: undefined,
    laggedAt: undefined,
  }
}

function laneOf({ path }: ScanRequest): Lane {
  return /^\/v\d\/updates$/.test(path) ? 'pages' : 'other'
}

function note(state: State, lane: Lane, answer: ScanAnswer, now: number): void {
  const isRefusal = answer.kind === 'answer' && (answer.status === 429 || answer.status >= 500)
  if (answer.kind === 'answer' && !isRefusal) {
    state.answers += 1
    state.failuresInRow = 0
    state.lastMs = answer.ms
    return
  }
  state.failures += 1
  state.failuresInRow += 1
  state.lastFailure = answer.kind === 'fault' ? answer.reason : `It answers ${answer.status}.`
  const doubled = REST_MS_MIN * 2 ** Math.min(state.failuresInRow - 1, 10)
  const asked = answer.kind === 'answer' ? answer.retryAfterMs : undefined
  const until = now + (asked ?? Math.min(REST_MS_MAX, doubled))
  const isIncomplete = answer.kind === 'answer' && answer.status === 503
  for (const each of isIncomplete ? [lane] : (['pages', 'other'] as const)) {
    state.restsUntil[each] = until
  }
}
