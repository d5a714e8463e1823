import { isUtf8 } from 'node:buffer'
import { parentPort } from 'node:worker_threads'
import { type PreparedUpdate, prepareLine } from './encode.ts'
import { UpdateError } from './item-fields.ts'

/** A block of whole lines to prepare, and the number of its first line. */
export type PrepareRequest = { id: number; bytes: Uint8Array; firstLine: number }

/** What the block holds up to its first bad line, if it has one. */
export type PrepareResult = {
  id: number
  updates: LineUpdate[]
  refusal: { line: number; reason: string } | undefined
}
export type LineUpdate = PreparedUpdate & { line: number }

const NEWLINE = 10

parentPort?.on('message', (request: PrepareRequest) => {
  const result = prepareBlock(request)
  parentPort?.postMessage(result, packBytes(result.updates))
})

function prepareBlock({ id, bytes, firstLine }: PrepareRequest): PrepareResult {
  const block = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const updates: LineUpdate[] = []
  let line = firstLine
  for (let start = 0; start < block.length; line += 1) {
    const newline = block.indexOf(NEWLINE, start)
    const end = newline < 0 ? block.length : newline
    try {
      const text = readText(block.subarray(start, end))
      if (text !== '') updates.push({ ...prepareLine(text), line })
    } catch (error) {
      if (!(error instanceof UpdateError)) throw error
      return { id, updates, refusal: { line, reason: error.message } }
    }
    start = end + 1
  }
  return { id, updates, refusal: undefined }
}

function readText(line: Buffer): string {
  if (!isUtf8(line)) throw new UpdateError('The line', 'is not valid UTF-8')
  return line.toString('utf8').trim()
}

/** Moves the updates' bytes into one buffer, which travels to the main thread without a copy. */
function packBytes(updates: LineUpdate[]): ArrayBuffer[] {
  const length = updates.reduce((sum, u) => sum + u.compact.length + u.protobuf.length, 0)
  const packed = new Uint8Array(length)
  let at = 0
  for (const update of updates) {
    for (const form of ['compact', 'protobuf'] as const) {
      const bytes = update[form]
      packed.set(bytes, at)
      update[form] = packed.subarray(at, at + bytes.length)
      at += bytes.length
    }
  }
  return [packed.buffer]
}
