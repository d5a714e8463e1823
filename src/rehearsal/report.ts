import { type Decimal, printDecimal } from '../values/decimal.ts'
import { type Instant, instantFromMicros } from '../values/instant.ts'
import { printAmount, printUsd } from '../wallet/decision.ts'
import { plot } from './plot.ts'
import type { Rehearsal, RehearsedAct } from './rehearse.ts'

/** A rehearsal as a person reads it, and as a program does. */

export type Total = {
  automation: string
  party: string
  acts: number
  coins: Decimal
  usd: Decimal
}

export function totalsOf(acts: readonly RehearsedAct[]): Total[] {
  const totals = new Map<string, Total>()
  for (const { automation, party, coins, usd } of acts) {
    const key = `${automation}/${party}`
    const known = totals.get(key) ?? { automation, party, acts: 0, coins: 0n, usd: 0n }
    totals.set(key, {
      ...known,
      acts: known.acts + 1,
      coins: known.coins + coins,
      usd: known.usd + usd,
    })
  }
  return [...totals.values()]
}

export const TOTAL_HEADINGS = ['AUTOMATION', 'PARTY', 'ACTS', 'COINS', 'USD']

export function totalRows(rehearsal: Rehearsal): string[][] {
  return totalsOf(rehearsal.acts).map(({ automation, party, acts, coins, usd }) => [
    automation,
    shortParty(party),
    String(acts),
    coins === 0n ? '-' : twoPlaces(coins),
    usd === 0n ? '-' : twoPlaces(usd),
  ])
}

export const ACT_HEADINGS = ['TIME', 'AUTOMATION', 'PARTY', 'ACT']

/** The first acts and the last ones; all of them are in the JSON. */
export function actRows({ acts }: Rehearsal, rowsMax: number): string[][] {
  const row = ({ at, automation, party, what }: RehearsedAct) => [
    printTime(at),
    automation,
    shortParty(party),
    shorten(what),
  ]
  if (acts.length <= rowsMax) return acts.map(row)
  const half = Math.floor(rowsMax / 2)
  const left = acts.length - 2 * half
  return [
    ...acts.slice(0, half).map(row),
    ['…', '', '', `${left} more, with --json`],
    ...acts.slice(-half).map(row),
  ]
}

export function plotsOf(rehearsal: Rehearsal, width: number): string[] {
  const { samples, startMicros } = rehearsal
  const ends = {
    from: printTime(startMicros).slice(0, 10),
    to: printTime(samples.at(-1)?.at ?? startMicros).slice(0, 10),
  }
  const balances = rehearsal.wallets.map((party) =>
    plot({
      title: `Balance of ${shortParty(party)}, in USD`,
      values: samples.map(
        ({ balances, price }) => Number(((balances.get(party) ?? 0n) * price) / 10n ** 18n) / 100,
      ),
      width,
      print: printScale,
      ...ends,
    }),
  )
  if (samples.every(({ traffic }) => traffic === 0n)) return balances
  const traffic = plot({
    title: 'Bought traffic that is left, in kB',
    values: samples.map(({ traffic }) => Number(traffic) / 1000),
    width,
    print: printScale,
    ...ends,
  })
  return [...balances, traffic]
}

/** Sentences about what was taken for granted and what came of it. */
export function notesOf(rehearsal: Rehearsal): string[] {
  const { assumptions, receivedUsd, refusedTraffic, days } = rehearsal
  const topUps = totalsOf(rehearsal.acts).filter(({ automation }) => automation === 'top-up')
  const spent = topUps.reduce((sum, { usd }) => sum + usd, 0n)
  return [
    `In ${days === 1 ? '1 day' : `${days} days`} ${printUsd(receivedUsd)} came in, and traffic cost ${printUsd(spent)}.`,
    `The coin began at ${printAmount(assumptions.price)} USD; applications sent ${Math.round(assumptions.trafficPerSecond)} bytes a second on average; a million bytes cost ${printAmount(assumptions.traffic.extraTrafficPrice)} USD.`,
    ...(refusedTraffic === 0n
      ? []
      : [`${refusedTraffic} bytes of the applications could not be sent for want of traffic.`]),
    ...rehearsal.troubles.map(
      ({ automation, party, sentence, times }) =>
        `warning: ${automation} of ${shortParty(party)}, ${times} ${times === 1 ? 'time' : 'times'}, first: ${sentence}`,
    ),
  ]
}

export function rehearsalJson(rehearsal: Rehearsal): object {
  const { startMicros, days, seed, assumptions, wallets } = rehearsal
  return {
    start: printTime(startMicros),
    days,
    seed,
    assumptions: {
      price: printDecimal(assumptions.price),
      trafficPerSecond: assumptions.trafficPerSecond,
      trafficPriceUsd: printDecimal(assumptions.traffic.extraTrafficPrice),
      wallets: wallets.map((party) => ({
        party,
        incomeUsdPerDay: assumptions.incomeUsd(party),
        balanceUsd: printDecimal(assumptions.balanceUsd(party)),
      })),
    },
    receivedUsd: printDecimal(rehearsal.receivedUsd),
    refusedTrafficBytes: String(rehearsal.refusedTraffic),
    totals: totalsOf(rehearsal.acts).map(({ coins, usd, ...total }) => ({
      ...total,
      coins: printDecimal(coins),
      usd: printDecimal(usd),
    })),
    troubles: rehearsal.troubles,
    acts: rehearsal.acts.map(({ at, coins, usd, ...act }) => ({
      at: printTime(at),
      ...act,
      coins: printDecimal(coins),
      usd: printDecimal(usd),
    })),
    samples: rehearsal.samples.map(({ at, price, balances, traffic }) => ({
      at: printTime(at),
      price: printDecimal(price),
      balances: Object.fromEntries(
        [...balances].map(([party, coins]) => [party, printDecimal(coins)]),
      ),
      trafficBytes: String(traffic),
    })),
  }
}

const PARTY_CHARACTERS = 28
const WHAT_CHARACTERS = 76

function shortParty(party: string): string {
  return party.length > PARTY_CHARACTERS ? `${party.slice(0, PARTY_CHARACTERS)}…` : party
}

function shorten(what: string): string {
  return what.length > WHAT_CHARACTERS ? `${what.slice(0, WHAT_CHARACTERS)}…` : what
}

/** Small numbers with places, so that the ends of a scale differ. */
function printScale(value: number): string {
  return value === 0 || value >= 10 ? value.toFixed(0) : value.toPrecision(2)
}

function printTime(micros: bigint): string {
  return `${(instantFromMicros(micros) as Instant).slice(0, 19)}Z`
}

function twoPlaces(amount: Decimal): string {
  return printUsd(amount).replace(' USD', '')
}
