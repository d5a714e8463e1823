import { gather } from './gather.ts'
import { askForm, countItems, type PageBodies, type PageWish, pageBodies } from './page-request.ts'
import type { AgreedPage } from './pages.ts'
import type { Peers } from './peers.ts'

/**
 * Where values carry labels, the compact form of an update follows from its lossless form. It is then
 * proved without votes, and the votes on the lossless form suffice: all peers are asked for that one,
 * and a single peer, another each time, for the compact form. This takes a third off the bytes.
 *
 * Only pages in which everything is as it should be are read so. Whatever else is found (bytes that
 * differ, a short page, a compact form that is not the one that follows) is left to `readPage`.
 */
export type Sparing = {
  readonly isOn: boolean
  /** Memory of bodies that were only compared, for the next ones. */
  readonly free: Buffer[]
  /** A page in both encodings was proved to be all derived. */
  noteDerived(): void
  /** Something was unusual: for some time every peer is asked for both encodings. */
  noteDoubt(): void
}

/** A few pages ahead, of a few peers each. */
const FREE_MAX = 16
const CAUTIOUS_PAGES_MIN = 4
const CAUTIOUS_PAGES_MAX = 1024

export function createSparing(): Sparing {
  let wanted = 1
  let proved = 0
  return {
    free: [],
    get isOn() {
      return proved >= wanted
    },
    noteDerived() {
      proved += 1
    },
    noteDoubt() {
      wanted = Math.min(CAUTIOUS_PAGES_MAX, Math.max(CAUTIOUS_PAGES_MIN, wanted * 2))
      proved = 0
    },
  }
}

/** After the first answer everybody else has so long, or thrice as long as that took. */
const PATIENCE_MS = 2_000
const PATIENCE_SHARE = 3

type Forms = { protobuf: Buffer; compact: Buffer | undefined }

/** A whole page whose lossless form all who were asked sent alike; undefined when it is not that simple. */
export async function readSparingPage(
  wish: PageWish,
  options: {
    peers: Peers
    free: Buffer[]
    onFirst: (bodies: PageBodies) => void
    signal: AbortSignal
  },
): Promise<AgreedPage | undefined> {
  const { peers, free } = options
  const ask = Math.min(peers.sizes().ask, peers.list().length)
  const told = { answered: 0, incomplete: 0, overwhelmed: 0, isSplit: false, reason: undefined }
  const unusual = new AbortController()
  const startedAt = performance.now()
  let firstAt: number | undefined
  let isCompactTaken = false
  const page = await gather<Forms, AgreedPage>({
    peers,
    signal: AbortSignal.any([options.signal, unusual.signal]),
    async ask(peer, signal) {
      const isCompactWanted = !isCompactTaken
      isCompactTaken = true
      const [protobuf, compact] = await Promise.all([
        askForm(peers, peer, { ...wish, form: 'protobuf', into: free.pop() }, { told, signal }),
        isCompactWanted
          ? askForm(peers, peer, { ...wish, form: 'compact' }, { told, signal })
          : undefined,
      ])
      if (protobuf === undefined || (isCompactWanted && compact === undefined)) {
        if (isCompactWanted) isCompactTaken = false
        return undefined
      }
      if (firstAt === undefined) {
        firstAt = performance.now()
        options.onFirst(pageBodies(protobuf, protobuf))
      }
      return { protobuf, compact }
    },
    decide(answers, { pending }) {
      const [first, ...others] = [...answers.values()]
      if (first === undefined) return undefined
      const answeredAt = firstAt ?? startedAt
      const waited = performance.now() - answeredAt
      const patience = Math.max(PATIENCE_MS, (answeredAt - startedAt) * PATIENCE_SHARE)
      const isOdd = others.some(({ protobuf }) => !protobuf.equals(first.protobuf))
      const isMissing = answers.size < ask
      if (!isOdd && isMissing && pending.size > 0 && waited < patience) {
        return { waitMs: patience - waited }
      }
      const compact = [first, ...others].find((each) => each.compact !== undefined)?.compact
      const bodies = compact && pageBodies(first.protobuf, compact)
      const isWhole = bodies !== undefined && countItems(bodies, wish.pageSize) === wish.pageSize
      if (isOdd || isMissing || !isWhole) {
        for (const peer of pending) peers.noteLaggard(peer)
        unusual.abort()
        return undefined
      }
      for (const { protobuf } of others) {
        if (free.length < FREE_MAX) free.push(Buffer.from(protobuf.buffer))
      }
      const agreeing = [...answers.keys()]
      return { result: { kind: 'page', bodies, count: wish.pageSize, isEnd: false, agreeing } }
    },
  })
  return page
}
