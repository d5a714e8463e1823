import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { createSimulatedClock } from '../base/clock.ts'
import { createLogs } from '../base/log.ts'
import type { Automation, RunOutcome } from './automation.ts'
import { type RunnerOptions, startAutomations } from './automation-runner.ts'
import type { IdleAutomation, RunReport } from './automation-state.ts'
import { ParticipantError } from './participant-error.ts'

const START = 1_767_225_600_000_000n
const SECOND = 1_000_000n
const INTERVAL_MS = 30_000

const away = () =>
  new ParticipantError('The participant cannot be reached.', {
    status: 0,
    isDefinite: false,
    isRetryable: true,
  })
const refused = (code: string) =>
  new ParticipantError('No.', { status: 400, code, isDefinite: true, isRetryable: false })
const waiting: RunOutcome = { kind: 'wait', because: 'all is well' }
const acted = (n: number): RunOutcome => ({
  kind: 'acted',
  done: { trackingId: `t${n}`, updateId: `u${n}`, what: `act ${n}` },
  because: 'it is due',
  plan: {},
})

type Line = { level: string; message: string; reason?: string }

/** A runner of one automation, whose outcomes are given one after another and then wait. */
function start(
  t: { after(clean: () => Promise<void>): void },
  outcomes: (RunOutcome | Error)[],
  options: Partial<RunnerOptions> & {
    isEventDriven?: boolean
    isIdle?: boolean
    idleOnes?: IdleAutomation[]
  } = {},
) {
  const clock = createSimulatedClock(START)
  const ran: bigint[] = []
  const lines: Line[] = []
  const reports: RunReport[] = []
  const automation: Automation = {
    name: 'sweep',
    party: 'alice',
    intervalMs: INTERVAL_MS,
    isEventDriven: options.isEventDriven ?? false,
    isIdle: () => options.isIdle ?? false,
    decide: async () => ({ kind: 'act', plan: {}, what: 'send 5 to bob', because: 'it is due' }),
    async run() {
      ran.push(clock.nowMicros() - START)
      const outcome = outcomes.shift() ?? waiting
      if (outcome instanceof Error) throw outcome
      return outcome
    },
  }
  const stream = { write: (line: string) => void lines.push(JSON.parse(line) as Line) }
  const logs = createLogs({
    level: 'debug',
    pretty: false,
    stream: stream as unknown as NodeJS.WritableStream,
  })
  const runner = startAutomations({
    clock,
    log: logs.named('test'),
    acts: { takeUp: async () => [] },
    automations: () => [automation],
    idle: () => options.idleOnes ?? [],
    done: [],
    lagMicros: async () => 0n,
    random: () => 0.5,
    onRun: (report) => reports.push(report),
    ...options,
  })
  t.after(() => runner.close())
  const settle = async () => {
    for (let turn = 0; turn < 20; turn += 1) await tick()
  }
  return {
    runner,
    clock,
    ran,
    lines,
    reports,
    settle,
    async advance(seconds: number) {
      clock.advance(BigInt(seconds) * SECOND)
      await settle()
    },
    async quiet() {
      await settle()
      return runner.states()[0]
    },
  }
}

test('an automation runs at once and then at every interval, give or take a tenth', async (t) => {
  for (const [random, seconds] of [
    [0, 27],
    [0.5, 30],
    [0.999999999, 33],
  ] as const) {
    const of = start(t, [], { random: () => random })
    await of.settle()
    assert.deepEqual(of.ran, [0n])
    await of.advance(seconds - 1)
    assert.equal(of.ran.length, 1)
    await of.advance(1)
    assert.equal(of.ran.length, 2)
  }
})

test('after a run that did something it runs again at once, a hundred times at most', async (t) => {
  const few = start(t, [acted(1), acted(2)])
  await few.settle()
  assert.equal(few.ran.length, 3)
  const many = start(
    t,
    Array.from({ length: 150 }, (_, n) => acted(n)),
  )
  while (many.ran.length < 100) await many.settle()
  await many.settle()
  assert.equal(many.ran.length, 100)
  await many.advance(30)
  while (many.ran.length < 151) await many.settle()
})

test('a clock that jumps makes one run of many intervals', async (t) => {
  const of = start(t, [])
  await of.settle()
  await of.advance(48 * 3600)
  assert.equal(of.ran.length, 2)
  await of.advance(30)
  assert.equal(of.ran.length, 3)
})

test('one that follows events runs when wallets change, another does not, nor one without work', async (t) => {
  const follower = start(t, [], { isEventDriven: true })
  const poller = start(t, [])
  const idler = start(t, [], { isEventDriven: true, isIdle: true })
  await follower.settle()
  follower.runner.wake()
  poller.runner.wake()
  idler.runner.wake()
  await follower.settle()
  assert.deepEqual([follower.ran.length, poller.ran.length, idler.ran.length], [2, 1, 1])
})

test('three failures that pass by themselves are quiet, the fourth is a warning; one that does not is at once', async (t) => {
  const of = start(t, [away(), away(), away(), away()])
  await of.settle()
  for (let n = 0; n < 2; n += 1) await of.advance(30)
  assert.deepEqual(
    of.lines.filter(({ level }) => level === 'WARN'),
    [],
  )
  assert.deepEqual(of.runner.warnings(), [])
  await of.advance(30)
  assert.equal(of.lines.filter(({ level }) => level === 'WARN').length, 1)
  assert.match(of.runner.warnings()[0] ?? '', /sweep of alice: The participant cannot be reached/)
  assert.match(of.runner.notices()[0] ?? '', /annals automations says why/)
  assert.equal((await of.quiet())?.failuresInARow, 4)
  await of.advance(30)
  assert.equal((await of.quiet())?.failuresInARow, 0)
  assert.deepEqual(of.runner.warnings(), [])
  const loud = start(t, [refused('INTERPRETATION_USER_ERROR')])
  await loud.settle()
  assert.equal(loud.lines.filter(({ level }) => level === 'WARN').length, 1)
  const silent = start(t, [refused('SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT')])
  await silent.settle()
  assert.deepEqual(
    silent.lines.filter(({ level }) => level === 'WARN'),
    [],
  )
})

test('a node that has lost its place to another does nothing until it has it back', async (t) => {
  let isOurs = false
  const of = start(t, [], { mayAct: () => isOurs })
  await of.settle()
  assert.deepEqual(of.ran, [])
  assert.equal(of.runner.states()[0]?.state, 'paused')
  assert.match(of.runner.notices()[0] ?? '', /^sweep of alice: this node has lost the lock/)
  isOurs = true
  of.clock.advance(BigInt(INTERVAL_MS) * 1000n)
  await of.settle()
  assert.equal(of.ran.length, 1)
  assert.deepEqual([of.runner.states()[0]?.state, of.runner.notices()], ['on', []])
})

test("while the ledger is ahead of the machine's clock nothing runs", async (t) => {
  let lag = -31_536_000n * SECOND
  const of = start(t, [], { lagMicros: async () => lag })
  await of.settle()
  assert.deepEqual(of.ran, [])
  const paused = await of.quiet()
  assert.equal(paused?.state, 'paused')
  assert.match(paused?.why ?? '', /is 31536000 s ahead of this machine's clock/)
  lag = -120n * SECOND
  await of.advance(30)
  assert.equal(of.ran.length, 1)
})

test('while the synchronizer lags more than two minutes nothing runs', async (t) => {
  let lag = 121n * SECOND
  const of = start(t, [], { lagMicros: async () => lag })
  await of.settle()
  assert.deepEqual(of.ran, [])
  const paused = await of.quiet()
  assert.equal(paused?.state, 'paused')
  assert.match(paused?.why ?? '', /lags 121 s behind/)
  lag = 120n * SECOND
  await of.advance(30)
  assert.equal(of.ran.length, 1)
  assert.equal((await of.quiet())?.state, 'on')
})

test('nothing runs before it is known what a crash has left open', async (t) => {
  let attempts = 0
  const takeUp = async () => {
    attempts += 1
    if (attempts === 1) throw away()
    return []
  }
  const of = start(t, [], { acts: { takeUp } })
  await of.settle()
  assert.deepEqual(of.ran, [])
  await of.advance(30)
  await of.advance(30)
  assert.deepEqual([of.ran.length, attempts], [2, 2])
})

test('a state tells the last run, the next, the outcome and its update', async (t) => {
  const done = [
    { automation: 'sweep', party: 'alice', what: 'send 3', updateId: 'u0', doneAt: 'earlier' },
  ]
  const before = start(t, [new Error('x')], { done })
  assert.equal(before.runner.states()[0]?.lastAct?.updateId, 'u0')
  const of = start(t, [acted(7)])
  const state = await of.quiet()
  assert.equal(state?.lastRun, '2026-01-01T00:00:00.000000Z')
  assert.equal(state?.nextRun, '2026-01-01T00:00:30.000000Z')
  assert.deepEqual(
    [state?.lastOutcome?.kind, state?.lastOutcome?.sentence, state?.lastAct?.updateId],
    ['waited', 'nothing to do: all is well', 'u7'],
  )
  assert.deepEqual(
    of.reports.map(({ outcome }) => outcome),
    ['acted', 'waited'],
  )
  const [sentence] = (await of.runner.dryRun()).values()
  assert.equal(sentence, 'would send 5 to bob, because it is due')
  assert.equal(of.ran.length, 2, 'a dry run runs nothing')
})

test('what the configuration names and nobody has is off, and a warning at the start', async (t) => {
  const why = 'walletSweep names a party that has no wallet on this node'
  const idleOnes = [
    { name: 'sweep' as const, party: 'stranger', why, isWarning: true },
    { name: 'top-up' as const, party: 'op', why: 'not configured', isWarning: false },
  ]
  const of = start(t, [], { idleOnes })
  await of.settle()
  assert.deepEqual(
    of.runner.states().map(({ party, state }) => `${party} ${state}`),
    ['alice on', 'stranger off', 'op off'],
  )
  assert.deepEqual(of.runner.warnings(), [`sweep of stranger: ${why}`])
  assert.deepEqual(of.runner.notices(), [`sweep of stranger: ${why}`])
  assert.equal(of.lines.filter(({ level }) => level === 'WARN').length, 1)
})
