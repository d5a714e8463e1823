import type { Decimal } from '../values/decimal.ts'
import { contractId, int64, numeric, party, record, type ValueOf } from '../values/value-type.ts'
import { implementHolding } from './holding.ts'
import { type Choice, defineChoice, defineTemplate, type Steps } from './template.ts'

/** The network's native coin. */

const COIN_PACKAGE = 'splice-amulet'

/** A round is a tick of the network; coins and prices belong to one. */
export const roundType = record({ number: int64 })

export const coinPayload = record({
  dso: party,
  owner: party,
  amount: record({
    initialAmount: numeric,
    createdAt: roundType,
    ratePerRound: record({ rate: numeric }),
  }),
})

export type CoinPayload = ValueOf<typeof coinPayload>

export const coin = defineTemplate({
  packageName: COIN_PACKAGE,
  name: 'Splice.Amulet:Amulet',
  payload: coinPayload,
  signatories: ({ dso, owner }) => [dso, owner],
  observers: () => [],
  ensure: ({ amount }) =>
    amount.initialAmount > 0n ? undefined : 'The amount of a coin must be above zero.',
  interfaces: [
    implementHolding(({ dso, owner, amount }: CoinPayload) => ({
      dso,
      owner,
      amount: amount.initialAmount,
      lock: undefined,
    })),
  ],
})

/** Fees have been zero on the networks since CIP-78, the holding fee of a round among them. */
const HOLDING_FEE_PER_ROUND: Decimal = 0n

export function coinOf(owner: string, amount: Decimal, of: { dso: string; round: bigint }) {
  return {
    dso: of.dso,
    owner,
    amount: {
      initialAmount: amount,
      createdAt: { number: of.round },
      ratePerRound: { rate: HOLDING_FEE_PER_ROUND },
    },
  }
}

const expireResult = record({ expireSum: record({ owner: party, amount: numeric }) })

/** The network takes back a coin that fees have used up. */
const expireCoin = defineChoice(coin, {
  name: 'Amulet_Expire',
  consuming: true,
  argument: record({ roundCid: contractId }),
  result: expireResult,
  controllers: ({ dso, owner }) => [dso, owner],
  run: async (_steps: Steps, { payload }) => ({
    expireSum: { owner: payload.owner, amount: payload.amount.initialAmount },
  }),
})

export const coinChoices: Choice<CoinPayload, unknown, unknown>[] = [expireCoin]
