import assert from 'node:assert/strict'
import zlib from 'node:zlib'
import { compressZstd } from '../base/zstd.ts'

/**
 * A zstd body put together from parts that were compressed apart. Several zstd frames in one body
 * would be simpler, but Node's fetch stops silently after the first. So each part is compressed as a
 * frame of its own, stripped to its blocks, and all blocks stand in one frame. A frame's first
 * blocks count on three remembered match offsets being 1, 4 and 8, so before each part stand three
 * tiny blocks that make them so. What these print are 19 spaces: harmless between JSON values.
 */
export const ZSTD_START = Buffer.from([
  ...[0x28, 0xb5, 0x2f, 0xfd],
  // No size, no checksum, no dictionary; a window of 8 MiB, which every decoder must accept.
  ...[0x00, 0x68],
])
export const ZSTD_END = Buffer.from([1, 0, 0])

const MAGIC = 0xfd2fb528
const RAW_BLOCK_BYTES_MAX = 128 * 1024
const SPACE = 0x20

/**
 * One compressed block with one sequence: literals (spaces), then a match of three bytes at an
 * offset. All tables are of the run-length kind, so the block needs no entropy coding.
 */
function offsetBlock(literals: number, offsetCode: number, bits: number): number[] {
  const content = [(literals << 3) | 1, SPACE, 1, 0x54, literals, offsetCode, 0, bits]
  return [(content.length << 3) | 4, 0, 0, ...content]
}

const RESET_OFFSETS = Buffer.from([
  ...offsetBlock(8, 3, 0x0b),
  ...offsetBlock(1, 2, 0x07),
  ...offsetBlock(1, 2, 0x04),
])

const PARAMS = { [zlib.constants.ZSTD_c_compressionLevel]: 1 }

export async function compressZstdPart(bytes: Buffer): Promise<Buffer> {
  const blocks = blocksOf(await compressZstd(bytes, { params: PARAMS }))
  // A buffer of its own, not a piece of a shared one: a part may be kept for long.
  const part = Buffer.allocUnsafeSlow(RESET_OFFSETS.length + blocks.length)
  RESET_OFFSETS.copy(part)
  blocks.copy(part, RESET_OFFSETS.length)
  return part
}

/** A few bytes, stored as they are. */
export function storeZstdPart(bytes: Buffer): Buffer {
  assert.ok(bytes.length <= RAW_BLOCK_BYTES_MAX, 'a raw block is small')
  const header = Buffer.alloc(3)
  header.writeUIntLE(bytes.length << 3, 0, 3)
  return Buffer.concat([header, bytes])
}

/** The blocks of a whole frame, none of them marked as the last. */
function blocksOf(frame: Buffer): Buffer {
  assert.equal(frame.readUInt32LE(0), MAGIC, 'a zstd frame starts with its magic number')
  const descriptor = frame[4] as number
  const isSingleSegment = (descriptor >> 5) & 1
  const hasChecksum = (descriptor >> 2) & 1
  const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3] as number
  const sizeBytes = [isSingleSegment, 2, 4, 8][descriptor >> 6] as number
  const start = 5 + (isSingleSegment ? 0 : 1) + dictionaryIdBytes + sizeBytes
  for (let at = start; ; ) {
    const header = frame.readUIntLE(at, 3)
    const isRunLength = ((header >> 1) & 3) === 1
    const next = at + 3 + (isRunLength ? 1 : header >> 3)
    if (header & 1) {
      frame.writeUIntLE(header & ~1, at, 3)
      assert.equal(next, frame.length - (hasChecksum ? 4 : 0), 'the last block ends the frame')
      return frame.subarray(start, next)
    }
    at = next
  }
}
