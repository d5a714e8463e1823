import { PlainError } from '../http/plain-error.ts'
import type { Decimal } from '../values/decimal.ts'
import { type Coin, chooseCoins } from './coin-inputs.ts'
import { mergeCommand } from './commands.ts'
import { printAmount } from './decision.ts'
import { type Network, readNetwork } from './network-reader.ts'
import type { Command, Submitted } from './participant.ts'
import { ParticipantError } from './participant-error.ts'
import { catchUp, type Wallet, waitForView } from './wallet.ts'

/** Somebody else may spend the same coins or open a new round in between; then it is tried again. */
const ATTEMPTS_MAX = 5
/** So many hundreds of small coins are made one before a payment; more is a task of its own. */
const MERGES_MAX = 20

/** The refusals that fresh contracts mend. */
const STALE = new Set([
  'CONTRACT_NOT_FOUND',
  'LOCAL_VERDICT_INACTIVE_CONTRACTS',
  'LOCAL_VERDICT_LOCKED_CONTRACTS',
])

export type Payment = {
  payer: string
  commandId: string
  workflowId: string
  priority?: 'high' | 'low'
  amount(network: Network): Decimal
  command(network: Network, coins: readonly Coin[]): Promise<Command> | Command
}

/** Pays with the wallet's coins, one payment of a party after another. */
export function pay(wallet: Wallet, payment: Payment): Promise<Submitted> {
  return wallet.turns.take(payment.payer, () => payNow(wallet, payment))
}

async function payNow(wallet: Wallet, payment: Payment): Promise<Submitted> {
  return withFreshContracts(wallet, async (network) => {
    const coins = await gather(wallet, payment, network)
    return wallet.participant.submit({
      actAs: [payment.payer],
      commandId: payment.commandId,
      workflowId: payment.workflowId,
      commands: [await payment.command(network, coins)],
      priority: payment.priority ?? 'low',
    })
  })
}

/** Runs the work with what the network stands on, and again when that has changed meanwhile. */
export async function withFreshContracts<T>(
  wallet: Wallet,
  work: (network: Network) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    await catchUp(wallet)
    const network = await readNetwork(wallet.network, await wallet.participant.now())
    try {
      return await work(network)
    } catch (error) {
      const isStale = error instanceof ParticipantError && STALE.has(error.code)
      if (!isStale || attempt >= ATTEMPTS_MAX) throw error
    }
  }
}

async function gather(wallet: Wallet, payment: Payment, network: Network): Promise<Coin[]> {
  const amount = payment.amount(network)
  const { payer, commandId } = payment
  for (let merges = 0; merges <= MERGES_MAX; merges += 1) {
    const chosen = chooseCoins(coinsOf(wallet, payer), amount)
    if (chosen.kind === 'enough') return chosen.inputs
    if (chosen.kind === 'missing') {
      throw new PlainError(
        400,
        `The wallet holds ${printAmount(chosen.held)} coins that can be spent, which is less than the ${printAmount(amount)} that are needed.`,
      )
    }
    const { inputs, total } = chosen
    const { offset } = await wallet.participant.submit({
      actAs: [payer],
      commandId: `${commandId}-merge-${inputs[0]?.contractId.slice(0, 32)}`,
      workflowId: 'merge',
      commands: [mergeCommand(network, { owner: payer, coins: inputs, total })],
      priority: payment.priority ?? 'low',
    })
    await waitForView(wallet, offset)
  }
  throw new PlainError(
    409,
    'The wallet holds its coins in too many small pieces. Send a part of them first.',
  )
}

export function coinsOf({ view }: Pick<Wallet, 'view'>, party: string): Coin[] {
  return view.coins(party).map(({ contractId, payload }) => ({
    contractId,
    amount: payload.amount.initialAmount,
  }))
}
