import type { Db } from '../db/db.ts'
import { microsOf } from '../values/instant.ts'
import type { PreparedUpdate } from './encode.ts'
import {
  FRAME_UPDATES,
  type FramedUpdate,
  readIndex,
  recordTimeAt,
  type SealedFrame,
  sealFrame,
  writeIndex,
} from './frame.ts'
import { type DirectoryEntry, insertFrames } from './frames-store.ts'
import {
  extendRanges,
  type HistoryState,
  moveState,
  type SynchronizerRange,
} from './history-store.ts'
import { findImportOfContract, insertImports } from './imports-store.ts'
import { insertKeys, type UpdateKey } from './keys-store.ts'
import { follows, printPosition } from './position.ts'
import { deleteTailBefore, insertTail, type TailRow } from './tail-store.ts'
import { createTail, type View } from './view.ts'

/** An update that does not follow the last one: the history only grows at its end. */
export class OutOfOrderError extends Error {
  override name = 'OutOfOrderError'
}

/** An import update of a contract that the migration already has: nobody could tell them apart. */
export class RepeatedContractError extends Error {
  override name = 'RepeatedContractError'
  readonly updateId: string
  constructor(updateId: string, contractId: string, otherId: string) {
    super(
      `update ${updateId} re-creates contract ${contractId}, which ${otherId} already does in its migration.`,
    )
    this.updateId = updateId
  }
}

/** Somebody else has appended to the same history since it was opened. */
export class SecondWriterError extends Error {
  override name = 'SecondWriterError'
}

/**
 * The one door into the history. Stores a batch whole or not at all, and resolves when it is
 * durable. Updates that complete a frame go into it at once; the rest wait in the tail.
 */
export async function appendBatch(db: Db, view: View, batch: PreparedUpdate[]): Promise<View> {
  checkOrder(view.last, batch)
  numberOffsets(view.lastOffset, batch)
  const ordinary = batch.filter((update) => update.importedContractId === undefined)
  const imports = batch.filter((update) => update.importedContractId !== undefined)
  const { frames, rest, isTailKept } = await arrange(view, ordinary)
  const last = batch.at(-1) as PreparedUpdate
  const state: HistoryState = {
    updates: view.updates + ordinary.length,
    frames: view.frames + frames.length,
    imports: view.imports + imports.length,
    lastOffset: view.lastOffset + BigInt(batch.length),
    last: { migrationId: last.migrationId, recordTime: last.recordTime, updateId: last.updateId },
  }
  const work = db.transaction(async (tx) => {
    if (!(await moveState(tx, view, state))) {
      throw new SecondWriterError(
        'Another process has appended to this history. A history has one writer: stop one of them.',
      )
    }
    if (frames.length > 0) {
      await insertFrames(tx, frames)
      await deleteTailBefore(tx, state.frames * FRAME_UPDATES)
    }
    const newRows = isTailKept ? rest.slice(view.tail.rows.length) : rest
    if (newRows.length > 0) await insertTail(tx, state.updates - newRows.length, newRows)
    if (ordinary.length > 0) {
      await insertKeys(tx, keysOf(ordinary, view.updates))
      await extendRanges(tx, rangesOf(ordinary))
    }
    if (imports.length > 0) {
      await insertImports(
        tx,
        imports.map((update) => ({
          ...rowOf(update),
          migrationId: update.migrationId,
          updateId: update.updateId,
          contractId: update.importedContractId as string,
        })),
      )
    }
  })
  try {
    await work
  } catch (error) {
    const isRefused = (error as Error).name === 'SqlError'
    throw (isRefused ? await findRepeatedContract(db, imports) : undefined) ?? error
  }
  for (const frame of frames) view.directory.push(frame)
  return { ...state, directory: view.directory, tail: createTail(rest) }
}

function checkOrder(last: HistoryState['last'], batch: PreparedUpdate[]): void {
  let previous = last
  for (const update of batch) {
    if (previous !== undefined && !follows(update, previous)) {
      throw new OutOfOrderError(
        `Update ${update.updateId} at ${printPosition(update)} does not come after ${printPosition(previous)}.`,
      )
    }
    previous = update
  }
}

/** Looked for only when a batch could not be stored, to say why. */
async function findRepeatedContract(
  db: Db,
  imports: PreparedUpdate[],
): Promise<RepeatedContractError | undefined> {
  const inBatch = new Map<string, string>()
  for (const { migrationId, updateId, importedContractId } of imports) {
    const contractId = importedContractId as string
    const other =
      inBatch.get(`${migrationId} ${contractId}`) ??
      (await findImportOfContract(db, migrationId, contractId))
    if (other !== undefined) return new RepeatedContractError(updateId, contractId, other)
    inBatch.set(`${migrationId} ${contractId}`, updateId)
  }
  return undefined
}

/** Offsets are eighteen hex digits, so the encoded updates have a place of fixed width for them. */
function numberOffsets(lastOffset: bigint, batch: PreparedUpdate[]): void {
  let offset = lastOffset
  for (const update of batch) {
    offset += 1n
    const digits = Buffer.from(offset.toString(16).padStart(18, '0'), 'latin1')
    update.compact.set(digits, update.offsetAt)
    update.protobuf.set(digits, update.offsetAt)
  }
}

/** Each is compressed on two threads, and the pool has four. More at once only take more memory. */
const FRAMES_AT_ONCE = 2

type NewFrame = SealedFrame & DirectoryEntry
type Arranged = { frames: NewFrame[]; rest: TailRow[]; isTailKept: boolean }

/** Puts the tail and the new updates together: full frames, and a rest that becomes the tail. */
async function arrange(view: View, updates: PreparedUpdate[]): Promise<Arranged> {
  const old = view.tail.rows.length
  if (old + updates.length < FRAME_UPDATES) {
    return { frames: [], rest: [...view.tail.rows, ...updates.map(rowOf)], isTailKept: true }
  }
  const all: FramedUpdate[] = [...view.tail.rows.map(framedFromRow), ...updates]
  const full = Math.floor(all.length / FRAME_UPDATES)
  const frames: NewFrame[] = []
  for (let n = 0; n < full; n += FRAMES_AT_ONCE) {
    const numbers = Array.from({ length: Math.min(FRAMES_AT_ONCE, full - n) }, (_, k) => n + k)
    frames.push(...(await Promise.all(numbers.map((k) => sealNew(view.frames + k, all, k)))))
  }
  const rest = updates.slice(full * FRAME_UPDATES - old).map(rowOf)
  return { frames, rest, isTailKept: false }
}

async function sealNew(number: number, all: FramedUpdate[], group: number): Promise<NewFrame> {
  const updates = all.slice(group * FRAME_UPDATES, (group + 1) * FRAME_UPDATES)
  const [first] = updates as [FramedUpdate]
  const { migrationId } = first
  return { ...(await sealFrame(updates)), number, migrationId, micros: microsOf(first.recordTime) }
}

function rowOf(update: FramedUpdate): TailRow {
  return { entry: writeIndex([update]), compact: update.compact, protobuf: update.protobuf }
}

function framedFromRow(row: TailRow): FramedUpdate {
  const index = readIndex([{ bytes: row.entry, count: 1 }])
  return {
    migrationId: index.migrationIds[0] as bigint,
    recordTime: recordTimeAt(index, 0),
    kind: index.isReassignment[0] === 1 ? 'reassignment' : 'transaction',
    derived: index.derived[0] === 1,
    eventCount: index.eventCounts[0] as number,
    nodeIds: index.nodeIds[0],
    compact: row.compact,
    protobuf: row.protobuf,
  }
}

function keysOf(updates: PreparedUpdate[], firstOrdinal: number) {
  const keys: { key: UpdateKey; ordinal: number }[] = []
  updates.forEach((update, i) => {
    // Only transactions can be looked up, as on deployed scans.
    if (update.kind === 'reassignment') return
    const ordinal = firstOrdinal + i
    keys.push({ key: { kind: 'id', text: update.updateId }, ordinal })
    if (update.externalHash !== undefined) {
      keys.push({ key: { kind: 'hash', text: update.externalHash }, ordinal })
    }
  })
  return keys
}

function rangesOf(updates: PreparedUpdate[]): SynchronizerRange[] {
  const ranges = new Map<string, SynchronizerRange>()
  for (const { migrationId, synchronizerId, recordTime } of updates) {
    const key = `${migrationId} ${synchronizerId}`
    const known = ranges.get(key)
    if (known === undefined) {
      ranges.set(key, { migrationId, synchronizerId, first: recordTime, last: recordTime })
    } else {
      known.last = recordTime
    }
  }
  return [...ranges.values()]
}
