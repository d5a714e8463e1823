import assert from 'node:assert/strict'
import zlib from 'node:zlib'
import { compressZstd } from '../base/zstd.ts'
import { type Instant, instantFromMicros, microsOf } from '../values/instant.ts'
import type { Encoding, PreparedUpdate } from './encode.ts'

/**
 * A frame is 25 consecutive updates of the history, compressed. Frames are aligned by count, so that
 * readers who scan with the usual page sizes (multiples of 25) get whole frames. The lossless form
 * repeats nearly all of the compact one, so it is compressed with that as its dictionary: a third of
 * the size, for one more decompression when it is read.
 * Its index has an entry for every update: position, where its bytes start in each form, and flags;
 * behind the entries stand the event numbers of those updates whose source had its own.
 */
export const FRAME_UPDATES = 25

/** The entries of a frame or of the tail, held as arrays so that a search touches no objects. */
export type FrameIndex = {
  count: number
  migrationIds: BigInt64Array
  micros: BigInt64Array
  /** One more than there are updates; an update ends one byte (a comma) before the next starts. */
  starts: Record<Encoding, Uint32Array>
  eventCounts: Uint32Array
  isReassignment: Uint8Array
  derived: Uint8Array
  nodeIds: (number[] | undefined)[]
}

export type SealedFrame = {
  index: Uint8Array
  compact: Uint8Array
  protobuf: Uint8Array
  checksum: number
}

const ENTRY_BYTES = 32
const FLAG_REASSIGNMENT = 1
const FLAG_DERIVED = 2
const FLAG_NODE_IDS = 4

/** On ledger data as small as level 3, in half the time; the larger table covers the dictionary. */
const ZSTD_PARAMS = {
  [zlib.constants.ZSTD_c_compressionLevel]: 1,
  [zlib.constants.ZSTD_c_strategy]: zlib.constants.ZSTD_dfast,
  [zlib.constants.ZSTD_c_hashLog]: 17,
}
/** A comma joins the updates, so that a run of them is ready to stand in a JSON array. */
const COMMA = Buffer.from(',')

/** What a frame keeps of an update. */
export type FramedUpdate = Pick<
  PreparedUpdate,
  | 'migrationId'
  | 'recordTime'
  | 'kind'
  | 'derived'
  | 'eventCount'
  | 'nodeIds'
  | 'compact'
  | 'protobuf'
>

export async function sealFrame(updates: FramedUpdate[]): Promise<SealedFrame> {
  const index = writeIndex(updates)
  const compactRaw = joinWithCommas(updates.map((update) => update.compact))
  const protobufRaw = joinWithCommas(updates.map((update) => update.protobuf))
  // On threads of the pool: sealing must not hold up readers.
  const [compact, protobuf] = await Promise.all([
    compressZstd(compactRaw, { params: ZSTD_PARAMS }),
    compressZstd(protobufRaw, { params: ZSTD_PARAMS, dictionary: compactRaw }),
  ])
  return { index, compact, protobuf, checksum: checksumOf({ index, compact, protobuf }) }
}

/** The joined updates of a form. The lossless one needs both columns. */
export function openFrame(
  frame: Pick<SealedFrame, 'compact'> & Partial<SealedFrame>,
  index: FrameIndex,
  encoding: Encoding,
): Buffer {
  const compact = decompress(frame.compact, rawLength(index, 'compact_json'), undefined)
  if (encoding === 'compact_json') return compact
  assert.ok(frame.protobuf !== undefined, 'the lossless form was read from the store')
  return decompress(frame.protobuf, rawLength(index, 'protobuf_json'), compact)
}

export function checksumOf(frame: Omit<SealedFrame, 'checksum'>): number {
  return zlib.crc32(frame.protobuf, zlib.crc32(frame.compact, zlib.crc32(frame.index)))
}

function decompress(bytes: Uint8Array, length: number, dictionary: Buffer | undefined): Buffer {
  // A chunk size of the whole result saves zlib from growing its output step by step; a byte more,
  // because it makes ready another chunk when one is full.
  const size = Math.max(length + 1, 64)
  const limits = { chunkSize: size, maxOutputLength: size }
  const raw = zlib.zstdDecompressSync(bytes, dictionary ? { ...limits, dictionary } : limits)
  assert.equal(raw.length, length, 'a frame has the length its index says')
  return raw
}

export function joinWithCommas(parts: Uint8Array[]): Buffer {
  const pieces: Uint8Array[] = []
  for (const part of parts) {
    if (pieces.length > 0) pieces.push(COMMA)
    pieces.push(part)
  }
  return Buffer.concat(pieces)
}

export function writeIndex(updates: FramedUpdate[]): Buffer {
  const nodeIds = updates.flatMap((update) => update.nodeIds ?? [])
  const bytes = Buffer.alloc(updates.length * ENTRY_BYTES + nodeIds.length * 4)
  let at = 0
  for (const update of updates) {
    at = bytes.writeBigInt64LE(update.migrationId, at)
    at = bytes.writeBigInt64LE(microsOf(update.recordTime), at)
    at = bytes.writeUInt32LE(update.compact.length, at)
    at = bytes.writeUInt32LE(update.protobuf.length, at)
    at = bytes.writeUInt32LE(update.eventCount, at)
    at = bytes.writeUInt32LE(
      (update.kind === 'reassignment' ? FLAG_REASSIGNMENT : 0) |
        (update.derived ? FLAG_DERIVED : 0) |
        (update.nodeIds === undefined ? 0 : FLAG_NODE_IDS),
      at,
    )
  }
  for (const nodeId of nodeIds) at = bytes.writeUInt32LE(nodeId, at)
  return bytes
}

/** Reads the index of a frame, or several indexes of single updates (the tail's rows) as one. */
export function readIndex(parts: { bytes: Uint8Array; count: number }[]): FrameIndex {
  const count = parts.reduce((sum, part) => sum + part.count, 0)
  const index: FrameIndex = {
    count,
    migrationIds: new BigInt64Array(count),
    micros: new BigInt64Array(count),
    starts: { compact_json: new Uint32Array(count + 1), protobuf_json: new Uint32Array(count + 1) },
    eventCounts: new Uint32Array(count),
    isReassignment: new Uint8Array(count),
    derived: new Uint8Array(count),
    nodeIds: new Array(count).fill(undefined),
  }
  let i = 0
  for (const part of parts) {
    const view = new DataView(part.bytes.buffer, part.bytes.byteOffset, part.bytes.byteLength)
    let nodeIdsAt = part.count * ENTRY_BYTES
    for (let entry = 0; entry < part.count; entry += 1, i += 1) {
      const at = entry * ENTRY_BYTES
      index.migrationIds[i] = view.getBigInt64(at, true)
      index.micros[i] = view.getBigInt64(at + 8, true)
      const { compact_json: compact, protobuf_json: protobuf } = index.starts
      compact[i + 1] = (compact[i] as number) + view.getUint32(at + 16, true) + 1
      protobuf[i + 1] = (protobuf[i] as number) + view.getUint32(at + 20, true) + 1
      const eventCount = view.getUint32(at + 24, true)
      const flags = view.getUint32(at + 28, true)
      index.eventCounts[i] = eventCount
      index.isReassignment[i] = flags & FLAG_REASSIGNMENT ? 1 : 0
      index.derived[i] = flags & FLAG_DERIVED ? 1 : 0
      if (flags & FLAG_NODE_IDS) {
        const nodeIds: number[] = []
        for (let n = 0; n < eventCount; n += 1, nodeIdsAt += 4) {
          nodeIds.push(view.getUint32(nodeIdsAt, true))
        }
        index.nodeIds[i] = nodeIds
      }
    }
  }
  return index
}

export function recordTimeAt(index: FrameIndex, i: number): Instant {
  const instant = instantFromMicros(index.micros[i] as bigint)
  assert.ok(instant !== undefined, 'a stored record time lies in the years 0001 to 9999')
  return instant
}

/** How many bytes the joined updates of a form take. */
export function rawLength(index: FrameIndex, encoding: Encoding): number {
  return Math.max(0, (index.starts[encoding][index.count] as number) - 1)
}

/** The number of updates in the frame that do not come after the position. */
export function countUpTo(index: FrameIndex, migrationId: bigint, micros: bigint): number {
  let low = 0
  let high = index.count
  while (low < high) {
    const middle = (low + high) >>> 1
    const m = index.migrationIds[middle] as bigint
    if (m < migrationId || (m === migrationId && (index.micros[middle] as bigint) <= micros)) {
      low = middle + 1
    } else {
      high = middle
    }
  }
  return low
}
