import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PruningPlan, PruningState } from '../ledger/prune.ts'
import { printPlan, watchPruning } from './watch-pruning.ts'

const THREE = 1_770_001_200_000_000n // 2026-02-02T03:00:00Z
const QUIET: PruningState = {
  isOpen: false,
  nextMicros: undefined,
  lastRun: undefined,
  failuresInARow: 0,
  failure: undefined,
}
const PARTICIPANT = 'acme-validator-1::1220ab'

function watch(state: Partial<PruningState>) {
  const plan = async (): Promise<PruningPlan> => {
    throw new Error('The database is away.')
  }
  const pruning = { state: () => ({ ...QUIET, ...state }), plan }
  return watchPruning(PARTICIPANT, { pruning, retention: '30d' })
}

test('a dry run of pruning says how far it would come, when, why, and what holds it back', () => {
  const closed = { nextMicros: THREE }
  const open = { isOpen: true }
  const wallets = 'the log of the wallets'
  const table: [Partial<PruningPlan>, Partial<PruningState>, string][] = [
    [
      { pruned: 10n, retention: 52n, target: 52n },
      closed,
      'would prune 42 offsets up to 52 when the next window opens at 2026-02-02T03:00:00Z, because that is older than the retention of 30d',
    ],
    [
      { retention: 1n, target: 1n },
      open,
      'would prune 1 offset up to 1 in the window that is open, because that is older than the retention of 30d',
    ],
    [
      { retention: 52n, target: 12n, heldBy: wallets },
      {},
      'would prune 12 offsets up to 12, because that is older than the retention of 30d; the rest up to 52 is held back by the log of the wallets',
    ],
    [
      { pruned: 52n, retention: 52n, target: 52n },
      closed,
      'would do nothing, because nothing is older than the retention of 30d that is not pruned yet',
    ],
    [
      { pruned: 10n, retention: 52n, target: 10n, heldBy: wallets },
      closed,
      'would do nothing, because 42 offsets up to 52 older than the retention of 30d are held back by the log of the wallets',
    ],
  ]
  for (const [plan, state, sentence] of table) {
    const planned = { pruned: 0n, retention: 0n, target: 0n, heldBy: undefined, ...plan }
    assert.equal(printPlan(planned, { ...QUIET, ...state, retention: '30d' }), sentence)
  }
})

test('the row of pruning tells the last window, the next one, and what went wrong', async () => {
  const run = { startedAt: THREE, from: 10n, to: 52n, isCut: false }
  const table: [Partial<PruningState>, kind: string, sentence: string][] = [
    [{ lastRun: run }, 'acted', 'pruned 42 offsets up to 52'],
    [
      { lastRun: { ...run, isCut: true }, isOpen: true },
      'acted',
      'pruned 42 offsets up to 52 so far',
    ],
    [
      { lastRun: { ...run, isCut: true } },
      'acted',
      'pruned 42 offsets up to 52; the window closed before the rest',
    ],
    [{ lastRun: { ...run, to: 10n } }, 'waited', 'pruned nothing'],
    [{ lastRun: { ...run, failure: 'The disk is full.' } }, 'failed', 'The disk is full.'],
  ]
  for (const [state, kind, sentence] of table) {
    const { lastRun, lastOutcome } = watch(state).state()
    assert.equal(lastRun, '2026-02-02T03:00:00.000000Z')
    assert.deepEqual([lastOutcome?.kind, lastOutcome?.sentence], [kind, sentence])
  }
  const calm = watch({ nextMicros: THREE })
  assert.deepEqual([calm.warnings(), calm.notices()], [[], []])
  assert.equal(calm.state().nextRun, '2026-02-02T03:00:00.000000Z')
  const failing = watch({ failure: 'The disk is full.', failuresInARow: 3 })
  assert.equal(failing.state().failuresInARow, 3)
  assert.deepEqual(failing.warnings(), [`pruning of ${PARTICIPANT}: The disk is full.`])
  assert.doesNotMatch(failing.notices()[0] ?? '', /disk/)
  assert.equal(await failing.wouldDo(), 'cannot tell: The database is away.')
})
