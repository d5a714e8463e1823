import type { Registry } from '../metrics/registry.ts'
import { printDecimal } from '../values/decimal.ts'
import { balanceOf } from './balance.ts'
import type { View } from './view.ts'

/** What wallets hold, under the names that deployed nodes use, and how the wallet app fares. */
export function measureWallet(
  registry: Registry,
  view: () => View | undefined,
): { onToken(outcome: 'ok' | 'failed'): void } {
  const labels = ['owner'] as const
  const read = () => {
    const open = view()
    return (open?.parties ?? []).map((owner) => {
      const { free, locked } = balanceOf(
        open?.coins(owner) ?? [],
        open?.lockedCoins(owner) ?? [],
        0n,
      )
      return { owner, free: toNumber(free), locked: toNumber(locked) }
    })
  }
  registry.gauge({
    name: 'splice_wallet_unlocked_amulet_balance',
    help: 'Coins of a wallet that can be spent.',
    labels,
    collect(gauge) {
      for (const { owner, free } of read()) gauge.labels({ owner }).set(free)
    },
  })
  registry.gauge({
    name: 'splice_wallet_locked_amulet_balance',
    help: 'Locked coins of a wallet.',
    labels,
    collect(gauge) {
      for (const { owner, locked } of read()) gauge.labels({ owner }).set(locked)
    },
  })
  registry.gauge({
    name: 'annals_wallets',
    help: 'Parties that have a wallet on this node.',
    collect: (gauge) => gauge.set(view()?.parties.length ?? 0),
  })
  registry.gauge({
    name: 'annals_wallet_offset',
    help: 'The offset of the ledger up to which the wallets have followed it.',
    collect: (gauge) => gauge.set(Number(view()?.end ?? 0n)),
  })
  const tokens = registry.counter({
    name: 'annals_wallet_tokens_total',
    help: 'Attempts to get the token with which the wallets come to the participant.',
    labels: ['outcome'],
  })
  return { onToken: (outcome) => tokens.labels({ outcome }).inc() }
}

/** A gauge is a floating point number; money is never reckoned with it. */
function toNumber(amount: bigint): number {
  return Number(printDecimal(amount))
}
