import assert from 'node:assert/strict'
import { test } from 'node:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { combineCrcs, createGzipBody, deflatePart, storePart } from './gzip-parts.ts'

async function gzipOf(parts: { bytes: Buffer; stored: boolean }[]): Promise<Buffer> {
  const body = createGzipBody()
  const pieces = [body.start()]
  for (const { bytes, stored } of parts) {
    pieces.push(body.add(stored ? storePart(bytes) : await deflatePart(bytes)))
  }
  return Buffer.concat([...pieces, body.end()])
}

/** Runs of few different bytes, which compress well and refer back far. */
const bytes = fc
  .array(fc.tuple(fc.string({ maxLength: 20 }), fc.integer({ min: 1, max: 200 })), { maxLength: 8 })
  .map((runs) => Buffer.from(runs.map(([text, times]) => text.repeat(times)).join('')))

test('a body of parts decodes to the parts joined, as one gzip member', async () => {
  const part = fc.record({ bytes, stored: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 12 }), async (parts) => {
      const expected = Buffer.concat(parts.map((p) => p.bytes))
      assert.ok(zlib.gunzipSync(await gzipOf(parts)).equals(expected))
    }),
    { numRuns: 100 },
  )
})

test('the same part serves in many bodies', async () => {
  const part = await deflatePart(Buffer.from('abc'.repeat(1000)))
  for (let n = 0; n < 3; n += 1) {
    const body = createGzipBody()
    const whole = Buffer.concat([
      body.start(),
      ...Array(n)
        .fill(0)
        .map(() => body.add(part)),
      body.end(),
    ])
    assert.equal(zlib.gunzipSync(whole).toString(), 'abc'.repeat(1000 * n))
  }
})

test('checksums of pieces combine to that of the whole', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array({ maxLength: 3000 }), (first, second) => {
      const combined = combineCrcs(zlib.crc32(first), zlib.crc32(second), second.length)
      assert.equal(combined, zlib.crc32(Buffer.concat([first, second])))
    }),
  )
})
