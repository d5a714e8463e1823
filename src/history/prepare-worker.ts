import { isUtf8 } from 'node:buffer'
import { parentPort } from 'node:worker_threads'
import { type PreparedUpdate, prepareLine } from './encode.ts'
import { UpdateError } from './item-fields.ts'
import { pageKeys } from './item-key.ts'
import { type PageBorders, preparePage } from './prepare-page.ts'

export type PrepareRequest =
  /** A block of whole lines to prepare, and the number of its first line. */
  | { kind: 'lines'; id: number; bytes: Uint8Array; firstLine: number }
  /** A page in both encodings, of which so many updates are wanted. */
  | ({ kind: 'page'; id: number } & PageToPrepare)
  /** Pages of one encoding whose items are to be compared. */
  | { kind: 'keys'; id: number; bodies: Uint8Array[] }

/** What the block holds up to its first bad line, if it has one. */
export type PrepareResult = {
  id: number
  updates: LineUpdate[]
  refusal: { line: number; reason: string } | undefined
}
export type LineUpdate = PreparedUpdate & { line: number }

type PageToPrepare = {
  protobuf: Uint8Array
  compact: Uint8Array
  count: number
  isProof?: boolean
  borders?: PageBorders | undefined
}

const NEWLINE = 10

parentPort?.on('message', (request: PrepareRequest) => {
  const { id } = request
  switch (request.kind) {
    case 'lines': {
      const result = prepareBlock(request)
      parentPort?.postMessage(result, packBytes(result.updates))
      return
    }
    case 'page': {
      const { protobuf, compact, ...rest } = request
      const page = preparePage({
        ...rest,
        protobuf: asBuffer(protobuf),
        compact: asBuffer(compact),
      })
      parentPort?.postMessage({ id, page }, packBytes(page.updates))
      return
    }
    case 'keys':
      parentPort?.postMessage({ id, pages: pageKeys(request.bodies.map(asBuffer)) })
  }
})

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

function prepareBlock(request: PrepareRequest & { kind: 'lines' }): PrepareResult {
  const { id, bytes, firstLine } = request
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
function packBytes(updates: PreparedUpdate[]): ArrayBuffer[] {
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
