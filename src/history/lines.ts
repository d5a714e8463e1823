import { ImportError } from './import-error.ts'

/** Splits a stream of bytes into blocks of whole lines. */
export type LineBlock = { bytes: Uint8Array<ArrayBuffer>; firstLine: number }

/** Enough lines for a worker to be busy some tens of milliseconds. */
const BLOCK_BYTES = 1024 * 1024
/** No update comes near; a file without line ends must not fill the memory. */
export const LINE_BYTES_MAX = 64 * 1024 * 1024

const NEWLINE = 10

export async function* splitLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<LineBlock> {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let line = 1
  for await (const chunk of source) {
    held.push(chunk)
    heldBytes += chunk.length
    if (heldBytes < BLOCK_BYTES) continue
    const lastNewline = chunk.lastIndexOf(NEWLINE)
    if (lastNewline < 0) {
      if (heldBytes > LINE_BYTES_MAX) {
        const lines = held.reduce((sum, part) => sum + countLines(part), 0)
        throw new ImportError(
          line + lines,
          `The line is longer than ${LINE_BYTES_MAX} bytes; no update is.`,
        )
      }
      continue
    }
    const rest = chunk.subarray(lastNewline + 1)
    held[held.length - 1] = chunk.subarray(0, lastNewline + 1)
    const block = { bytes: concat(held), firstLine: line }
    line += countLines(block.bytes)
    yield block
    held = rest.length === 0 ? [] : [rest]
    heldBytes = rest.length
  }
  if (heldBytes > 0) yield { bytes: concat(held), firstLine: line }
}

/** Always a buffer of its own, so that it can travel to another thread. */
function concat(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1
  return lines
}
