import type { PreparePool } from '../history/prepare-pool.ts'
import { type Dissent, evidenceOf } from './dissent.ts'
import { gather } from './gather.ts'
import { compareMeaning, findContradiction } from './page-meaning.ts'
import {
  askForPage,
  countItems,
  type PageBodies,
  type PageWish,
  type Told,
} from './page-request.ts'
import type { Peer, Peers } from './peers.ts'
import type { Sizes } from './quorum.ts'

/** Updates that enough scans list alike in both encodings, as one of them sent them. */
export type AgreedPage = {
  kind: 'page'
  bodies: PageBodies
  /** So many of the body's items are agreed on. */
  count: number
  /** Whether enough scans say that there is nothing behind these. */
  isEnd: boolean
  agreeing: Peer[]
}

/** Nothing that could be stored, and why. */
export type NoPage = Told & { kind: 'none'; reason: string; sizes: Sizes }

export type PageOptions = {
  peers: Peers
  pool: PreparePool
  onDissent: (dissent: Dissent) => void
  /** Told of the first page that arrives, from which the next one's position can be guessed. */
  onFirst?: (bodies: PageBodies) => void
  signal?: AbortSignal | undefined
}

/**
 * Enough equal answers decide when no more scans are faulty than may be. Those who were asked besides
 * get so long to contradict, which shows when more are. At the end of the history it has to be quick.
 */
const PATIENCE_MS = 1_000
const SHORT_PATIENCE_MS = 400
/** Where even enough answers took long, the others may take as much again, and half. */
const PATIENCE_SHARE = 1.5
/** Late answers that are compared at a time; more of them would hold too much memory. */
const LATE_AT_ONCE_MAX = 4

/**
 * Reads the updates after a position. As long as enough peers send the very same bytes, nothing has
 * to be read to compare them; otherwise their items are compared by meaning.
 */
export async function readPage(wish: PageWish, options: PageOptions): Promise<AgreedPage | NoPage> {
  const { peers, pool, signal } = options
  const { pageSize } = wish
  const sizes = peers.sizes()
  const told: Told = {
    answered: 0,
    incomplete: 0,
    overwhelmed: 0,
    isSplit: false,
    reason: undefined,
  }
  const startedAt = performance.now()
  let enoughAt: number | undefined
  let isEverybodyAsked = false
  let comparing = 0
  // The page itself travels to another thread; what came later is compared with its twin.
  let twin: PageBodies | undefined
  const page = await gather<PageBodies, AgreedPage>({
    peers,
    signal,
    async ask(peer, stop) {
      const bodies = await askForPage(peers, peer, wish, { told, signal: stop })
      if (bodies === undefined) return undefined
      told.answered += 1
      if (told.answered === 1) options.onFirst?.(bodies)
      return bodies
    },
    async decide(answers, { isSettled, pending }) {
      if (answers.size < sizes.need) return undefined
      enoughAt ??= performance.now()
      const waited = performance.now() - enoughAt
      const usual = (enoughAt - startedAt) * PATIENCE_SHARE
      const alike = largestEqual(answers)
      if (alike.length === answers.size) {
        const bodies = answers.get(alike[0] as Peer) as PageBodies
        const count = countItems(bodies, pageSize)
        if (count !== undefined) {
          const isEnd = count < pageSize
          const patience = Math.max(usual, isEnd ? SHORT_PATIENCE_MS : PATIENCE_MS)
          if (!isSettled && waited < patience) return { waitMs: patience - waited }
          for (const peer of pending) peers.noteLaggard(peer)
          twin = alike[1] && answers.get(alike[1])
          return { result: { kind: 'page', bodies, count, isEnd, agreeing: alike } }
        }
      }
      // Somebody says something else: everybody is asked.
      const patience = Math.max(usual, PATIENCE_MS)
      if (!isSettled && waited < patience) {
        return { waitMs: patience - waited, isDisputed: true }
      }
      if (isSettled && !isEverybodyAsked) {
        isEverybodyAsked = true
        return { waitMs: SHORT_PATIENCE_MS, isDisputed: true }
      }
      for (const peer of pending) peers.noteLaggard(peer)
      const result = await decideByMeaning(answers)
      return result && { result }
    },
    onLate(peer, late, { count }) {
      void compareLate(peer, late, count)
    },
  })
  return page ?? { kind: 'none', ...told, reason: explain(told, sizes), sizes }

  async function decideByMeaning(
    answers: ReadonlyMap<Peer, PageBodies>,
  ): Promise<AgreedPage | undefined> {
    const meaning = await compareMeaning(pool, answers, { pageSize, ...sizes })
    told.isSplit = meaning?.kind === 'split'
    if (meaning?.kind !== 'agreed') return undefined
    const { count, isEnd, agreeing, dissent } = meaning
    if (meaning.isPrintedDifferently) peers.preferPlainVersion()
    const bodies = answers.get(agreeing[0] as Peer) as PageBodies
    twin = agreeing[1] && answers.get(agreeing[1])
    for (const { peer, index } of dissent) {
      note(peer, index, bodies, answers.get(peer) as PageBodies)
    }
    return { kind: 'page', bodies, count, isEnd, agreeing }
  }

  function note(peer: Peer, index: number, agreed: PageBodies, found: PageBodies): void {
    peers.noteDissent(peer)
    options.onDissent(evidenceOf(peer, { after: wish.after, index, agreed, found }))
  }

  /** What came too late to count may still be evidence. */
  async function compareLate(peer: Peer, found: PageBodies, count: number): Promise<void> {
    const agreed = twin
    if (agreed === undefined || count === 0 || isSame(found, agreed)) return
    if (comparing >= LATE_AT_ONCE_MAX) return
    comparing += 1
    try {
      const index = await findContradiction(pool, { agreed, found, count })
      if (index !== undefined) note(peer, index, agreed, found)
    } catch {
      // The pool has been closed meanwhile; nobody waits for this.
    } finally {
      comparing -= 1
    }
  }
}

/** The largest group of peers that sent the very same bytes. */
function largestEqual(answers: ReadonlyMap<Peer, PageBodies>): Peer[] {
  const groups: { bodies: PageBodies; peers: Peer[] }[] = []
  for (const [peer, bodies] of answers) {
    const group = groups.find((other) => isSame(other.bodies, bodies))
    if (group === undefined) groups.push({ bodies, peers: [peer] })
    else group.peers.push(peer)
  }
  return groups.reduce<Peer[]>((best, { peers }) => (peers.length > best.length ? peers : best), [])
}

function isSame(one: PageBodies, other: PageBodies): boolean {
  return one.protobuf.equals(other.protobuf) && one.compact.equals(other.compact)
}

function explain(told: Told, { known, need, faulty }: Sizes): string {
  const { answered, reason } = told
  if (told.isSplit) {
    return `More scans contradict each other than may be faulty (${faulty} of ${known}); nothing is stored until they do not.`
  }
  const failure = reason === undefined ? '' : ` ${reason}`
  return answered < need
    ? `Only ${answered} of ${known} scans sent a page, and ${need} must agree.${failure}`
    : `${answered} of ${known} scans sent a page, but no ${need} of them the same.${failure}`
}
