import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import zlib from 'node:zlib'
import { compressZstd } from './zstd.ts'

const EMPTY_FRAME = Buffer.from('28b52ffd2000010000', 'hex')

test('the output is one frame, of whatever length', async () => {
  const noise = createHash('shake256', { outputLength: 40_000 }).update('noise').digest()
  // Lengths around zlib's own chunks of 16 KiB, where an empty frame would be appended.
  for (let length = 16_300; length < 16_450; length += 1) {
    const bytes = noise.subarray(0, length)
    const compressed = await compressZstd(bytes, { params: {} })
    assert.ok(!compressed.subarray(-EMPTY_FRAME.length).equals(EMPTY_FRAME), `length ${length}`)
    assert.ok(zlib.zstdDecompressSync(compressed).equals(bytes))
    assert.equal(compressed.buffer.byteLength, compressed.length)
  }
})

test('a dictionary makes what it holds small', async () => {
  const dictionary = createHash('shake256', { outputLength: 10_000 }).update('text').digest()
  const compressed = await compressZstd(dictionary, { params: {}, dictionary })
  assert.ok(compressed.length < 100)
  assert.ok(zlib.zstdDecompressSync(compressed, { dictionary }).equals(dictionary))
})
