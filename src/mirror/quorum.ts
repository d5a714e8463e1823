/**
 * What a network of scans says, when some of them may say anything. Of n known scans up to
 * f = ⌊(n−1)/3⌋ may be faulty. What f+1 say alike, at least one sound scan says.
 */
export type Trust =
  /** Every scan of the network; 2f+1 is the stricter choice. */
  | { mode: 'all'; agreement: 'f+1' | '2f+1' }
  /** Chosen scans, of which so many must agree. */
  | { mode: 'chosen'; threshold: number }
  /** One scan, believed in everything. */
  | { mode: 'single' }

export type Sizes = {
  /** Scans that the network is known to have, whether they answer or not. */
  known: number
  /** Scans that may be faulty without harm. */
  faulty: number
  /** Scans asked at first; more when some of them do not help. */
  ask: number
  /** Scans that must say the same. */
  need: number
}

export function sizesOf(known: number, trust: Trust): Sizes {
  if (trust.mode === 'single') return { known, faulty: 0, ask: 1, need: 1 }
  const faulty = Math.max(0, Math.floor((known - 1) / 3))
  if (trust.mode === 'chosen') return { known, faulty, ask: known, need: trust.threshold }
  // To get 2f+1 equal answers although f scans fail, all of them must be asked.
  return trust.agreement === 'f+1'
    ? { known, faulty, ask: 2 * faulty + 1, need: faulty + 1 }
    : { known, faulty, ask: known, need: 2 * faulty + 1 }
}

/** Disagreement is an answer, not an exception. */
export type Verdict<Peer> =
  | { agreed: string; agreeing: Peer[]; dissenting: Peer[] }
  | { agreed: undefined; groups: Peer[][] }

/** Answers are equal when their keys are; an answer without a key (a failure) equals no other. */
export function agreeOnAnswer<Peer>(
  answers: readonly { peer: Peer; key: string | undefined }[],
  need: number,
): Verdict<Peer> {
  const groups = new Map<string, Peer[]>()
  for (const { peer, key } of answers) {
    if (key !== undefined) groups.set(key, [...(groups.get(key) ?? []), peer])
  }
  const large = [...groups].filter(([, peers]) => peers.length >= need)
  const [winner] = large
  // Two groups that are both large enough: more scans lie than may, and nobody knows which.
  if (winner === undefined || large.length > 1) {
    return { agreed: undefined, groups: [...groups.values()] }
  }
  const [agreed, agreeing] = winner
  const dissenting = [...groups].flatMap(([key, peers]) => (key === agreed ? [] : peers))
  return { agreed, agreeing, dissenting }
}

/** A peer's items after a common position, by keys that are equal when the items mean the same. */
export type PeerItems<Peer> = { peer: Peer; keys: readonly string[] }

export type ItemsVerdict<Peer> = {
  /** How many items, from the first on, enough peers list alike. */
  count: number
  /** Those who list all of these; undefined as long as nobody is needed to. */
  agreeing: Peer[]
  /** Where a peer says something else than the others, or lists what cannot be there. */
  dissent: { peer: Peer; index: number }[]
  /** Whether two contradicting groups were both large enough. */
  isSplit: boolean
}

/**
 * The longest run of items that enough peers share from the first one on. A peer whose list is
 * shorter is behind and agrees as far as it goes; one that lists another item is left out from there.
 */
export function agreeOnItems<Peer>(
  lists: readonly PeerItems<Peer>[],
  need: number,
): ItemsVerdict<Peer> {
  const dissent: { peer: Peer; index: number }[] = []
  let agreeing = [...lists]
  for (let index = 0; ; index += 1) {
    const present = agreeing.filter(({ keys }) => index < keys.length)
    const verdict = agreeOnAnswer(
      present.map((list) => ({ peer: list, key: list.keys[index] })),
      need,
    )
    if (verdict.agreed === undefined) {
      const isSplit = verdict.groups.filter((group) => group.length >= need).length > 1
      return { count: index, agreeing: agreeing.map(({ peer }) => peer), dissent, isSplit }
    }
    for (const { peer } of verdict.dissenting) dissent.push({ peer, index })
    agreeing = verdict.agreeing
  }
}
