import { setTimeout as wait } from 'node:timers/promises'
import { createHoldings, type Held, type Holdings, WALLET_TEMPLATE_IDS } from './holdings.ts'
import type { Update } from './ledger-event.ts'
import type { Participant } from './participant.ts'

/**
 * A view in memory of what the wallets of this node hold. It starts from the active contracts at the
 * offset where its log stands, and follows the ledger from there: every update goes to the log first,
 * and the offset that the log stores with it is where the next start goes on. So a crash at any
 * instant neither loses nor repeats an entry.
 *
 * A wallet that is added later first catches up alone, from the beginning of what the ledger still
 * has, and joins the others at the offset where they stand.
 */
export type View = {
  readonly parties: readonly string[]
  /** Everything up to this offset is in the view. */
  readonly end: bigint
  /** Coins that can be spent now, on the synchronizer where payments are made. */
  coins(party: string): readonly Held<'coin'>[]
  lockedCoins(party: string): readonly Held<'lockedCoin'>[]
  /** Open offers that the party has made or received. */
  offers(party: string): readonly Held<'offer'>[]
  acceptedOffers(party: string): readonly Held<'acceptedOffer'>[]
  /** Preapprovals that the party has given or provides. */
  preapprovals(party: string): readonly Held<'preapproval'>[]
  topUpStates(party: string): readonly Held<'topUpState'>[]
  find: Holdings['find']
  /** Resolves when the view holds the offset, or when the signal aborts or the view closes. */
  waitFor(offset: bigint, signal?: AbortSignal): Promise<void>
  /**
   * Resolves with true when something after the offset has concerned a wallet, or there is another
   * wallet; with false when the signal aborts or the view closes. For those who can wait a moment.
   */
  waitForChange(from: bigint, signal: AbortSignal): Promise<boolean>
  /**
   * Adds a wallet; resolves when the view holds it. A party that is new has nothing before `since`, so
   * that the ledger need not be read from its beginning.
   */
  add(party: string, since?: bigint): Promise<void>
  remove(party: string): void
  /** Why the view stands still, if it does. */
  fault(): string | undefined
  close(): Promise<void>
}

/** Where the log stands, and the door into it. */
export type ViewLog = {
  /** The offset up to which a party's log is complete; undefined for one without a log. */
  offsetOf(party: string): Promise<bigint | undefined>
  /** Writes the entries of the updates and the offset, all or nothing. */
  append(batch: LogBatch): Promise<void>
}

export type LogBatch = {
  parties: readonly string[]
  updates: readonly Update[]
  /** What the parties held before an update of the batch. */
  holdings: Holdings
  /** The log is complete up to here. */
  end: bigint
}

export type ViewOptions = {
  participant: Participant
  log: ViewLog
  parties: readonly string[]
  /** The synchronizer where payments are made. */
  synchronizerId: string
  onError(error: unknown): void
  /** Updates after `from` up to `to` were pruned before the party's log had them. */
  onGap?(gap: { party: string; from: bigint; to: bigint }): void
  onApplied?(updates: readonly Update[]): void
}

/** Updates that are read and logged together. */
const BATCH_UPDATES = 200
/** So far may the stored offset lag behind when nothing of the ledger concerned the wallets. */
const UNSTORED_OFFSETS_MAX = 500n
/** And for so long: what the log still needs cannot be pruned. */
const UNSTORED_MS_MAX = 5_000
/** The longest that the participant keeps a question open; short, so that its stop is not held up. */
const WAIT_MS = 1000
/** Steps that follow each other so closely mean a busy ledger. */
const BUSY_MS = 20
/** A step costs the node about as much as one submission; ten of them in a second are not felt. */
const REST_MS = 100
/** After a failure the participant gets this long to recover. */
const RETRY_MS = 500
const RETRY_MS_MAX = 10_000

type Joining = {
  party: string
  since: bigint | undefined
  resolve(): void
  reject(error: unknown): void
}

export async function openView(options: ViewOptions): Promise<View> {
  const { participant, log, synchronizerId } = options
  const stop = new AbortController()
  const parties = new Set<string>()
  const joining: Joining[] = []
  const waiting = new Set<() => void>()
  const holdings = createHoldings()
  let end = 0n
  let stored = { end: 0n, at: 0 }
  let fault: string | undefined
  let nudge = new AbortController()
  /** Up to here something has concerned a wallet. */
  let changedAt = 0n
  let advancedAt = Number.NEGATIVE_INFINITY
  let isNudged = false

  async function start(): Promise<void> {
    const ends = new Map<string, bigint>()
    const pruned = await participant.prunedOffset()
    for (const party of new Set(options.parties)) {
      ends.set(party, (await log.offsetOf(party)) ?? pruned)
    }
    end = [...ends.values()].reduce((latest, at) => (at > latest ? at : latest), pruned)
    const ledgerEnd = await participant.ledgerEnd()
    // Whoever lags behind the others, or has no log yet, catches up alone first.
    if (end > ledgerEnd) throw new Error(aheadSentence(end, ledgerEnd))
    for (const [party, from] of ends) await join(party, from)
    stored = { end, at: performance.now() }
  }

  /** Brings one wallet to where the others stand. */
  async function join(party: string, from: bigint): Promise<void> {
    const own = createHoldings()
    const pruned = await participant.prunedOffset()
    let at = from < pruned ? pruned : from
    if (from > 0n && from < pruned) options.onGap?.({ party, from, to: pruned })
    const snapshot = { parties: [party], offset: at, templateIds: WALLET_TEMPLATE_IDS }
    for await (const page of participant.activeContracts(snapshot)) {
      for (const contract of page) own.insert(contract)
    }
    const only = new Set([party])
    while (at < end) {
      const query = { parties: [party], offset: at, until: end, limit: BATCH_UPDATES }
      const updates = await participant.updatesAfter(query)
      const reached = updates.length < BATCH_UPDATES ? end : (updates.at(-1)?.offset ?? end)
      await record({ updates, holdings: own, reached, of: only })
      at = reached
    }
    await log.append({ parties: [party], updates: [], holdings: own, end })
    holdings.adopt(own, party)
    parties.add(party)
    for (const check of waiting) check()
  }

  async function record(batch: {
    updates: readonly Update[]
    holdings: Holdings
    reached: bigint
    of: ReadonlySet<string>
  }): Promise<void> {
    const { updates, reached, of } = batch
    await log.append({ parties: [...of], updates, holdings: batch.holdings, end: reached })
    for (const update of updates) batch.holdings.apply(update, of)
  }

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      for (let next = joining.shift(); next !== undefined; next = joining.shift()) await admit(next)
      const target = await participant.ledgerEnd()
      if (target <= end) await waitForMore()
      else {
        await advance(target)
        if (end >= target) await pauseWhenBusy()
      }
      fault = undefined
    }
  }

  async function advance(target: bigint): Promise<void> {
    const query = { parties: [...parties], offset: end, until: target, limit: BATCH_UPDATES }
    const updates = parties.size === 0 ? [] : await participant.updatesAfter(query)
    const reached = updates.length < BATCH_UPDATES ? target : (updates.at(-1)?.offset ?? target)
    if (updates.length > 0 || isStoringDue(reached)) {
      await record({ updates, holdings, reached, of: parties })
      stored = { end: reached, at: performance.now() }
    }
    end = reached
    if (updates.length > 0) changedAt = reached
    options.onApplied?.(updates)
    for (const check of waiting) check()
  }

  /** On a busy ledger a moment's rest lets many updates be read at once, unless somebody waits. */
  async function pauseWhenBusy(): Promise<void> {
    const isBusy = performance.now() - advancedAt < BUSY_MS
    advancedAt = performance.now()
    nudge = new AbortController()
    const isWanted = joining.length > 0 || isNudged
    // Whoever has asked by now is served by the next step.
    isNudged = false
    if (!isBusy || isWanted) return
    const signal = AbortSignal.any([stop.signal, nudge.signal])
    await wait(REST_MS, undefined, { signal }).catch(() => {})
    isNudged = false
    advancedAt = performance.now()
  }

  function isStoringDue(reached: bigint): boolean {
    if (reached === stored.end) return false
    const isOld = performance.now() - stored.at >= UNSTORED_MS_MAX
    return isOld || reached - stored.end >= UNSTORED_OFFSETS_MAX
  }

  async function waitForMore(): Promise<void> {
    const [some] = parties
    if (isStoringDue(end)) {
      await record({ updates: [], holdings, reached: end, of: parties })
      stored = { end, at: performance.now() }
    }
    nudge = new AbortController()
    if (joining.length > 0 || isNudged) {
      isNudged = false
      return
    }
    const signal = AbortSignal.any([stop.signal, nudge.signal])
    if (some === undefined) {
      await wait(WAIT_MS, undefined, { signal }).catch(() => {})
      return
    }
    const query = { parties: [...parties], offset: end, waitMs: WAIT_MS, signal }
    await participant.waitAfter(query).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }

  function waitUntil(isReached: () => boolean, signal: AbortSignal | undefined): Promise<void> {
    const isOver = () => isReached() || stop.signal.aborted || (signal?.aborted ?? false)
    if (isOver()) return Promise.resolve()
    return new Promise((resolve) => {
      const check = () => {
        if (!isOver()) return
        waiting.delete(check)
        signal?.removeEventListener('abort', check)
        resolve()
      }
      waiting.add(check)
      signal?.addEventListener('abort', check)
    })
  }

  async function admit({ party, since, resolve, reject }: Joining): Promise<void> {
    try {
      if (!parties.has(party)) await join(party, (await log.offsetOf(party)) ?? since ?? 0n)
      resolve()
    } catch (error) {
      reject(error)
      throw error
    }
  }

  async function runForEver(): Promise<void> {
    for (let failures = 0; !stop.signal.aborted; ) {
      const before = end
      try {
        await follow()
      } catch (error) {
        if (stop.signal.aborted) break
        failures = end > before ? 1 : failures + 1
        fault = `The wallets do not follow the ledger: ${(error as Error).message}`
        options.onError(error)
        const pauseMs = Math.min(RETRY_MS * 2 ** (failures - 1), RETRY_MS_MAX)
        await wait(pauseMs, undefined, { signal: stop.signal }).catch(() => {})
      }
    }
    for (const { reject } of joining.splice(0)) reject(new Error('The wallet is closing.'))
    for (const check of waiting) check()
  }

  await start()
  const running = runForEver()
  const isSpendable = (held: { synchronizerId: string | undefined }) =>
    held.synchronizerId === synchronizerId
  return {
    get parties() {
      return [...parties]
    },
    get end() {
      return end
    },
    coins: (party) => holdings.of('coin', party).filter(isSpendable),
    lockedCoins: (party) => holdings.of('lockedCoin', party),
    offers: (party) => holdings.of('offer', party),
    acceptedOffers: (party) => holdings.of('acceptedOffer', party),
    preapprovals: (party) => holdings.of('preapproval', party),
    topUpStates: (party) => holdings.of('topUpState', party),
    find: (kind, contractId) => holdings.find(kind, contractId),
    waitFor(offset, signal) {
      const waits = waitUntil(() => end >= offset, signal)
      // What the ledger did meanwhile may not concern these wallets, so that no update wakes the view.
      if (end < offset) {
        isNudged = true
        nudge.abort()
      }
      return waits
    },
    async waitForChange(from, signal) {
      const known = parties.size
      await waitUntil(() => changedAt > from || parties.size !== known, signal)
      return !stop.signal.aborted && !signal.aborted
    },
    add(party, since) {
      if (parties.has(party)) return Promise.resolve()
      if (stop.signal.aborted) return Promise.reject(new Error('The wallet is closing.'))
      return new Promise((resolve, reject) => {
        joining.push({ party, since, resolve, reject })
        nudge.abort()
      })
    },
    remove(party) {
      parties.delete(party)
      holdings.forget(party)
    },
    fault: () => fault,
    async close() {
      stop.abort()
      await running
    },
  }
}

function aheadSentence(end: bigint, ledgerEnd: bigint): string {
  return `The wallet log stands at offset ${end}, but the participant ends at ${ledgerEnd}: it was restored from an older backup, or is another one. Restore the app database of the same time.`
}
