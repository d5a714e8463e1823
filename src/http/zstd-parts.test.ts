import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { compressZstdPart, storeZstdPart, ZSTD_END, ZSTD_START } from './zstd-parts.ts'

async function zstdOf(parts: { bytes: Buffer; stored: boolean }[]): Promise<Buffer> {
  const pieces: Buffer[] = [ZSTD_START]
  for (const { bytes, stored } of parts) {
    pieces.push(stored ? storeZstdPart(bytes) : await compressZstdPart(bytes))
  }
  return Buffer.concat([...pieces, ZSTD_END])
}

const SPACES = ' '.repeat(19)

function expectedOf(parts: { bytes: Buffer; stored: boolean }[]): Buffer {
  return Buffer.concat(
    parts.flatMap((p) => (p.stored ? [p.bytes] : [Buffer.from(SPACES), p.bytes])),
  )
}

const bytes = fc
  .array(fc.tuple(fc.string({ maxLength: 20 }), fc.integer({ min: 1, max: 300 })), { maxLength: 8 })
  .map((runs) => Buffer.from(runs.map(([text, times]) => text.repeat(times)).join('')))

test('a body of parts is one zstd frame that decodes to the parts, with spaces before each', async () => {
  const part = fc.record({ bytes, stored: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 12 }), async (parts) => {
      assert.ok(zlib.zstdDecompressSync(await zstdOf(parts)).equals(expectedOf(parts)))
    }),
    { numRuns: 100 },
  )
})

test('parts of many megabytes decode, also where they cannot be compressed', async () => {
  const noise = randomBytes(3_000_000)
  const repeated = Buffer.concat([noise, Buffer.from('{"a":1}'.repeat(2_000_000)), noise])
  const parts = [
    { bytes: repeated, stored: false },
    { bytes: Buffer.from(','), stored: true },
    { bytes: noise, stored: false },
    { bytes: Buffer.alloc(5_000_000, 'x'), stored: false },
  ]
  assert.ok(zlib.zstdDecompressSync(await zstdOf(parts)).equals(expectedOf(parts)))
})
