import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ImportError } from './import-error.ts'
import { LINE_BYTES_MAX, type LineBlock, splitLines } from './lines.ts'

async function collect(chunks: Uint8Array[]): Promise<LineBlock[]> {
  const blocks: LineBlock[] = []
  for await (const block of splitLines(each(chunks))) blocks.push(block)
  return blocks
}

async function* each(chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

test('blocks are whole lines, none lost, and know the number of their first line', async () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 700_000 }), { minLength: 1, maxLength: 12 })
  const cuts = fc.array(fc.integer({ min: 1, max: 900_000 }), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(lengths, cuts, fc.boolean(), async (lineLengths, sizes, isEnded) => {
      const lines = lineLengths.map((length, n) => String(n % 10).repeat(length))
      const text = Buffer.from(lines.join('\n') + (isEnded ? '\n' : ''))
      const chunks: Buffer[] = []
      for (let at = 0, n = 0; at < text.length; n += 1) {
        const size = sizes[n % sizes.length] as number
        chunks.push(text.subarray(at, at + size))
        at += size
      }
      const blocks = await collect(chunks)
      assert.ok(Buffer.concat(blocks.map((block) => block.bytes)).equals(text))
      let line = 1
      for (const [n, block] of blocks.entries()) {
        assert.equal(block.firstLine, line)
        line += Buffer.from(block.bytes).toString('latin1').split('\n').length - 1
        if (n < blocks.length - 1) assert.equal(block.bytes.at(-1), 10)
      }
    }),
    { numRuns: 30 },
  )
})

test('a line without an end is refused with its number before it fills the memory', async () => {
  const chunk = Buffer.alloc(8 * 1024 * 1024, 'x')
  const chunks = [
    Buffer.from('a\nb\n'),
    ...new Array(LINE_BYTES_MAX / chunk.length + 1).fill(chunk),
  ]
  await assert.rejects(collect(chunks), (error: unknown) => {
    assert(error instanceof ImportError)
    assert.equal(error.line, 3)
    assert.match(error.message, /^Line 3: The line is longer than 67108864 bytes/)
    return true
  })
})
