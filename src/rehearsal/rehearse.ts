import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom } from '../base/random.ts'
import type { WalletConfig } from '../config/node-config.ts'
import { openDatabase } from '../open-databases.ts'
import { DECIMAL_ONE, type Decimal } from '../values/decimal.ts'
import type { AcceptPlan } from '../wallet/auto-accept.ts'
import type { Acted, Automation } from '../wallet/automation.ts'
import { readCoin, sumOf } from '../wallet/coin-inputs.ts'
import type { CompletionPlan } from '../wallet/complete-transfers.ts'
import type { SweepPlan } from '../wallet/sweep.ts'
import type { TopUpPlan } from '../wallet/top-up.ts'
import { type Activity, DAY_MICROS, drawActivity, HOUR_MICROS } from './activity.ts'
import type { Assumptions } from './assumptions.ts'
import { castOf } from './cast.ts'
import { createNeighbours } from './neighbours.ts'
import { createPolls } from './polls.ts'
import { createUsage } from './usage.ts'
import { openWorld, type World } from './world.ts'

/**
 * A rehearsal: the automations of a configuration on a simulated network, in driven time. Nothing
 * happens between two events, so that time jumps from one to the next: to what comes from outside, to
 * the next time that an automation looks after something has changed, and to the minute in which
 * traffic falls so low that more is due.
 */

export type RehearsalOptions = {
  wallet: WalletConfig
  partyHint: string
  days: number
  seed: string
  assumptions: Assumptions
  /** Ends it; nothing is left behind. */
  signal?: AbortSignal
  /** Told how many days have gone by, and how much was done. */
  onProgress?(days: number, acts: number): void
}

export type RehearsedAct = {
  /** Microseconds since 1970. */
  at: bigint
  automation: string
  party: string
  what: string
  because: string
  coins: Decimal
  usd: Decimal
  updateId: string
}

export type Sample = {
  at: bigint
  price: Decimal
  balances: ReadonlyMap<string, Decimal>
  traffic: bigint
}

/** Something that an automation could not do: what it said first, and how often. */
export type Trouble = { automation: string; party: string; sentence: string; times: number }

export type Rehearsal = {
  startMicros: bigint
  days: number
  seed: string
  assumptions: Assumptions
  wallets: readonly string[]
  acts: readonly RehearsedAct[]
  samples: readonly Sample[]
  /** What an operator should know. */
  troubles: readonly Trouble[]
  receivedUsd: Decimal
  refusedTraffic: bigint
}

/** Every rehearsal begins on the same day, so that the same seed gives the same. */
const START_MICROS = 1_767_225_600_000_000n
/** Points of the plots. */
const SAMPLE_MICROS = HOUR_MICROS
/** After so many acts at one time something goes in a circle. */
const ACTS_AT_ONCE_MAX = 1000

export async function rehearse(options: RehearsalOptions): Promise<Rehearsal> {
  const directory = await mkdtemp(join(tmpdir(), 'annals-rehearsal-'))
  await using parts = new AsyncDisposableStack()
  parts.defer(() => rm(directory, { recursive: true, force: true }))
  const openFile = async (name: 'app' | 'participant') => {
    const file = join(directory, `${name}.sqlite`)
    const { db } = await openDatabase({ engine: 'sqlite', file }, name)
    parts.defer(() => db.close())
    return db
  }
  const databases = { app: await openFile('app'), participant: await openFile('participant') }
  // Awaited here, so that nothing is closed before the end.
  return await rehearseIn(databases, options, parts)
}

async function rehearseIn(
  databases: Parameters<typeof openWorld>[0]['databases'],
  options: RehearsalOptions,
  parts: AsyncDisposableStack,
): Promise<Rehearsal> {
  const { wallet: config, seed, days, assumptions } = options
  const cast = castOf(config, options.partyHint)
  const random = createRandom(`${seed}/times`)
  const usage = createUsage({ config, assumptions, seed, startMicros: START_MICROS })
  const ids = createRandom(`${seed}/ids`)
  const world = await openWorld({
    databases,
    config,
    seed,
    startMicros: START_MICROS,
    ...cast,
    price: assumptions.price,
    traffic: assumptions.traffic,
    isDevNet: false,
    trafficState: usage.state,
    newTrackingId: () => `rehearsal-${ids(2 ** 47).toString(16)}`,
  })
  parts.defer(() => world.close())

  const acts: RehearsedAct[] = []
  const samples: Sample[] = []
  const troubles = new Map<string, Trouble>()
  let price = assumptions.price
  let receivedUsd = 0n
  const endMicros = START_MICROS + BigInt(days) * DAY_MICROS
  const now = () => world.clock.nowMicros()
  const neighbours = createNeighbours(world, { cast, config, random })
  const polls = createPolls(world, { random, usage, topUp: config.topUp })

  await neighbours.prepare()
  for (const party of cast.wallets) {
    const coins = coinsFor(assumptions.balanceUsd(party), price)
    if (coins > 0n) await world.payIn(party, coins)
  }
  const outside = drawActivity({
    seed,
    days,
    startMicros: START_MICROS,
    earners: cast.wallets.map((party) => ({ party, usdPerDay: assumptions.incomeUsd(party) })),
    offers: cast.offers.map((pair) => ({ ...pair, usdPerDay: assumptions.incomeUsd('') })),
  })
  polls.everything()

  async function happen(activity: Activity): Promise<void> {
    if (activity.kind === 'price') {
      price = scaled(price, activity.factor)
      await world.setPrice(price)
    } else {
      const usd = BigInt(Math.round(activity.usd * 1e6)) * 10_000n
      const amount = (usd * DECIMAL_ONE) / price
      if (amount === 0n) return
      if (activity.kind === 'payment') {
        receivedUsd += usd
        await world.payIn(activity.receiver, amount)
      } else await neighbours.offer({ ...activity, amount })
    }
    await changed()
  }

  /** Those without anything to do look only at the view, which must hold what has changed. */
  async function changed(): Promise<void> {
    await world.settle()
    polls.soon()
  }

  async function note(automation: Automation, outcome: Acted): Promise<void> {
    const { what, updateId } = outcome.done
    const { coins, bytes } = moneyOf(automation, outcome)
    const usd = (coins * price) / DECIMAL_ONE
    const { name, party } = automation
    const because = outcome.because
    acts.push({ at: now(), automation: name, party, what, because, coins, usd, updateId })
    usage.bought(bytes)
    usage.spent(await sizeOf(world, updateId))
    await neighbours.react()
    if (automation.name !== 'top-up') polls.soon()
  }

  function trouble(automation: Automation, sentence: string): void {
    const { name, party } = automation
    // Amounts differ from time to time.
    const key = `${name}/${party}/${sentence.replaceAll(/[\d.]+/g, '')}`
    const known = troubles.get(key) ?? { automation: name, party, sentence, times: 0 }
    troubles.set(key, { ...known, times: known.times + 1 })
  }

  async function look(): Promise<void> {
    let count = 0
    for (const automation of polls.due()) {
      for (;;) {
        const outcome = await polls.run(automation)
        if (outcome.kind === 'failed') trouble(automation, outcome.sentence)
        if (outcome.kind === 'wait' && outcome.isWarning) trouble(automation, outcome.because)
        if (outcome.kind !== 'acted') break
        count += 1
        if (count > ACTS_AT_ONCE_MAX) throw new Error(`${automation.name} does not come to an end.`)
        await note(automation, outcome)
      }
    }
  }

  function sample(): void {
    const balances = new Map(
      cast.wallets.map((party) => [party, sumOf(world.view.coins(party).map(readCoin))]),
    )
    const { purchased, consumed } = usage.state()
    samples.push({ at: now(), price, balances, traffic: purchased - consumed })
  }

  let sampleAt = START_MICROS
  for (let next = 0; now() < endMicros; ) {
    options.signal?.throwIfAborted()
    const outsideAt = outside[next]?.at ?? endMicros
    const until = least([outsideAt, endMicros, sampleAt, polls.nextAt(), neighbours.nextAt()])
    // The applications use traffic all the while, and may need more before anything else happens.
    const reached = usage.useUntil(until, polls.isTopUpDue)
    if (reached > now()) world.clock.advance(reached - now())
    if (reached < until) polls.topUp()
    const activity = outside[next]
    if (activity !== undefined && activity.at <= now()) {
      await happen(activity)
      next += 1
    }
    if (await neighbours.actAt(now())) await changed()
    if (polls.nextAt() <= now()) await look()
    if (sampleAt <= now()) {
      await world.settle()
      sample()
      sampleAt += SAMPLE_MICROS
    }
    options.onProgress?.(Number(now() - START_MICROS) / Number(DAY_MICROS), acts.length)
  }
  await world.settle()
  if (samples.at(-1)?.at !== now()) sample()
  return {
    startMicros: START_MICROS,
    days,
    seed,
    assumptions,
    wallets: cast.wallets,
    acts,
    samples,
    troubles: [...troubles.values()],
    receivedUsd,
    refusedTraffic: usage.refused(),
  }
}

/** What an act moved, and what traffic it bought. */
function moneyOf({ name }: Automation, { plan }: Acted): { coins: Decimal; bytes: bigint } {
  if (plan === undefined) return { coins: 0n, bytes: 0n }
  if (name === 'top-up') {
    const { bytes, cost } = plan as TopUpPlan
    return { coins: cost.coins, bytes }
  }
  if (name === 'sweep') return { coins: (plan as SweepPlan).amount, bytes: 0n }
  const isPayment =
    name === 'auto-accept' ||
    (name === 'completion' && (plan as CompletionPlan).kind === 'complete')
  return { coins: isPayment ? (plan as AcceptPlan).offer.amount : 0n, bytes: 0n }
}

async function sizeOf(world: World, updateId: string): Promise<bigint> {
  const update = await world.ledger.update(updateId)
  return BigInt(Buffer.byteLength(update?.item ?? ''))
}

function coinsFor(usd: Decimal, price: Decimal): Decimal {
  return (usd * DECIMAL_ONE) / price
}

function scaled(price: Decimal, factor: number): Decimal {
  const next = (price * BigInt(Math.round(factor * 1e6))) / 1_000_000n
  return next > 0n ? next : 1n
}

function least(times: readonly bigint[]): bigint {
  return times.reduce((first, time) => (time < first ? time : first))
}
