import type { Decimal } from '../values/decimal.ts'
import { coin } from './coin.ts'
import type { Ledger } from './ledger.ts'
import { exerciseCommand, type Network } from './network.ts'
import { preapproval, sendPreapproved } from './preapproval.ts'
import { amuletRules, tapCoins, transferCoins } from './rules.ts'
import type { LedgerUpdate } from './updates-store.ts'

// What people do with coins, as submissions. Whoever needs the rest of the choices builds its own.

export type Input = { tag: 'InputAmulet'; value: string }
export type Chosen = { inputs: Input[]; total: Decimal }

/** What an owner holds and can spend now, on the synchronizer where payments are made. */
export async function coinsOf(
  ledger: Ledger,
  owner: string,
): Promise<{ contractId: string; amount: Decimal }[]> {
  const coins = await ledger.contractsOf(coin, owner)
  return coins
    .filter(
      ({ payload, synchronizerId }) =>
        payload.owner === owner && synchronizerId === ledger.synchronizers[0],
    )
    .map(({ contractId, payload }) => ({ contractId, amount: payload.amount.initialAmount }))
}

/** The largest coins first, until the amount is covered; undefined when it is not. */
export function chooseInputs(
  coins: readonly { contractId: string; amount: Decimal }[],
  amount: Decimal,
): Chosen | undefined {
  const inputs: Input[] = []
  let total = 0n
  for (const { contractId, amount: held } of coins.toSorted(largestFirst)) {
    if (total >= amount && inputs.length > 0) break
    inputs.push({ tag: 'InputAmulet', value: contractId })
    total += held
  }
  return total >= amount && inputs.length > 0 ? { inputs, total } : undefined
}

export function tap(
  ledger: Ledger,
  network: Network,
  to: { receiver: string; amount: Decimal; commandId?: string },
): Promise<LedgerUpdate> {
  const { receiver, amount, commandId = '' } = to
  return ledger.submit({
    actAs: [receiver],
    workflowId: 'tap',
    commandId,
    commands: [
      exerciseCommand(ledger, {
        template: amuletRules,
        contractId: network.rules,
        choice: tapCoins,
        argument: { receiver, amount, openRound: network.round },
      }),
    ],
  })
}

/** A transfer to which both sides agree at once. */
export function transfer(
  ledger: Ledger,
  network: Network,
  of: { sender: string; receiver: string; amount: Decimal; inputs: Input[]; commandId?: string },
): Promise<LedgerUpdate> {
  const { sender, receiver, amount, inputs, commandId = '' } = of
  return ledger.submit({
    actAs: [...new Set([sender, receiver])],
    workflowId: 'transfer',
    commandId,
    commands: [
      exerciseCommand(ledger, {
        template: amuletRules,
        contractId: network.rules,
        choice: transferCoins,
        argument: {
          transfer: {
            sender,
            provider: sender,
            inputs,
            outputs: [{ receiver, amount, lock: null }],
          },
          openMiningRound: network.round,
        },
      }),
    ],
  })
}

/** A transfer that the receiver has agreed to beforehand. */
export function send(
  ledger: Ledger,
  network: Network,
  of: {
    preapproval: string
    sender: string
    amount: Decimal
    inputs: Input[]
    description: string | null
  },
): Promise<LedgerUpdate> {
  const { sender, amount, inputs, description } = of
  return ledger.submit({
    actAs: [sender],
    workflowId: 'send',
    commands: [
      exerciseCommand(ledger, {
        template: preapproval,
        contractId: of.preapproval,
        choice: sendPreapproved,
        argument: {
          sender,
          inputs,
          amount,
          context: { amuletRules: network.rules, openMiningRound: network.round },
          description,
        },
      }),
    ],
  })
}

function largestFirst(a: { amount: Decimal }, b: { amount: Decimal }): number {
  if (a.amount === b.amount) return 0
  return a.amount > b.amount ? -1 : 1
}
