import type { Decimal } from '../values/decimal.ts'
import {
  int64,
  list,
  numeric,
  optional,
  party,
  record,
  text,
  textMap,
  timestamp,
} from '../values/value-type.ts'
import { type Interface, type InterfaceView, implement } from './template.ts'

/** The token standard's view of what somebody owns: wallets look for it instead of for templates. */

const holding: Interface = {
  packageName: 'splice-api-token-holding-v1',
  name: 'Splice.Api.Token.HoldingV1:Holding',
}

const relTime = record({ microseconds: int64 })
const holdingView = record({
  owner: party,
  instrumentId: record({ admin: party, id: text }),
  amount: numeric,
  lock: optional(
    record({
      holders: list(party),
      expiresAt: optional(timestamp),
      expiresAfter: optional(relTime),
      context: optional(text),
    }),
  ),
  meta: record({ values: textMap(text) }),
})

export type Held = {
  dso: string
  owner: string
  amount: Decimal
  lock: { holders: string[]; expiresAt: bigint; context: string | null } | undefined
}

export function implementHolding<P>(heldOf: (payload: P) => Held): InterfaceView<P> {
  return implement(holding, holdingView, (payload: P) => {
    const { dso, owner, amount, lock } = heldOf(payload)
    return {
      owner,
      instrumentId: { admin: dso, id: 'Amulet' },
      amount,
      lock: lock === undefined ? null : { ...lock, expiresAfter: null },
      meta: { values: {} },
    }
  })
}
