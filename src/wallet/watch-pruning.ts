import type { Pruning, PruningPlan, PruningRun, PruningState } from '../ledger/prune.ts'
import { type Instant, instantFromMicros, printInThrees } from '../values/instant.ts'
import type { AutomationRunner } from './automation-runner.ts'
import { type AutomationState, firstState, type LastOutcome } from './automation-state.ts'

/**
 * Pruning belongs to the participant and not to a wallet, and it goes by windows instead of an interval;
 * whoever watches automations sees it among them all the same.
 */
export type WatchedPruning = {
  state(): AutomationState
  /** What a run would do now. */
  wouldDo(): Promise<string>
  /** What the operator should mend. */
  warnings(): string[]
  /** The same for everybody: nothing of what a database says. */
  notices(): string[]
}

/** `retention` as the operator reads it. */
export type PruningOn = { pruning: Pick<Pruning, 'state' | 'plan'>; retention: string }
export type PruningOff = { why: string; isWarning: boolean }

export function watchPruning(participantId: string, of: PruningOn | PruningOff): WatchedPruning {
  const first = firstState({ name: 'pruning', party: participantId }, undefined)
  const warn = (why: string) => [`pruning of ${participantId}: ${why}`]
  if ('why' in of) {
    const { why, isWarning } = of
    return {
      state: () => ({ ...first, state: 'off', why }),
      wouldDo: async () => `would do nothing, because ${why}`,
      warnings: () => (isWarning ? warn(why) : []),
      notices: () => (isWarning ? warn(why) : []),
    }
  }
  const { pruning, retention } = of
  const tell = (say: (failure: string) => string) => {
    const { failure } = pruning.state()
    return failure === undefined ? [] : warn(say(failure))
  }
  return {
    state: () => ({ ...first, ...stateOf(pruning.state()) }),
    async wouldDo() {
      try {
        return printPlan(await pruning.plan(), { retention, ...pruning.state() })
      } catch (error) {
        return `cannot tell: ${(error as Error).message}`
      }
    },
    warnings: () => tell((failure) => failure),
    notices: () => tell(() => 'it failed and is tried again; the log says why'),
  }
}

/** The automations of a node, and its pruning among them. */
export function withPruning(runner: AutomationRunner, pruning: WatchedPruning): AutomationRunner {
  return {
    ...runner,
    states: () => [...runner.states(), pruning.state()],
    dryRun: async () => (await runner.dryRun()).set(pruning.state(), await pruning.wouldDo()),
    warnings: () => [...runner.warnings(), ...pruning.warnings()],
  }
}

function stateOf(state: PruningState): Partial<AutomationState> {
  const { lastRun, nextMicros, failuresInARow } = state
  return {
    lastRun: lastRun && instantFromMicros(lastRun.startedAt),
    nextRun: nextMicros === undefined ? undefined : instantFromMicros(nextMicros),
    lastOutcome: lastRun && outcomeOf(lastRun, state),
    failuresInARow,
  }
}

function outcomeOf(
  { startedAt, from, to, isCut, failure }: PruningRun,
  { isOpen }: Pick<PruningState, 'isOpen'>,
): LastOutcome {
  const at = instantFromMicros(startedAt) as Instant
  if (failure !== undefined) return { kind: 'failed', at, sentence: failure, isWarning: true }
  const rest = isOpen ? ' so far' : isCut ? '; the window closed before the rest' : ''
  const kind = to > from ? 'acted' : 'waited'
  const sentence = to > from ? `pruned ${count(from, to)} up to ${to}` : 'pruned nothing'
  return { kind, at, sentence: `${sentence}${rest}`, isWarning: false }
}

export function printPlan(
  { pruned: from, retention: wanted, target: to, heldBy }: PruningPlan,
  of: { retention: string } & Pick<PruningState, 'isOpen' | 'nextMicros'>,
): string {
  const old = `older than the retention of ${of.retention}`
  const held = heldBy === undefined ? '' : `held back by ${heldBy}`
  if (to > from) {
    const further = held && `; the rest up to ${wanted} is ${held}`
    return `would prune ${count(from, to)} up to ${to}${when(of)}, because that is ${old}${further}`
  }
  if (wanted <= from) return `would do nothing, because nothing is ${old} that is not pruned yet`
  return `would do nothing, because ${count(from, wanted)} up to ${wanted} ${old} ${wanted - from === 1n ? 'is' : 'are'} ${held}`
}

/** Outside of its windows nothing is pruned. */
function when({ isOpen, nextMicros }: Pick<PruningState, 'isOpen' | 'nextMicros'>): string {
  if (isOpen) return ' in the window that is open'
  if (nextMicros === undefined) return ''
  return ` when the next window opens at ${printInThrees(instantFromMicros(nextMicros) as Instant)}`
}

function count(from: bigint, to: bigint): string {
  return to - from === 1n ? '1 offset' : `${to - from} offsets`
}
