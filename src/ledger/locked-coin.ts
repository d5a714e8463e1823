import {
  contractId,
  list,
  optional,
  party,
  record,
  text,
  timestamp,
  unit,
  type ValueOf,
} from '../values/value-type.ts'
import { coin, coinPayload } from './coin.ts'
import { implementHolding } from './holding.ts'
import { type Choice, defineChoice, defineTemplate, require, type Steps } from './template.ts'

/** A coin that its owner cannot spend before the holders of the lock agree or the lock expires. */

const lockType = record({
  holders: list(party),
  expiresAt: timestamp,
  optContext: optional(text),
})

const lockedCoinPayload = record({ amulet: coinPayload, lock: lockType })

export type LockedCoinPayload = ValueOf<typeof lockedCoinPayload>

export const lockedCoin = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.Amulet:LockedAmulet',
  payload: lockedCoinPayload,
  signatories: ({ amulet, lock }) => [...coin.signatories(amulet), ...lock.holders],
  observers: () => [],
  ensure: ({ amulet, lock }) =>
    lock.holders.length === 0 ? 'A lock needs a holder.' : coin.ensure?.(amulet),
  interfaces: [
    implementHolding(({ amulet: { dso, owner, amount }, lock }: LockedCoinPayload) => ({
      dso,
      owner,
      amount: amount.initialAmount,
      lock: { holders: lock.holders, expiresAt: lock.expiresAt, context: lock.optContext },
    })),
  ],
})

const result = record({ amuletCid: contractId })

export const unlockCoin = defineChoice(lockedCoin, {
  name: 'LockedAmulet_Unlock',
  consuming: true,
  argument: unit,
  result,
  controllers: ({ amulet, lock }) => [...new Set([amulet.owner, ...lock.holders])],
  run: async (steps: Steps, { payload }) => ({
    amuletCid: await steps.create(coin, payload.amulet),
  }),
})

const ownerExpireLock = defineChoice(lockedCoin, {
  name: 'LockedAmulet_OwnerExpireLock',
  consuming: true,
  argument: unit,
  result,
  controllers: ({ amulet }) => [amulet.owner],
  async run(steps: Steps, { payload }) {
    require(payload.lock.expiresAt <= steps.nowMicros, 'The lock has not expired yet.')
    return { amuletCid: await steps.create(coin, payload.amulet) }
  },
})

export const lockedCoinChoices: Choice<LockedCoinPayload, unknown, unknown>[] = [
  unlockCoin,
  ownerExpireLock,
]
