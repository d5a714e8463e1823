import assert from 'node:assert/strict'
import type { PreparedUpdate } from './encode.ts'
import { exportLines } from './export.ts'
import { checksumOf, FRAME_UPDATES, readIndex, recordTimeAt } from './frame.ts'
import { readWholeFrame } from './frames-store.ts'
import type { History } from './history.ts'
import { readRanges, readState } from './history-store.ts'
import { countImports, findImport } from './imports-store.ts'
import { findOrdinals, type UpdateKey } from './keys-store.ts'
import { type EachUpdate, readEach } from './pages.ts'
import { comparePositions, type Position, printPosition } from './position.ts'
import { type PreparePool, prepareInOrder } from './prepare-pool.ts'

/** Something in the store that is not as it must be. */
export class FaultError extends Error {
  override name = 'FaultError'
}

export type VerifyProgress = { checked: number; total: number; last: Position | undefined }

/**
 * Checks a stored history completely: every frame's checksum and place in the directory; the
 * structure, order and offset of every update; that both encodings are what a fresh encoding of the
 * update yields; that every update can be looked up; and the counts. Throws the first fault.
 */
export async function verifyHistory(
  history: History,
  options: { pool: PreparePool; onProgress?: (progress: VerifyProgress) => void },
): Promise<VerifyProgress> {
  const { view } = history
  const progress: VerifyProgress = {
    checked: 0,
    total: view.updates + view.imports,
    last: undefined,
  }
  try {
    await verifyUpdates(history, progress, options)
  } catch (error) {
    if (!isDamage(error)) throw error
    const at = progress.last === undefined ? 'the beginning' : printPosition(progress.last)
    throw new FaultError(`What is stored after ${at} cannot be read: ${(error as Error).message}.`)
  }
  return progress
}

/** Bytes that are not what they were make the code that reads them stumble in these ways. */
function isDamage(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return (
    error instanceof assert.AssertionError ||
    error instanceof RangeError ||
    code?.startsWith('ZSTD_') === true
  )
}

async function verifyUpdates(
  history: History,
  progress: VerifyProgress,
  options: { pool: PreparePool; onProgress?: (progress: VerifyProgress) => void },
): Promise<void> {
  const { view } = history
  for (let number = 0; number < view.frames; number += 1) await verifyFrame(history, number)
  // Encodes the whole history anew, on the pool's threads.
  const lines = exportLines(history, { from: undefined, to: undefined })
  const stored = storedUpdates(history)
  const ranges = new Map<string, { first: string; last: string }>()
  let ordinal = 0
  let lastOffset = ''
  for await (const { updates, refusal } of prepareInOrder(options.pool, lines)) {
    for (const update of updates) {
      verifyOrder(progress.last, update)
      if (update.importedContractId === undefined) {
        const there = (await stored.next()).value
        assert.ok(there !== undefined, 'an exported update is stored')
        verifyBytes(update, there)
        lastOffset = verifyOffset(
          update,
          { protobuf: there.protobuf.bytes, compact: there.compact.bytes },
          lastOffset,
        )
        await verifyKeys(history, update, ordinal)
        extendRange(ranges, update)
        ordinal += 1
      } else {
        lastOffset = await verifyImport(history, update, lastOffset)
      }
      progress.checked += 1
      progress.last = { migrationId: update.migrationId, recordTime: update.recordTime }
    }
    if (refusal !== undefined) {
      const at = progress.last === undefined ? 'the beginning' : printPosition(progress.last)
      throw new FaultError(`The update after ${at} is not valid: ${refusal.reason}`)
    }
    options.onProgress?.(progress)
  }
  await verifyCounts(history, progress, { ranges, lastOffset })
}

async function verifyFrame(history: History, number: number): Promise<void> {
  const frame = await readWholeFrame(history.db, number)
  const name = `Frame ${number} (updates ${number * FRAME_UPDATES} to ${(number + 1) * FRAME_UPDATES - 1})`
  if (frame === undefined) throw new FaultError(`${name} is missing.`)
  if (checksumOf(frame) !== frame.checksum) {
    throw new FaultError(
      `${name} does not have its checksum: its bytes have changed since they were stored.`,
    )
  }
  const index = readIndex([{ bytes: frame.index, count: FRAME_UPDATES }])
  if (index.migrationIds[0] !== frame.migrationId || index.micros[0] !== frame.micros) {
    throw new FaultError(`${name} starts at another position than the directory says.`)
  }
}

type StoredUpdate = { protobuf: EachUpdate; compact: EachUpdate }

async function* storedUpdates(history: History): AsyncGenerator<StoredUpdate, undefined> {
  const source = { cache: history.cache, view: history.view }
  const end = source.view.updates
  const compact = readEach(source, { version: 1, encoding: 'compact_json' }, 0, end)
  for await (const updates of readEach(source, { version: 1, encoding: 'protobuf_json' }, 0, end)) {
    const compactUpdates = (await compact.next()).value as EachUpdate[]
    for (let i = 0; i < updates.length; i += 1) {
      yield { protobuf: updates[i] as EachUpdate, compact: compactUpdates[i] as EachUpdate }
    }
  }
  return undefined
}

function verifyOrder(last: Position | undefined, update: PreparedUpdate): void {
  if (last === undefined) return
  const order = comparePositions(update, last)
  if (order < 0 || (order === 0 && update.importedContractId === undefined)) {
    throw new FaultError(`${nameOf(update)} does not come after ${printPosition(last)}.`)
  }
}

function verifyBytes(update: PreparedUpdate, there: StoredUpdate): void {
  const { index, entry } = there.protobuf
  const position = {
    migrationId: index.migrationIds[entry] as bigint,
    recordTime: recordTimeAt(index, entry),
  }
  if (comparePositions(position, update) !== 0) {
    throw new FaultError(`${nameOf(update)} stands in the index at ${printPosition(position)}.`)
  }
  for (const form of ['protobuf', 'compact'] as const) {
    compareBytes(update, form, there[form].bytes)
  }
}

function compareBytes(update: PreparedUpdate, form: 'protobuf' | 'compact', there: Buffer): void {
  update[form].set(there.subarray(update.offsetAt, update.offsetAt + 18), update.offsetAt)
  if (there.equals(update[form])) return
  throw new FaultError(
    `${nameOf(update)} is not stored as it must be in the ${form === 'compact' ? 'compact' : 'lossless'} form.\n  stored:   ${there}\n  expected: ${Buffer.from(update[form])}`,
  )
}

function verifyOffset(
  update: PreparedUpdate,
  there: { protobuf: Buffer; compact: Buffer },
  last: string,
): string {
  const offsetOf = (bytes: Buffer) =>
    bytes.toString('latin1', update.offsetAt, update.offsetAt + 18)
  const offset = offsetOf(there.protobuf)
  if (!/^[0-9a-f]{18}$/.test(offset) || offset <= last) {
    throw new FaultError(
      `${nameOf(update)} has the offset ${offset}, which does not come after ${last}.`,
    )
  }
  if (offsetOf(there.compact) !== offset) {
    throw new FaultError(`${nameOf(update)} has another offset in each form.`)
  }
  return offset
}

async function verifyImport(
  history: History,
  update: PreparedUpdate,
  lastOffset: string,
): Promise<string> {
  const row = await findImport(history.db, update.migrationId, update.updateId)
  if (row === undefined) throw new FaultError(`${nameOf(update)} is missing.`)
  const there = { protobuf: Buffer.from(row.protobuf), compact: Buffer.from(row.compact) }
  compareBytes(update, 'protobuf', there.protobuf)
  compareBytes(update, 'compact', there.compact)
  return verifyOffset(update, there, lastOffset)
}

async function verifyKeys(
  history: History,
  update: PreparedUpdate,
  ordinal: number,
): Promise<void> {
  if (update.kind === 'reassignment') return
  const keys: UpdateKey[] = [{ kind: 'id', text: update.updateId }]
  if (update.externalHash !== undefined) keys.push({ kind: 'hash', text: update.externalHash })
  for (const key of keys) {
    if (!(await findOrdinals(history.db, key)).includes(ordinal)) {
      throw new FaultError(`${nameOf(update)} cannot be looked up by its ${key.kind}.`)
    }
  }
}

function extendRange(
  ranges: Map<string, { first: string; last: string }>,
  update: PreparedUpdate,
): void {
  const key = `${update.migrationId} ${update.synchronizerId}`
  const known = ranges.get(key)
  ranges.set(key, { first: known?.first ?? update.recordTime, last: update.recordTime })
}

async function verifyCounts(
  history: History,
  progress: VerifyProgress,
  found: { ranges: Map<string, { first: string; last: string }>; lastOffset: string },
): Promise<void> {
  const { ranges } = found
  const state = await readState(history.db)
  if (progress.checked !== state.updates + state.imports) {
    throw new FaultError(
      `The history says that it has ${state.updates + state.imports} updates, but holds ${progress.checked}.`,
    )
  }
  const imports = await countImports(history.db)
  if (imports !== state.imports) {
    throw new FaultError(
      `The history says that it has ${state.imports} import updates, but holds ${imports}.`,
    )
  }
  if (state.lastOffset !== BigInt(`0x${found.lastOffset || '0'}`)) {
    throw new FaultError(
      `The history says that its last offset is ${state.lastOffset.toString(16)}, but it is ${found.lastOffset || 'none'}.`,
    )
  }
  if (
    state.last !== undefined &&
    progress.last !== undefined &&
    comparePositions(state.last, progress.last) !== 0
  ) {
    throw new FaultError(
      `The history says that it ends at ${printPosition(state.last)}, but ends at ${printPosition(progress.last)}.`,
    )
  }
  const stored = await readRanges(history.db)
  for (const range of stored) {
    const found = ranges.get(`${range.migrationId} ${range.synchronizerId}`)
    if (found?.first !== range.first || found.last !== range.last) {
      throw new FaultError(
        `The recorded times of synchronizer ${range.synchronizerId} in migration ${range.migrationId} are not those of its updates.`,
      )
    }
  }
  if (stored.length !== ranges.size)
    throw new FaultError('A synchronizer of the history is not recorded.')
}

function nameOf(update: PreparedUpdate): string {
  return `Update ${update.updateId} at ${printPosition(update)}`
}
