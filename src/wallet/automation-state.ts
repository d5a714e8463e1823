import type { Instant } from '../values/instant.ts'
import type { ActDone } from './acts.ts'
import type { AutomationName, RunOutcome } from './automation.ts'
import type { DoneAct } from './automation-store.ts'
import type { Wait } from './decision.ts'

/** What is known of an automation, for people and programs that watch. */
export type AutomationState = {
  name: AutomationName | 'pruning'
  /** Whose wallet it works for; pruning works for the participant. */
  party: string
  state: 'on' | 'off' | 'paused'
  /** Why it is off or paused; empty while it is on. */
  why: string
  lastRun: Instant | undefined
  nextRun: Instant | undefined
  lastOutcome: LastOutcome | undefined
  lastAct: LastAct | undefined
  failuresInARow: number
}

export type LastOutcome = {
  kind: 'acted' | 'waited' | 'failed'
  at: string
  sentence: string
  /** Something that the operator should mend. */
  isWarning: boolean
}

export type LastAct = { at: string; what: string; updateId: string }

/** An automation that does not run, and why; a warning where the configuration wants it to. */
export type IdleAutomation = {
  name: AutomationName
  party: string
  why: string
  isWarning: boolean
}

/** A run, for whoever counts. */
export type RunReport = {
  name: AutomationName
  party: string
  outcome: LastOutcome['kind']
  seconds: number
  /** Empty unless it failed. */
  errorCode: string
  failuresInARow: number
  isEventDriven: boolean
}

/** What is known of one that has just been started. */
export function firstState(
  { name, party }: Pick<AutomationState, 'name' | 'party'>,
  done: DoneAct | undefined,
): AutomationState {
  const lastAct = done && { at: done.doneAt, what: done.what, updateId: done.updateId }
  return {
    name,
    party,
    state: 'on',
    why: '',
    lastRun: undefined,
    nextRun: undefined,
    lastOutcome: undefined,
    lastAct,
    failuresInARow: 0,
  }
}

export function idleState({ name, party, why }: IdleAutomation): AutomationState {
  return { ...firstState({ name, party }, undefined), state: 'off', why }
}

export function outcomeOf(outcome: RunOutcome, at: string): LastOutcome {
  return outcome.kind === 'acted'
    ? { kind: 'acted', at, sentence: outcome.done.what, isWarning: false }
    : { kind: 'waited', at, sentence: sentenceOf(outcome), isWarning: outcome.isWarning ?? false }
}

export function lastActOf({ what, updateId }: ActDone, at: string): LastAct {
  return { at, what, updateId }
}

export function sentenceOf({ because, isWarning }: Wait): string {
  return `${isWarning ? 'waits' : 'nothing to do'}: ${because}`
}

/** A sentence about an automation; `isPrivate` when it tells what a wallet holds. */
export type Warning = Pick<AutomationState, 'name' | 'party' | 'why'> & { isPrivate: boolean }

/** What the operator should mend. */
export function warningsOf(
  states: readonly AutomationState[],
  idle: readonly IdleAutomation[],
): Warning[] {
  const off = idle.filter(({ isWarning }) => isWarning).map((one) => ({ ...one, isPrivate: false }))
  const lame = states.flatMap(({ name, party, state, why, lastOutcome }) => {
    if (state === 'paused') return [{ name, party, why, isPrivate: false }]
    if (lastOutcome?.isWarning !== true) return []
    return [{ name, party, why: lastOutcome.sentence, isPrivate: true }]
  })
  return [...off, ...lame]
}

export function printWarning({ name, party, why }: Warning): string {
  return `${name} of ${party}: ${why}`
}

/** For everybody: nothing of what wallets hold. */
export function printNotice(warning: Warning): string {
  if (!warning.isPrivate) return printWarning(warning)
  const { name, party } = warning
  return `${name} of ${party} cannot do its work; annals automations says why`
}
