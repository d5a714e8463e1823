import assert from 'node:assert/strict'
import type { Instant } from '../values/instant.ts'
import { isObject, parseJsonExactly } from '../values/json.ts'
import { printLossless } from './encode.ts'
import { FRAME_UPDATES } from './frame.ts'
import type { History } from './history.ts'
import { readRanges, type SynchronizerRange } from './history-store.ts'
import { importMigrations, lastImportedContract, readImportsByContract } from './imports-store.ts'
import { findOrdinal, readEach } from './pages.ts'
import { IMPORT_RECORD_TIME, justBefore } from './position.ts'
import { OFFSET_PLACEHOLDER, readItem } from './update.ts'

/** What another node asks when it fills its own history backwards. */
export type MigrationInfo = {
  previousMigrationId: bigint | undefined
  ranges: SynchronizerRange[]
  lastImportUpdateId: string | undefined
}

/** Undefined when the migration has no ordinary updates. */
export async function readMigrationInfo(
  history: History,
  migrationId: bigint,
): Promise<MigrationInfo | undefined> {
  const all = await readRanges(history.db)
  const ranges = all.filter((range) => range.migrationId === migrationId)
  if (ranges.length === 0) return undefined
  const known = [...all.map((range) => range.migrationId), ...(await importMigrations(history.db))]
  const previous = known.filter((id) => id < migrationId).sort((a, b) => (a < b ? 1 : -1))
  return {
    previousMigrationId: previous[0],
    ranges,
    lastImportUpdateId: await lastImportedContract(history.db, migrationId),
  }
}

export type UpdatesBefore = {
  migrationId: bigint
  synchronizerId: string
  before: Instant
  atOrAfter: Instant | undefined
  count: number
}

/** Updates of one synchronizer before a time, newest first, in the lossless form of v1. */
export async function* readUpdatesBefore(
  history: History,
  request: UpdatesBefore,
): AsyncGenerator<Buffer> {
  const { migrationId } = request
  const form = { version: 1, encoding: 'protobuf_json' } as const
  const source = { cache: history.cache, view: await history.latestView() }
  const earliest = request.atOrAfter ?? IMPORT_RECORD_TIME
  const from = await findOrdinal(source, {
    ...form,
    after: justBefore({ migrationId, recordTime: earliest }),
  })
  let end = await findOrdinal(source, {
    ...form,
    after: justBefore({ migrationId, recordTime: request.before }),
  })
  let remaining = request.count
  while (end > from && remaining > 0) {
    const start = Math.max(from, Math.floor((end - 1) / FRAME_UPDATES) * FRAME_UPDATES)
    for await (const updates of readEach(source, form, start, end)) {
      const wanted = updates
        .reverse()
        .map((update) => update.bytes)
        .filter((bytes) => isOfSynchronizer(bytes, request.synchronizerId))
        .slice(0, remaining)
      remaining -= wanted.length
      yield* wanted
    }
    end = start
  }
}

function isOfSynchronizer(update: Buffer, synchronizerId: string): boolean {
  return readItem(parseJsonExactly(update.toString())).synchronizerId === synchronizerId
}

/**
 * Import updates of a migration in the order of their contracts. Nodes number these updates each in
 * their own way, so they are rewritten to be equal everywhere: named after the contract.
 */
export async function readImportUpdates(
  history: History,
  request: { migrationId: bigint; afterUpdateId: string; limit: number },
): Promise<string[]> {
  const { migrationId, afterUpdateId, limit } = request
  const rows = await readImportsByContract(history.db, migrationId, afterUpdateId, limit)
  return rows.map((row) => nameAfterContract(Buffer.from(row.protobuf).toString(), row.contractId))
}

function nameAfterContract(text: string, contractId: string): string {
  const item = parseJsonExactly(text)
  assert.ok(isObject(item) && isObject(item.events_by_id), 'an import update is a transaction')
  const eventId = `${contractId}:0`
  const [event] = Object.values(item.events_by_id)
  assert.ok(isObject(event), 'an import update has one event')
  const renamed = printLossless({
    ...item,
    update_id: contractId,
    workflow_id: `canton-network-acs-import-${contractId}`,
    root_event_ids: [eventId],
    events_by_id: { [eventId]: { ...event, event_id: eventId } },
    external_transaction_hash: null,
  })
  return renamed.replace(`"offset":"${OFFSET_PLACEHOLDER}"`, '"offset":"000000000000000001"')
}
