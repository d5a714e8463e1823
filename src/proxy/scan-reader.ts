import { pageKeys } from '../history/item-key.ts'
import { itemBytes, readItems } from '../history/page-items.ts'
import type { HttpCall } from '../http/call.ts'
import { PlainError } from '../http/plain-error.ts'
import { gather } from '../mirror/gather.ts'
import type { Peer, Peers } from '../mirror/peers.ts'
import { agreeOnItems, type Sizes } from '../mirror/quorum.ts'
import { readAgreed } from '../mirror/read.ts'
import type { ScanLimits, ScanRequest } from '../scan/client.ts'

export type ReadOptions = {
  keyOf?: ((json: unknown) => string) | undefined
  signal: AbortSignal
}

export type ReadAnswer = { status: number; text: string }

/** Where reads of the network go to. */
export type ScanReader = {
  read(request: ScanRequest, options: ReadOptions): Promise<ReadAnswer>
  /** A page of updates: as many as are agreed on from the first one on. */
  readPage(request: ScanRequest, options: ReadOptions): Promise<ReadAnswer>
}

/** A client waits for the answer, so that it must come while it still does. */
const LIMITS: ScanLimits = { headMs: 10_000, wholeMs: 20_000, bytesMax: 16 * 1024 * 1024 }

/** On a network of the node's own there is one scan, and the node knows it to be honest. */
export function readOwnScan(call: HttpCall): ScanReader {
  async function read(request: ScanRequest, { signal }: ReadOptions): Promise<ReadAnswer> {
    const { method, path, body } = request
    const answer = await call({
      method,
      path: `/api/scan${path}`,
      signal,
      ...(body === undefined ? {} : { body }),
    })
    return { status: answer.status, text: answer.body }
  }
  return { read, readPage: read }
}

/** Reads that hold although some scans of the network may say anything. */
export function readNetwork(peers: Peers): ScanReader {
  return {
    async read(request, { keyOf, signal }) {
      const answer = await readAgreed(peers, {
        ...request,
        ...(keyOf === undefined ? {} : { keyOf }),
        bytesMax: LIMITS.bytesMax,
        signal,
      })
      if (answer.kind === 'none') throw noAgreement(answer.answered, answer.sizes)
      return { status: answer.status, text: answer.text }
    },
    readPage: (request, options) => readAgreedPage(peers, request, options),
  }
}

type Page = { status: number; bytes: Buffer }

async function readAgreedPage(
  peers: Peers,
  request: ScanRequest,
  { signal }: ReadOptions,
): Promise<ReadAnswer> {
  const sizes = peers.sizes()
  let answered = 0
  const agreed = await gather<Page, ReadAnswer>({
    peers,
    signal,
    async ask(peer, stop) {
      const answer = await peers.ask(peer, request, { limits: LIMITS, signal: stop })
      if (answer.kind === 'fault' || answer.status === 429 || answer.status >= 500) return undefined
      const { status, bytes } = answer
      if (status === 200 && readItems(bytes) === undefined) return undefined
      answered += 1
      return { status, bytes }
    },
    decide(answers, { isSettled }) {
      if (answers.size < sizes.need) return undefined
      const alike = largestAlike(answers)
      const best = answers.get(alike[0] as Peer) as Page
      const isSame = alike.length >= sizes.need && answers.size - alike.length < sizes.need
      if (isSame) return { result: { status: best.status, text: best.bytes.toString('utf8') } }
      // Some of them may merely be behind: what all of them say counts when all have spoken.
      return isSettled ? commonPrefix(answers, sizes, peers) : undefined
    },
  })
  if (agreed === undefined) throw noAgreement(answered, sizes)
  return agreed
}

function commonPrefix(
  answers: ReadonlyMap<Peer, Page>,
  { need }: Sizes,
  peers: Peers,
): { result: ReadAnswer } | undefined {
  const pages = [...answers].filter(([, { status }]) => status === 200)
  const found = pageKeys(pages.map(([, { bytes }]) => bytes))
  // Whoever lists something that is no update is not believed in the rest either.
  const lists = pages.flatMap(([peer], index) => {
    const { keys = [], fault } = found[index] ?? {}
    return fault === undefined ? [{ peer, keys: keys.map(({ key }) => key) }] : []
  })
  const { count, agreeing, dissent, isSplit } = agreeOnItems(lists, need)
  // An empty page says that there is nothing more, so that enough scans must say just that.
  const isNothing = lists.filter((list) => list.keys.length === 0).length >= need
  if (isSplit || (count === 0 && !isNothing)) return undefined
  for (const { peer } of dissent) peers.noteDissent(peer)
  const whose = agreeing.find(
    (peer) => (lists.find((list) => list.peer === peer)?.keys.length ?? 0) >= count,
  )
  const page = whose === undefined ? undefined : answers.get(whose)
  const items = page === undefined ? undefined : readItems(page.bytes)
  if (items === undefined) return undefined
  const texts = Array.from({ length: count }, (_, index) =>
    itemBytes(items, index).toString('utf8'),
  )
  return { result: { status: 200, text: `{"transactions":[${texts.join(',')}]}` } }
}

function largestAlike(answers: ReadonlyMap<Peer, Page>): Peer[] {
  const groups: Peer[][] = []
  for (const [peer, page] of answers) {
    const group = groups.find((others) => isSamePage(answers.get(others[0] as Peer) as Page, page))
    if (group === undefined) groups.push([peer])
    else group.push(peer)
  }
  return groups.reduce((best, group) => (group.length > best.length ? group : best), [])
}

function isSamePage(one: Page, other: Page): boolean {
  return one.status === other.status && one.bytes.equals(other.bytes)
}

/** The scans say different things, or too few say anything. */
export class NoAgreement extends PlainError {}

/** In the words of deployed validators, which apps may look for. */
function noAgreement(answered: number, { known, need }: Sizes): NoAgreement {
  return new NoAgreement(
    502,
    answered < need
      ? `Only ${answered} scan instances can be used (out of ${known} configured ones), which are fewer than the necessary ${need} to achieve BFT guarantees.`
      : `Failed to reach consensus from ${answered} Scan nodes, requiring ${need} matching responses.`,
  )
}
