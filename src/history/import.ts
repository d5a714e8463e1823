import { RepeatedContractError } from './append.ts'
import type { PreparedUpdate } from './encode.ts'
import { recordTimeAt } from './frame.ts'
import type { History } from './history.ts'
import { ImportError } from './import-error.ts'
import { findImport } from './imports-store.ts'
import { findOrdinal, readEach } from './pages.ts'
import { follows, type Position, printPosition } from './position.ts'
import { type PreparePool, prepareInOrder } from './prepare-pool.ts'
import type { LineUpdate } from './prepare-worker.ts'

export type ImportProgress = { stored: number; skipped: number; last: Position | undefined }

/** Updates stored in one transaction: forty frames, about 20 MB in memory. */
const BATCH_UPDATES = 1000

/**
 * Appends the updates of NDJSON lines. What is stored already is compared and skipped, so an
 * interrupted import is simply run again. Preparing, compressing and storing overlap.
 */
export async function importLines(
  history: History,
  options: {
    source: AsyncIterable<Uint8Array>
    pool: PreparePool
    onProgress?: (progress: ImportProgress) => void
  },
): Promise<ImportProgress> {
  const progress: ImportProgress = { stored: 0, skipped: 0, last: history.view.last }
  let previous: (Position & { updateId: string }) | undefined = history.view.last
  let batch: LineUpdate[] = []
  let storing: Promise<void> = Promise.resolve()

  async function store(): Promise<void> {
    // One batch is being stored while the next is filled.
    await storing
    const full = batch
    batch = []
    storing = history.append(full).then(
      () => {
        progress.stored += full.length
        options.onProgress?.(progress)
      },
      (error) => {
        throw explainRepeat(error, full)
      },
    )
    // Whoever waits for the next batch sees the failure.
    storing.catch(() => {})
  }

  async function take(update: LineUpdate): Promise<void> {
    if (previous === undefined || follows(update, previous)) {
      batch.push(update)
      previous = update
      progress.last = { migrationId: update.migrationId, recordTime: update.recordTime }
      if (batch.length >= BATCH_UPDATES) await store()
      return
    }
    if (batch.length > 0) await store()
    await storing
    await compareWithStored(history, update)
    progress.skipped += 1
    options.onProgress?.(progress)
  }

  for await (const { updates, refusal } of prepareInOrder(options.pool, options.source)) {
    for (const update of updates) await take(update)
    if (refusal !== undefined) {
      await storing
      throw new ImportError(refusal.line, refusal.reason)
    }
  }
  if (batch.length > 0) await store()
  await storing
  return progress
}

function explainRepeat(error: unknown, batch: LineUpdate[]): unknown {
  if (!(error instanceof RepeatedContractError)) return error
  const line = batch.find(({ updateId }) => updateId === error.updateId)?.line ?? 0
  return new ImportError(line, error.message)
}

async function compareWithStored(history: History, update: LineUpdate): Promise<void> {
  const stored = await findStored(history, update)
  if (stored === undefined) {
    throw new ImportError(
      update.line,
      `update ${update.updateId} at ${printPosition(update)} is out of order: the history already reaches ${printPosition(history.view.last as Position)} and holds nothing there. Sort the input with --sort, or import it into an empty history.`,
    )
  }
  for (const form of ['protobuf', 'compact'] as const) {
    const there = Buffer.from(stored[form])
    // The offset is this node's own affair.
    update[form].set(there.subarray(update.offsetAt, update.offsetAt + 18), update.offsetAt)
    if (!there.equals(update[form])) {
      throw new ImportError(
        update.line,
        `update ${update.updateId} at ${printPosition(update)} differs from what is stored there.\n  stored: ${there}\n  given:  ${Buffer.from(update[form])}`,
      )
    }
  }
}

async function findStored(
  history: History,
  update: PreparedUpdate,
): Promise<{ compact: Uint8Array; protobuf: Uint8Array } | undefined> {
  if (update.importedContractId !== undefined) {
    return findImport(history.db, update.migrationId, update.updateId)
  }
  const source = { cache: history.cache, view: history.view }
  const end = await findOrdinal(source, { version: 1, encoding: 'protobuf_json', after: update })
  if (end === 0) return undefined
  const [protobuf, compact] = await Promise.all(
    (['protobuf_json', 'compact_json'] as const).map(async (encoding) => {
      for await (const [found] of readEach(source, { version: 1, encoding }, end - 1, end))
        return found
      return undefined
    }),
  )
  if (protobuf === undefined || compact === undefined) return undefined
  const { index, entry } = protobuf
  const isThere =
    index.migrationIds[entry] === update.migrationId &&
    recordTimeAt(index, entry) === update.recordTime
  return isThere ? { compact: compact.bytes, protobuf: protobuf.bytes } : undefined
}
