import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { every, type Recurring } from '../base/schedule.ts'
import { type Instant, instantFromMicros } from '../values/instant.ts'
import type { Acts } from './acts.ts'
import type { Automation, RunOutcome } from './automation.ts'
import {
  type AutomationState,
  firstState,
  type IdleAutomation,
  idleState,
  type LastOutcome,
  lastActOf,
  outcomeOf,
  printNotice,
  printWarning,
  type RunReport,
  sentenceOf,
  warningsOf,
} from './automation-state.ts'
import type { DoneAct } from './automation-store.ts'
import { printSentence } from './decision.ts'
import { describeFailure } from './run-failure.ts'

/**
 * Runs automations, each on its own schedule: at every interval, give or take a tenth, again at once
 * after a run that did something, and where an automation follows events, whenever wallets change.
 */

export type AutomationRunner = {
  /** What is known of each automation, those that are off included. */
  states(): AutomationState[]
  /** What each would do now. */
  dryRun(): Promise<Map<AutomationState, string>>
  /** What the operator should mend, a sentence each. */
  warnings(): string[]
  /** The same for everybody: nothing of what wallets hold. */
  notices(): string[]
  /** Starts what has become due to start, such as those of a new wallet, and stops what has not. */
  refresh(): void
  /** Wallets have changed. */
  wake(): void
  close(): Promise<void>
}

export type RunnerOptions = {
  clock: Clock
  log: Logger
  acts: Pick<Acts, 'takeUp'>
  /** Those that shall run now; the same one has the same name and party. */
  automations(): readonly Automation[]
  idle(): readonly IdleAutomation[]
  /** What was done before this start. */
  done: readonly DoneAct[]
  /** How far the synchronizer's time lags behind ours; negative when it is ahead. */
  lagMicros(): Promise<bigint>
  /** Whether this node is the one that may act now; where several share a database that may change. */
  mayAct?(): boolean
  onRun?(run: RunReport): void
  /** From 0 up to 1; for tests. */
  random?: () => number
}

/** The interval varies by a tenth either way, so that nodes do not all ask at the same time. */
const JITTER = 0.2
/** So many failures that may pass by themselves are nobody's business; more are a warning. */
const QUIET_FAILURES_MAX = 3
/** While the synchronizer lags further behind, what it shows is too old to act upon. */
const LAG_MICROS_MAX = 120_000_000n
/** After so many runs that did something others get a turn; the next run comes after the interval. */
const RUNS_AT_ONCE_MAX = 100

const NOT_OURS =
  'this node has lost the lock of the history, which another node may hold; automations go on when it is held again'

type Running = {
  automation: Automation
  loop: Recurring
  /** `nextRun` is the loop's to say. */
  known: AutomationState
  runsAtOnce: number
}

export function startAutomations(options: RunnerOptions): AutomationRunner {
  const { clock, log, random = Math.random } = options
  const running = new Map<string, Running>()
  const lastDone = new Map(options.done.map((act) => [keyOf(act.automation, act.party), act]))
  const closing = new Set<Promise<void>>()
  let isClosed = false
  let taken: Promise<void> | undefined

  /** Nothing is done before it is known what has become of what a crash left open. */
  function takeUp(): Promise<void> {
    taken ??= options.acts.takeUp().then(
      (done) => {
        for (const { what, updateId } of done) log.info({ what, updateId }, 'an act was taken up')
      },
      (error: unknown) => {
        taken = undefined
        throw error
      },
    )
    return taken
  }

  function note(of: Running, outcome: LastOutcome, run: { seconds: number; errorCode: string }) {
    const { automation, known } = of
    known.failuresInARow = outcome.kind === 'failed' ? known.failuresInARow + 1 : 0
    known.lastRun = now()
    known.lastOutcome = outcome
    const { name, party, isEventDriven } = automation
    const { failuresInARow } = known
    const about = { name, party, isEventDriven, failuresInARow }
    options.onRun?.({ ...about, outcome: outcome.kind, ...run })
  }

  /** Tells whether it should run again at once. */
  async function runOnce(of: Running): Promise<boolean> {
    const startedAt = performance.now()
    const seconds = () => (performance.now() - startedAt) / 1000
    try {
      await takeUp()
      if (await isPaused(of.known)) return false
      const outcome = await of.automation.run()
      report(of, outcome)
      note(of, outcomeOf(outcome, now()), { seconds: seconds(), errorCode: '' })
      if (outcome.kind === 'acted') of.known.lastAct = lastActOf(outcome.done, now())
      of.runsAtOnce = outcome.kind === 'acted' ? of.runsAtOnce + 1 : 0
      if (of.runsAtOnce < RUNS_AT_ONCE_MAX) return outcome.kind === 'acted'
    } catch (error) {
      if (!isClosed) fail(of, error, seconds())
    }
    of.runsAtOnce = 0
    return false
  }

  function fail(of: Running, error: unknown, seconds: number): void {
    const { name, party } = of.automation
    const { sentence, code, isQuiet, isTransient } = describeFailure(error)
    const isWarning = of.known.failuresInARow >= QUIET_FAILURES_MAX
    const outcome = { kind: 'failed' as const, at: now(), sentence, isWarning }
    note(of, outcome, { seconds, errorCode: code })
    const { failuresInARow } = of.known
    const isLoud = !isQuiet && (!isTransient || failuresInARow > QUIET_FAILURES_MAX)
    const line = { automation: name, party, code, reason: sentence, failuresInARow }
    if (isLoud) log.warn(line, 'an automation failed')
    else log.debug(line, 'an automation failed; it tries again')
  }

  async function isPaused(known: AutomationState): Promise<boolean> {
    known.why = (options.mayAct?.() ?? true) ? await describeLag() : NOT_OURS
    known.state = known.why === '' ? 'on' : 'paused'
    return known.why !== ''
  }

  /** Empty while it does not matter. */
  async function describeLag(): Promise<string> {
    const lag = await options.lagMicros()
    if (lag < -LAG_MICROS_MAX) {
      return `the newest update of the ledger is ${-lag / 1_000_000n} s ahead of this machine's clock; automations go on when the clock has come there`
    }
    if (lag <= LAG_MICROS_MAX) return ''
    return `the time of the synchronizer lags ${lag / 1_000_000n} s behind; automations go on when it is less than ${LAG_MICROS_MAX / 1_000_000n} s`
  }

  /** Acts are news; why nothing is done is told when it changes, if it is worth it. */
  function report({ automation: { name, party }, known }: Running, outcome: RunOutcome): void {
    const line = { automation: name, party }
    if (outcome.kind === 'acted') {
      const { what, updateId, trackingId } = outcome.done
      log.info({ ...line, what, because: outcome.because, updateId, trackingId }, 'automation')
      return
    }
    if (known.lastOutcome?.sentence === sentenceOf(outcome)) return
    const reason = { ...line, reason: outcome.because }
    if (outcome.isWarning) log.warn(reason, 'an automation cannot do its work')
    else if (outcome.isNews) log.info(reason, 'an automation waits')
  }

  function start(automation: Automation): void {
    const key = keyOf(automation.name, automation.party)
    const started: Running = {
      automation,
      known: firstState(automation, lastDone.get(key)),
      runsAtOnce: 0,
      loop: every({
        clock,
        intervalMs: automation.intervalMs,
        jitter: JITTER,
        random,
        // The first run begins before there is something to name.
        run: () => Promise.resolve().then(() => runOnce(started)),
        onError: (error) => log.error({ err: error }, 'an automation broke'),
      }),
    }
    running.set(key, started)
  }

  function now(): Instant {
    return instantFromMicros(clock.nowMicros()) as Instant
  }

  function refresh(): void {
    if (isClosed) return
    const wanted = new Map(options.automations().map((one) => [keyOf(one.name, one.party), one]))
    for (const [key, { loop }] of running) {
      if (wanted.has(key)) continue
      running.delete(key)
      const closed = loop.close().finally(() => closing.delete(closed))
      closing.add(closed)
    }
    for (const [key, automation] of wanted) if (!running.has(key)) start(automation)
  }

  function runningStates(): AutomationState[] {
    return [...running.values()].map(({ known, loop: { nextMicros } }) => ({
      ...known,
      nextRun: nextMicros === undefined ? undefined : instantFromMicros(nextMicros),
    }))
  }

  const states = () => [...runningStates(), ...options.idle().map(idleState)]
  const warnings = () => warningsOf(runningStates(), options.idle())

  for (const { name, party, why, isWarning } of options.idle()) {
    if (isWarning) log.warn({ automation: name, party, reason: why }, 'an automation does not run')
  }
  refresh()
  return {
    states,
    async dryRun() {
      const sentences = new Map<AutomationState, string>()
      for (const state of states()) {
        const automation = running.get(keyOf(state.name, state.party))?.automation
        if (automation === undefined) sentences.set(state, `would do nothing, because ${state.why}`)
        else sentences.set(state, await tryDecide(automation))
      }
      return sentences
    },
    warnings: () => warnings().map(printWarning),
    notices: () => warnings().map(printNotice),
    refresh,
    wake() {
      refresh()
      for (const { automation, loop } of running.values()) {
        if (automation.isEventDriven && !automation.isIdle()) loop.wake()
      }
    },
    async close() {
      isClosed = true
      await Promise.all([...[...running.values()].map(({ loop }) => loop.close()), ...closing])
    },
  }
}

async function tryDecide(automation: Automation): Promise<string> {
  try {
    return printSentence(await automation.decide())
  } catch (error) {
    return `cannot tell: ${describeFailure(error).sentence}`
  }
}

function keyOf(name: string, party: string): string {
  return `${name}/${party}`
}
