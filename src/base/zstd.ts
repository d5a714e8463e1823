import { promisify } from 'node:util'
import zlib from 'node:zlib'

const compressInPool = promisify<Buffer, zlib.ZstdOptions, Buffer>(zlib.zstdCompress)

/**
 * Compresses on a thread of the pool, into one frame and a buffer of its own. The output is given
 * room for the worst case: when it fills a chunk exactly, Node's zlib ends the frame twice and
 * appends an empty one.
 */
export async function compressZstd(
  bytes: Buffer,
  options: { params: Record<number, number>; dictionary?: Buffer },
): Promise<Buffer> {
  const chunkSize = bytes.length + (bytes.length >> 8) + 128
  const output = await compressInPool(bytes, {
    ...options,
    chunkSize,
    pledgedSrcSize: bytes.length,
  })
  // What zlib returns holds on to all of that room, and what we compress may be kept for long.
  const exact = Buffer.allocUnsafeSlow(output.length)
  output.copy(exact)
  return exact
}
