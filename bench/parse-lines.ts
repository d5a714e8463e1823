// The reference of the import: reads a file of lines, parses each as JSON, and tells how long that took.

import { createReadStream } from 'node:fs'
import { splitLines } from '../src/history/lines.ts'

const CHUNK_BYTES = 1024 * 1024

const startedAt = performance.now()
let lines = 0
const source = createReadStream(process.argv[2] as string, { highWaterMark: CHUNK_BYTES })
for await (const { bytes } of splitLines(source)) {
  const block = Buffer.from(bytes.buffer)
  for (let start = 0; start < block.length; lines += 1) {
    const end = block.indexOf(10, start)
    JSON.parse(block.toString('utf8', start, end))
    start = end + 1
  }
}
const seconds = (performance.now() - startedAt) / 1000
process.stdout.write(`${JSON.stringify({ lines, seconds })}\n`)
