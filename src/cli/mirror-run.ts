import { openSqlite } from '../db/sqlite.ts'
import { printPosition } from '../history/position.ts'
import { fillBackwards } from '../mirror/backfill.ts'
import type { Dissent } from '../mirror/dissent.ts'
import { insertDissent } from '../mirror/dissent-store.ts'
import { type SyncState, startSync } from '../mirror/sync.ts'
import { readTip } from '../mirror/tip.ts'
import { type Instant, microsOf } from '../values/instant.ts'
import type { ConfigurationArguments } from './configuration.ts'
import { type CliContext, CommandError, EXIT, printNumber } from './output.ts'
import { startProgress } from './progress.ts'
import { findScans } from './scans.ts'
import { type OfflineStore, openOfflineStore } from './store.ts'

export type MirrorArguments = ConfigurationArguments & {
  from?: string[]
  until?: Instant
  discovery: boolean
  json: boolean
}

/** Without progress for so long a one-off copy gives up and says why. */
const GIVE_UP_MS = 30_000
const WATCH_MS = 250
/** The end of the network's history moves on; it is asked for this often. */
const TIP_MS = 10_000

/** `annals mirror`: a one-off copy. */
export async function runMirror(args: MirrorArguments, context: CliContext): Promise<number> {
  const { terminal } = context
  if (args.from === undefined) {
    throw new CommandError(
      'Name the scans to copy from, such as --from https://scan.sv-1.example.net; annals mirror status tells about a running mirror.',
      EXIT.usage,
    )
  }
  const { peers, close } = await findScans(args.from, { isDiscovering: args.discovery })
  await using parts = new AsyncDisposableStack()
  parts.defer(close)
  const store = await openOfflineStore(args, context, { create: true })
  parts.use(store)
  const { history, pool } = store
  let noting: Promise<unknown> = Promise.resolve()
  let dissents = 0
  const onDissent = (dissent: Dissent) => {
    dissents += 1
    noting = noting.then(() => insertDissent(history.db, dissent, Date.now())).catch(() => {})
  }
  const progress = startProgress(terminal, { json: args.json, name: 'mirror' })
  const range = createRange(store, { until: args.until, tip: (id) => readTip(peers, id) })
  const sync = startSync({
    history,
    pool,
    peers,
    onDissent,
    until: args.until,
    fillBackwards: (signal) =>
      fillBackwards({
        history,
        pool,
        peers,
        directory: store.dataDirectory,
        openDb: (path) => openSqlite({ path }),
        migrationId: 0n,
        until: args.until,
        signal,
      }),
    isOneOff: true,
    onChange: (state) => progress.report(reportOf(state)),
  })
  try {
    await waitForEnd(sync.done, () => sync.state())
  } finally {
    progress.end()
    await sync.close()
    await noting
  }
  const { updates } = sync.state()
  const last = history.view.last
  if (args.json) {
    const position = last && { migrationId: String(last.migrationId), recordTime: last.recordTime }
    terminal.stdout.write(
      `${JSON.stringify({ event: 'mirrored', copied: updates, updates: history.view.updates, dissents, last: position ?? null })}\n`,
    )
  } else {
    const end =
      last === undefined ? 'The history is empty.' : `The history ends at ${printPosition(last)}.`
    const contradicted =
      dissents === 0 ? '' : ` ${printNumber(dissents)} answers were contradicted by other scans.`
    terminal.stdout.write(`Copied ${printNumber(updates)} updates. ${end}${contradicted}\n`)
  }
  return EXIT.ok

  function reportOf(state: SyncState) {
    const { known } = peers.sizes()
    const { last: newest } = history.view
    const at = newest === undefined ? 'at the beginning' : `at ${printPosition(newest)}`
    const agreement = state.stalled ?? `${state.agreeing} of ${known} scans agree`
    return { ...range(), updates: state.updates, note: `${at}, ${agreement}` }
  }
}

/** How much of the time between the first update and the end is copied. */
function createRange(
  { history }: OfflineStore,
  options: { until: Instant | undefined; tip(migrationId: bigint): Promise<Instant | undefined> },
): () => { total: number | undefined; done: number } {
  let first: bigint | undefined
  let tip = options.until
  let askedAt = Number.NEGATIVE_INFINITY
  return () => {
    const { last } = history.view
    if (last === undefined) return { total: undefined, done: 0 }
    if (options.until === undefined && performance.now() - askedAt > TIP_MS) {
      askedAt = performance.now()
      options.tip(last.migrationId).then(
        (found) => {
          tip = found ?? tip
        },
        () => {},
      )
    }
    const now = microsOf(last.recordTime)
    first ??= now
    if (tip === undefined) return { total: undefined, done: 0 }
    const total = Math.max(0, Number((microsOf(tip) - first) / 1000n))
    return { total, done: Math.min(total, Number((now - first) / 1000n)) }
  }
}

/** Resolves with the copying; rejects when it has made no progress for too long. */
async function waitForEnd(done: Promise<void>, state: () => SyncState): Promise<void> {
  let updates = -1
  let movedAt = performance.now()
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setInterval(() => {
    const now = state()
    if (now.updates !== updates || now.stalled === undefined) {
      updates = now.updates
      movedAt = performance.now()
    } else if (performance.now() - movedAt > GIVE_UP_MS) {
      reject(
        new CommandError(
          `Nothing could be copied for ${GIVE_UP_MS / 1000} seconds: ${now.stalled} What was copied before is stored; run the same command again.`,
        ),
      )
    }
  }, WATCH_MS)
  try {
    await Promise.race([done, promise])
  } finally {
    clearInterval(timer)
  }
}
