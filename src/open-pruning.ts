import { systemClock } from './base/clock.ts'
import { every, type Recurrence } from './base/schedule.ts'
import { parseCron } from './config/cron.ts'
import { printDuration } from './config/duration.ts'
import type { NodeConfig, PruningConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { applySchedule, type Pruning, type SafeOffset, startPruning } from './ledger/prune.ts'
import { type PruningSchedule, selectOldest, selectPruned } from './ledger/prune-store.ts'
import type { Surroundings } from './listen.ts'
import { measurePruning } from './measure-ledger.ts'
import { appLabels } from './metrics/app-labels.ts'
import type { NodeLedger } from './open-ledger.ts'
import type { Following } from './scan/follow.ts'
import type { Participant } from './users/participant-store.ts'
import type { Instant } from './values/instant.ts'
import { selectLeastFollowed } from './wallet/wallet-store.ts'
import { type PruningOff, type WatchedPruning, watchPruning } from './wallet/watch-pruning.ts'

export type OpenPruningOptions = {
  config: NodeConfig
  db: Db
  appDb: Db
  participant: Participant
  embedded: NodeLedger | undefined
  /** Undefined when another node writes the history: then that one prunes. */
  following: Following | undefined
  around: Surroundings
  parts: AsyncDisposableStack
}

/** How old the oldest update is changes slowly; deployed participants look as often. */
const REFRESH_MS = 3_600_000

/** Makes the stored schedule the configured one and prunes by it, on the node that writes the history. */
export async function openPruning(options: OpenPruningOptions): Promise<WatchedPruning> {
  const { config, around, participant } = options
  const off = whyOff(options)
  const pruning = await startScheduled(options)
  const retention = printDuration(config.pruning?.retentionMs ?? 0)
  const watched = watchPruning(
    participant.participantId,
    pruning === undefined ? off : { pruning, retention },
  )
  if (pruning === undefined && off.isWarning) {
    around.logs.named('annals.pruning').warn({ reason: off.why }, 'nothing is pruned')
  }
  around.health.addNotices(() => watched.notices())
  return watched
}

function whyOff({ config, embedded, following }: OpenPruningOptions): PruningOff {
  if (config.pruning === undefined) {
    return { why: 'participantPruningSchedule is not configured', isWarning: false }
  }
  if (embedded !== undefined && following === undefined) {
    return { why: 'another node that shares the databases prunes', isWarning: false }
  }
  return {
    why: 'participantPruningSchedule is configured, but this node has no ledger of its own; configure it where the participant is, or remove it',
    isWarning: true,
  }
}

/** Undefined where nothing is pruned. */
async function startScheduled(options: OpenPruningOptions): Promise<Pruning | undefined> {
  const { config, db, embedded, following, around, parts } = options
  const log = around.logs.named('annals.pruning')
  const schedule = config.pruning && scheduleOf(config.pruning)
  const applied = following === undefined ? 'kept' : await applySchedule(db, schedule)
  if (applied === 'set') log.info(schedule, 'the pruning schedule is set')
  if (applied === 'cleared') log.info('the pruning schedule is cleared: nothing is pruned any more')
  if (embedded === undefined) return undefined

  const known: { oldest: Instant | undefined; pruned: bigint } = { oldest: undefined, pruned: 0n }
  const look = async () => {
    known.oldest = await selectOldest(db)
    known.pruned = await selectPruned(db)
    return false
  }
  const onError = (err: unknown) => log.warn({ err }, 'the oldest update could not be looked up')
  const looking = every({ clock: systemClock, intervalMs: REFRESH_MS, run: look, onError })
  parts.defer(() => looking.close())
  let pruning: Pruning | undefined
  const { ledger } = embedded
  const measured = measurePruning(around.registry.with(appLabels.participant), {
    oldest: () => known.oldest,
    nowMicros: () => ledger.clock.nowMicros(),
    pruned: () => known.pruned,
    isOpen: () => pruning?.state().isOpen ?? false,
  })
  if (schedule === undefined || following === undefined) return undefined

  const history: SafeOffset = { name: 'the history, which follows', offset: () => following.offset }
  pruning = startPruning({
    ledger,
    deduplicationMs: config.wallet.deduplicationMs,
    safeOffsets: [history, ...walletLog(options)],
    readCron,
    onBatch: measured.onBatch,
    onRun(run) {
      measured.onRun(run)
      looking.wake()
      const { isCut, failure } = run
      const told = { from: String(run.from), to: String(run.to), isCut, failure }
      if (run.to > run.from || failure !== undefined) log.info(told, 'pruned')
      else log.debug(told, 'nothing to prune')
    },
    onError(err) {
      measured.onFailure()
      log.warn({ err }, 'pruning failed and is tried again')
    },
  })
  const started = pruning
  parts.defer(() => started.close())
  return started
}

/** A wallet that goes on after a restart reads on from where its log stands. */
function walletLog({ config, appDb, participant }: OpenPruningOptions): SafeOffset[] {
  if (!config.wallet.enabled || config.wallet.participantUrl !== undefined) return []
  const { participantId, partyHint } = participant
  const place = { participantId, migrationId: config.migration.id }
  const operator = `${partyHint}::${participantId.slice(participantId.indexOf('::') + 2)}`
  const offset = () => selectLeastFollowed(appDb, place, operator)
  return [{ name: 'the log of the wallets', offset }]
}

function scheduleOf({ cron, maxDurationMs, retentionMs }: PruningConfig): PruningSchedule {
  return { cron: cron.text, maxDurationMs, retentionMs }
}

function readCron(text: string): Recurrence {
  const read = parseCron(text)
  if ('reason' in read)
    throw new Error(`The stored pruning schedule cannot be read: ${read.reason}.`)
  return read.value
}
