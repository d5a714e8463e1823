import type { Decimal } from '../values/decimal.ts'
import type { ValueType } from '../values/value-type.ts'
import { archiveChoice, type Command } from './execute.ts'
import type { Ledger } from './ledger.ts'
import { openRound } from './round.ts'
import { amuletRules, firstRules, NETWORK_TRAFFIC, type TrafficParameters } from './rules.ts'
import type { Choice, Template } from './template.ts'
import { externalRules } from './token-standard.ts'
import type { LedgerUpdate } from './updates-store.ts'

/** A coin network on the ledger: who governs it, and the contracts that every payment names. */
export type Network = {
  dso: string
  rules: string
  external: string
  /** The open round; another one after every tick. */
  round: string
  amuletPrice: Decimal
}

/** The party that governs the coin network of a participant. */
export const DSO_HINT = 'DSO'

/** Ten minutes, as on the deployed networks. */
const TICK_MICROS = 600_000_000n

export async function foundNetwork(
  ledger: Ledger,
  of: { dso: string; amuletPrice: Decimal; traffic?: TrafficParameters },
): Promise<Network> {
  const { dso, amuletPrice, traffic = NETWORK_TRAFFIC } = of
  const tickDuration = { microseconds: TICK_MICROS }
  const now = ledger.clock.nowMicros()
  const synchronizerId = ledger.synchronizers[0] as string
  await ledger.submit({
    actAs: [dso],
    workflowId: 'found-network',
    commands: [
      createCommand(
        ledger,
        amuletRules,
        firstRules({ dso, synchronizerId, tickMicros: TICK_MICROS, traffic }),
      ),
      createCommand(ledger, externalRules, { dso }),
      createCommand(ledger, openRound, {
        dso,
        round: { number: 0n },
        amuletPrice,
        opensAt: now,
        targetClosesAt: now + 2n * TICK_MICROS,
        tickDuration,
      }),
    ],
  })
  return requireNetwork(await findNetwork(ledger, dso))
}

/** The network as it stands; undefined when the party governs none. */
export async function findNetwork(ledger: Ledger, dso: string): Promise<Network | undefined> {
  const [rules] = await ledger.contractsOf(amuletRules, dso)
  const [external] = await ledger.contractsOf(externalRules, dso)
  const rounds = await ledger.contractsOf(openRound, dso)
  const round = rounds.reduce<(typeof rounds)[number] | undefined>(
    (newest, candidate) =>
      newest === undefined || candidate.payload.round.number > newest.payload.round.number
        ? candidate
        : newest,
    undefined,
  )
  if (rules === undefined || external === undefined || round === undefined) return undefined
  return {
    dso,
    rules: rules.contractId,
    external: external.contractId,
    round: round.contractId,
    amuletPrice: round.payload.amuletPrice,
  }
}

function requireNetwork(network: Network | undefined): Network {
  if (network === undefined) throw new Error('The network has just been founded.')
  return network
}

export function createCommand<P>(ledger: Ledger, template: Template<P>, payload: P): Command {
  return { kind: 'create', entry: ledger.entryOf(template), payload }
}

export function exerciseCommand<P, A, R>(
  ledger: Ledger,
  step: { template: Template<P>; contractId: string; choice: Choice<P, A, R>; argument: A },
): Command {
  return {
    kind: 'exercise',
    entry: ledger.entryOf(step.template),
    contractId: step.contractId,
    choice: step.choice as Choice<unknown, unknown, unknown>,
    argument: step.argument,
  }
}

export function archiveCommand<P>(
  ledger: Ledger,
  template: Template<P>,
  contractId: string,
): Command {
  return {
    kind: 'exercise',
    entry: ledger.entryOf(template),
    contractId,
    choice: archiveChoice,
    argument: {},
  }
}

type ItemEvent = { exercise_result?: unknown }

/** What the first root choice of an update returned. */
export function resultOf<R>(update: LedgerUpdate, { result }: { result: ValueType<R> }): R {
  const item = JSON.parse(update.item) as { events_by_id: Record<string, ItemEvent> }
  return result.fromLossless(item.events_by_id[`${update.updateId}:0`]?.exercise_result)
}
