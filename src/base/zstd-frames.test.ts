import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { cutZstdFrames } from './zstd-frames.ts'

const SKIPPABLE = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])

function cutAt(bytes: Buffer, sizes: number[]): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const size = sizes[i % sizes.length] as number
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

async function decompress(bytes: Buffer, sizes: number[]): Promise<Buffer> {
  const stream = Readable.from(cutAt(bytes, sizes))
  return buffer(stream.compose(cutZstdFrames()).compose(zlib.createZstdDecompress()))
}

test('any number of frames is read whole, however the bytes arrive', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.string(),
          fc.nat(400_000).map((n) => 'ab'.repeat(n)),
        ),
        { minLength: 1, maxLength: 5 },
      ),
      fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      async (texts, sizes, hasChecksum) => {
        const params = { [zlib.constants.ZSTD_c_checksumFlag]: hasChecksum ? 1 : 0 }
        const frames = texts.flatMap((text) => [zlib.zstdCompressSync(text, { params }), SKIPPABLE])
        const result = await decompress(Buffer.concat(frames), sizes)
        assert.equal(result.toString(), texts.join(''))
      },
    ),
    { numRuns: 50 },
  )
})

test('data that ends inside a frame, or is followed by something else, is refused', async () => {
  const frame = zlib.zstdCompressSync('hello world')
  await assert.rejects(decompress(frame.subarray(0, -2), [3]), /middle of a frame/)
  await assert.rejects(
    decompress(Buffer.concat([frame, Buffer.from('garbage')]), [1000]),
    /not zstd/,
  )
})
