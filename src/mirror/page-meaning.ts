import type { PageKeys } from '../history/item-key.ts'
import type { PreparePool } from '../history/prepare-pool.ts'
import type { PageBodies } from './page-request.ts'
import type { Peer } from './peers.ts'
import { agreeOnItems } from './quorum.ts'

// Pages whose bytes differ are compared by what their items mean.

/** What the peers' pages say, item by item. */
export type Meaning =
  | { kind: 'split' }
  | {
      kind: 'agreed'
      count: number
      /** Whether enough peers have nothing behind these items. */
      isEnd: boolean
      /** Who lists all of them; first those whose bytes most others sent too. */
      agreeing: Peer[]
      dissent: { peer: Peer; index: number }[]
      /** Whether peers print the same meaning differently. */
      isPrintedDifferently: boolean
    }
  | undefined

export async function compareMeaning(
  pool: PreparePool,
  answers: ReadonlyMap<Peer, PageBodies>,
  { pageSize, need, faulty }: { pageSize: number; need: number; faulty: number },
): Promise<Meaning> {
  const peers = [...answers.keys()]
  const all = await keysOf(pool, [...answers.values()])
  const lists = peers.map((peer, i) => {
    const { keys, raw, fault } = all[i] as PeerKeys
    return { peer, keys: keys.slice(0, pageSize), raw, fault }
  })
  const { count, agreeing, dissent, isSplit } = agreeOnItems(lists, need)
  if (isSplit) return { kind: 'split' }
  const isAgreeing = new Set(agreeing)
  const supporters = lists.filter(({ peer, keys }) => isAgreeing.has(peer) && keys.length >= count)
  const ending = supporters.filter(
    ({ keys, fault }) => fault === undefined && keys.length === count,
  )
  const isEnd = count < pageSize && ending.length >= need
  // Somebody lists more, but not enough of them the same: another answer may help.
  if (count === 0 && !isEnd) return undefined
  for (const { peer, fault } of lists) {
    const isNew = fault !== undefined && fault < count && !dissent.some((d) => d.peer === peer)
    if (isNew) dissent.push({ peer, index: fault })
  }
  if (dissent.length > faulty) return { kind: 'split' }
  const { usual, isPrintedDifferently } = orderByBytes(count === 0 ? ending : supporters, count)
  return { kind: 'agreed', count, isEnd, agreeing: usual, dissent, isPrintedDifferently }
}

/** The first of so many items in which a page contradicts what was agreed on. */
export async function findContradiction(
  pool: PreparePool,
  { agreed, found, count }: { agreed: PageBodies; found: PageBodies; count: number },
): Promise<number | undefined> {
  const [truth, other] = (await keysOf(pool, [agreed, found])) as [PeerKeys, PeerKeys]
  const length = Math.min(count, truth.keys.length)
  for (let index = 0; index < length; index += 1) {
    if (index >= other.keys.length) return other.fault === undefined ? undefined : index
    if (truth.keys[index] !== other.keys[index]) return index
  }
  return undefined
}

/** A peer's items by keys of both encodings, up to the first that is none. */
type PeerKeys = { keys: string[]; raw: string[]; fault: number | undefined }

async function keysOf(pool: PreparePool, bodies: PageBodies[]): Promise<PeerKeys[]> {
  const [protobuf, compact] = await Promise.all([
    pool.pageKeys(bodies.map((each) => each.protobuf)),
    pool.pageKeys(bodies.map((each) => each.compact)),
  ])
  return bodies.map((_, i) => join(protobuf[i] as PageKeys, compact[i] as PageKeys))
}

function join(one: PageKeys, other: PageKeys): PeerKeys {
  const length = Math.min(one.keys.length, other.keys.length)
  const faults = [one.fault?.index, other.fault?.index].filter((index) => index !== undefined)
  const first = one.keys.slice(0, length)
  return {
    keys: first.map(({ key }, i) => `${key} ${other.keys[i]?.key}`),
    raw: first.map(({ raw }, i) => `${raw} ${other.keys[i]?.raw}`),
    fault: faults.length === 0 ? undefined : Math.min(...faults),
  }
}

function orderByBytes(lists: { peer: Peer; raw: string[] }[], count: number) {
  const votes = new Map<string, number>()
  const each = lists.map(({ peer, raw }) => ({ peer, raw: raw.slice(0, count) }))
  for (const raw of each.flatMap((list) => list.raw)) votes.set(raw, (votes.get(raw) ?? 0) + 1)
  const votesFor = (raw: string[]) => raw.reduce((sum, one) => sum + (votes.get(one) ?? 0), 0)
  return {
    usual: each.toSorted((a, b) => votesFor(b.raw) - votesFor(a.raw)).map(({ peer }) => peer),
    isPrintedDifferently: votes.size > count,
  }
}
