import { printDecimal } from '../values/decimal.ts'
import type { Held, Kind } from './holdings.ts'
import type { LogItem } from './log-entries.ts'
import type { OfferStatus } from './offer-status.ts'

// What the wallet API shows.

/** A contract as the deployed wallets show it. */
export function contractJson({ event }: Held<Kind>): object {
  return {
    template_id: event.templateId,
    contract_id: event.contractId,
    payload: event.payload,
    created_event_blob: '',
    created_at: event.createdAt,
  }
}

export function contractWithStateJson(held: Held<Kind>): object {
  return {
    contract: contractJson(held),
    ...(held.synchronizerId === undefined ? {} : { domain_id: held.synchronizerId }),
  }
}

/** Fees are zero on the networks. */
export const NO_FEES = printDecimal(0n)

/** Deployed wallets say with each transfer what fees it cost and what rewards it used; there are none. */
const NO_REWARDS = {
  holding_fees: NO_FEES,
  app_rewards_used: NO_FEES,
  validator_rewards_used: NO_FEES,
  sv_rewards_used: NO_FEES,
  development_fund_coupons_used: NO_FEES,
}

export function logItemJson(item: LogItem): object {
  return item.transaction_type === 'transfer' ? { ...item, ...NO_REWARDS } : item
}

export function positionJson(held: Held<'coin'> | Held<'lockedCoin'>): object {
  const { amount } = held.kind === 'coin' ? held.payload : held.payload.amulet
  return {
    contract: contractWithStateJson(held),
    round: Number(amount.createdAt.number),
    accrued_holding_fee: NO_FEES,
    effective_amount: printDecimal(amount.initialAmount),
  }
}

export function offerStatusJson(of: OfferStatus): object {
  if (of.status !== 'failed') {
    return { status: of.status, transaction_id: of.updateId, contract_id: of.contractId }
  }
  return {
    status: of.status,
    failure_kind: of.failureKind,
    ...(of.failureKind === 'withdrawn' && of.reason !== undefined
      ? { withdrawn_reason: of.reason }
      : {}),
  }
}
