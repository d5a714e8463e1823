import type { Decimal } from '../values/decimal.ts'
import type { Held } from './holdings.ts'

/** A coin that its owner can spend. */
export type Coin = { contractId: string; amount: Decimal }

/**
 * `merge` when the wallet holds enough, but in more coins than a transaction takes: these are made
 * one first.
 */
export type ChosenCoins =
  | { kind: 'enough'; inputs: Coin[] }
  | { kind: 'merge'; inputs: Coin[]; total: Decimal }
  | { kind: 'missing'; held: Decimal }

/** Coins of one transaction, as the deployed networks bound them. */
export const COIN_INPUTS_MAX = 100

/** The largest coins first, until the amount is covered. */
export function chooseCoins(coins: readonly Coin[], amount: Decimal): ChosenCoins {
  const held = sumOf(coins)
  if (held < amount || coins.length === 0) return { kind: 'missing', held }
  const inputs: Coin[] = []
  let total = 0n
  for (const coin of coins.toSorted(largestFirst)) {
    if (total >= amount && inputs.length > 0) break
    if (inputs.length === COIN_INPUTS_MAX) return { kind: 'merge', inputs, total }
    inputs.push(coin)
    total += coin.amount
  }
  return { kind: 'enough', inputs }
}

export function sumOf(coins: readonly Coin[]): Decimal {
  return coins.reduce((sum, { amount }) => sum + amount, 0n)
}

function largestFirst(a: Coin, b: Coin): number {
  if (a.amount === b.amount) return a.contractId < b.contractId ? -1 : 1
  return a.amount > b.amount ? -1 : 1
}

/** A coin as the view holds it. */
export function readCoin({ contractId, payload }: Held<'coin'>): Coin {
  return { contractId, amount: payload.amount.initialAmount }
}
