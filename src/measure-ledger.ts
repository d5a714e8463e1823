import type { Ledger, LedgerEvents, SubmissionOutcome } from './ledger/ledger.ts'
import type { PruningRun } from './ledger/prune.ts'
import type { TrafficOptions } from './ledger/traffic-control.ts'
import { countBuckets } from './metrics/histogram.ts'
import type { Registry } from './metrics/registry.ts'
import { type Instant, microsOf } from './values/instant.ts'

// What the ledger tells of submissions, traffic and pruning as metrics. docs/metrics.md names them all.

const MICROS_PER_HOUR = 3_600_000_000

const OUTCOMES: readonly SubmissionOutcome[] = [
  'accepted',
  'contended',
  'duplicate',
  'refused',
  'failed',
]

/** How submissions end, how long they take, and how many share a commit. */
export function measureSubmissions(registry: Registry): Required<LedgerEvents> {
  const submissions = registry.counter({
    name: 'annals_ledger_submissions_total',
    help: 'Submissions to the embedded ledger, by how they ended.',
    labels: ['outcome'],
  })
  for (const outcome of OUTCOMES) submissions.labels({ outcome }).inc(0)
  const durations = registry.histogram({
    name: 'annals_ledger_submission_duration_seconds',
    help: 'Time from a submission to its durable end.',
  })
  const batches = registry.histogram({
    name: 'annals_ledger_commit_submissions',
    help: 'Submissions that share a commit.',
    buckets: countBuckets,
  })
  return {
    onSettled(outcome, seconds) {
      submissions.labels({ outcome }).inc()
      durations.observe(seconds)
    },
    onCommit: (count) => batches.observe(count),
  }
}

/** What the ledger holds, and how far the history is behind it; returns what is told of each batch. */
export function watchLedger(
  registry: Registry,
  of: { ledger: Ledger | undefined; followed(): bigint | undefined },
): { onFollowed(seconds: number): void } {
  registry.gauge({
    name: 'annals_ledger_active_contracts',
    help: 'Contracts of the embedded ledger that are active.',
    collect: (gauge) => gauge.set(of.ledger?.activeContracts ?? 0),
  })
  registry.gauge({
    name: 'annals_ledger_end_offset',
    help: 'The last offset of the embedded ledger.',
    collect: (gauge) => gauge.set(Number(of.ledger?.end ?? 0)),
  })
  registry.gauge({
    name: 'annals_ledger_following_behind_offsets',
    help: 'Offsets of the ledger that the history has not followed yet.',
    collect(gauge) {
      const followed = of.followed()
      gauge.set(followed === undefined ? 0 : Number((of.ledger?.end ?? 0n) - followed))
    },
  })
  const lag = registry.histogram({
    name: 'annals_ledger_following_lag_seconds',
    help: 'Time from a commit of the ledger to its updates in the history.',
  })
  return { onFollowed: (seconds) => lag.observe(seconds) }
}

/** Counts what is paid, and what cannot be. */
export function measureTraffic(
  registry: Registry,
): Required<Pick<TrafficOptions, 'onSpent' | 'onRefused'>> {
  const spent = registry.counter({
    name: 'annals_traffic_spent_bytes_total',
    help: 'Bytes of traffic that updates have cost, by what they were paid from.',
    labels: ['source'],
  })
  const base = spent.labels({ source: 'base' })
  const extra = spent.labels({ source: 'extra' })
  for (const counter of [base, extra]) counter.inc(0)
  const refused = registry.counter({
    name: 'annals_traffic_refused_total',
    help: 'Submissions that were refused for want of traffic.',
  })
  return {
    onSpent(bytes) {
      base.inc(Number(bytes.base))
      extra.inc(Number(bytes.extra))
    },
    onRefused: () => refused.inc(),
  }
}

/** Unlimited where no rules say what traffic costs. */
export function watchTraffic(registry: Registry, ledger: Ledger | undefined): void {
  registry.gauge({
    name: 'annals_traffic_available_bytes',
    help: 'Bytes of traffic that updates may cost now, by what they are paid from.',
    labels: ['source'],
    collect(gauge) {
      const available = ledger?.peekTraffic()?.available
      for (const source of ['base', 'extra'] as const) {
        const bytes = available?.[source]
        gauge.labels({ source }).set(bytes === undefined ? Number.POSITIVE_INFINITY : Number(bytes))
      }
    },
  })
}

/** What a pruned ledger still holds, and how pruning goes. */
export function measurePruning(
  registry: Registry,
  of: { oldest(): Instant | undefined; nowMicros(): bigint; pruned(): bigint; isOpen(): boolean },
) {
  registry.gauge({
    name: 'daml_pruning_max_event_age',
    help: 'Hours since the oldest update that is not pruned.',
    collect(gauge) {
      const oldest = of.oldest()
      const micros = oldest === undefined ? 0 : Number(of.nowMicros() - microsOf(oldest))
      gauge.set(Math.max(0, micros / MICROS_PER_HOUR))
    },
  })
  registry.gauge({
    name: 'annals_pruned_offset',
    help: 'The offset up to which updates are pruned.',
    collect: (gauge) => gauge.set(Number(of.pruned())),
  })
  registry.gauge({
    name: 'annals_pruning_window_open',
    help: 'Whether a pruning window is open and being worked in.',
    collect: (gauge) => gauge.set(of.isOpen() ? 1 : 0),
  })
  const pruned = registry.counter({
    name: 'annals_pruned_offsets_total',
    help: 'Offsets that this process has pruned.',
  })
  const runs = registry.counter({
    name: 'annals_pruning_runs_total',
    help: 'Windows in which pruning has run, by how they ended.',
    labels: ['outcome'],
  })
  for (const outcome of ['reached', 'cut', 'failed']) runs.labels({ outcome }).inc(0)
  const failures = registry.counter({
    name: 'annals_pruning_failures_total',
    help: 'Batches of pruning that failed and were tried again.',
  })
  return {
    onBatch: ({ from, to }: { from: bigint; to: bigint }) => pruned.inc(Number(to - from)),
    onRun: (run: PruningRun) => runs.labels({ outcome: outcomeOf(run) }).inc(),
    onFailure: () => failures.inc(),
  }
}

function outcomeOf({ isCut, failure }: PruningRun): string {
  if (failure !== undefined) return 'failed'
  return isCut ? 'cut' : 'reached'
}
