import { type Decimal, multiplyDecimals } from '../values/decimal.ts'

/** What a wallet holds, in coin and in USD. */
export type Balance = {
  free: Decimal
  locked: Decimal
  freeUsd: Decimal
  lockedUsd: Decimal
}

type CoinLike = { payload: { amount: { initialAmount: Decimal } } }
type LockedLike = { payload: { amulet: CoinLike['payload'] } }

/** Sums of the initial amounts: holding fees are zero on the networks. */
export function balanceOf(
  coins: readonly CoinLike[],
  locked: readonly LockedLike[],
  price: Decimal,
): Balance {
  const free = coins.reduce((sum, { payload }) => sum + payload.amount.initialAmount, 0n)
  const held = locked.reduce((sum, { payload }) => sum + payload.amulet.amount.initialAmount, 0n)
  return {
    free,
    locked: held,
    freeUsd: multiplyDecimals(free, price),
    lockedUsd: multiplyDecimals(held, price),
  }
}
