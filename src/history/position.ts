import {
  INSTANT_MAX,
  INSTANT_MIN,
  type Instant,
  instantFromMicros,
  microsOf,
} from '../values/instant.ts'

/** A place in the history: updates are ordered by migration id, then by record time. */
export type Position = { migrationId: bigint; recordTime: Instant }

/** Updates that re-create the active contracts of a migration carry this record time. */
export const IMPORT_RECORD_TIME = INSTANT_MIN

export function comparePositions(a: Position, b: Position): number {
  if (a.migrationId !== b.migrationId) return a.migrationId < b.migrationId ? -1 : 1
  if (a.recordTime === b.recordTime) return 0
  return a.recordTime < b.recordTime ? -1 : 1
}

/** Import updates share one position and are ordered by their ids, as the database orders text. */
export function follows(
  update: Position & { updateId: string; importedContractId: string | undefined },
  previous: Position & { updateId: string },
): boolean {
  const order = comparePositions(update, previous)
  if (order !== 0 || update.importedContractId === undefined) return order > 0
  return Buffer.compare(Buffer.from(update.updateId), Buffer.from(previous.updateId)) > 0
}

export function printPosition(position: Position): string {
  return `${position.migrationId},${position.recordTime}`
}

/** A position that everything at or after the given one comes after. */
export function justBefore({ migrationId, recordTime }: Position): Position {
  const previous = instantFromMicros(microsOf(recordTime) - 1n)
  return previous === undefined
    ? { migrationId: migrationId - 1n, recordTime: INSTANT_MAX }
    : { migrationId, recordTime: previous }
}
