import { createHash } from 'node:crypto'
import type { WalletConfig } from '../config/node-config.ts'

/** Who takes part in a rehearsal. */
export type Cast = {
  dso: string
  operator: string
  /** Parties that the configuration names as having a wallet here, and the operator. */
  wallets: readonly string[]
  others: readonly string[]
  /** Pays what comes in from outside. */
  payer: string
  /** Senders whose offers are accepted, with who is offered. */
  offers: readonly { sender: string; receiver: string }[]
}

/**
 * The parties of the configuration play themselves. The operator's party is the one that has its hint,
 * where the configuration names one.
 */
export function castOf(config: WalletConfig, partyHint: string): Cast {
  const fingerprint = createHash('sha256').update(`rehearsal/${partyHint}`).digest('hex')
  const wallets = new Set([
    ...config.sweeps.map(({ sender }) => sender),
    ...config.autoAccept.map(({ receiver }) => receiver),
  ])
  const operator =
    [...wallets].find((party) => party.startsWith(`${partyHint}::`)) ??
    `${partyHint}::1220${fingerprint}`
  wallets.add(operator)
  const offers = config.autoAccept.flatMap(({ receiver, fromParties }) =>
    fromParties.map((sender) => ({ sender, receiver })),
  )
  const others = new Set([
    ...config.sweeps.map(({ receiver }) => receiver),
    ...offers.map(({ sender }) => sender),
  ])
  return {
    dso: `DSO::1220${fingerprint}`,
    operator,
    wallets: [...wallets],
    others: [...others].filter((party) => !wallets.has(party)),
    payer: `customers::1220${fingerprint}`,
    offers: offers.filter(({ sender }) => !wallets.has(sender)),
  }
}
