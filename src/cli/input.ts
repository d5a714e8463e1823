import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline, Readable, type Transform } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { cutZstdFrames } from '../base/zstd-frames.ts'
import { CommandError } from './output.ts'

const CHUNK_BYTES = 1024 * 1024
/** Enough to tell gzip and zstd. */
const MAGIC_BYTES_MAX = 4

/** Files that are read one after another, unpacked where they are compressed. */
export type Input = {
  /** Bytes of all files as they lie on the disk; undefined when one is a pipe. */
  totalBytes: number | undefined
  /** Bytes read so far, before unpacking. */
  readonly readBytes: number
  lines(): AsyncGenerator<Uint8Array>
}

export async function openInput(paths: string[], stdin: Readable): Promise<Input> {
  let totalBytes: number | undefined = 0
  for (const path of paths) {
    const size = path === '-' ? undefined : await sizeOf(path)
    totalBytes = size === undefined || totalBytes === undefined ? undefined : totalBytes + size
  }
  const input = {
    totalBytes,
    readBytes: 0,
    async *lines() {
      for (const path of paths) {
        const raw = path === '-' ? stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES })
        try {
          yield* endWithNewline(unpack(count(raw)))
        } catch (error) {
          throw explain(error, path)
        }
      }
    },
  }
  async function* count(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      input.readBytes += chunk.length
      yield chunk
    }
  }
  return input
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const file = await stat(path)
    if (file.isDirectory()) throw new CommandError(`${path} is a directory; name the files in it.`)
    return file.isFile() ? file.size : undefined
  } catch (error) {
    throw explain(error, path)
  }
}

/** Tells the format by its first bytes, not by the name. */
async function* unpack(source: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let start: Uint8Array = new Uint8Array()
  // A pipe may hand over its first bytes one at a time.
  while (start.length < MAGIC_BYTES_MAX) {
    const next = await source.next()
    if (next.done) break
    start = Buffer.concat([start, next.value])
  }
  if (start.length === 0) return
  const whole = Readable.from(prepend(start, source), { objectMode: false })
  const [a, b, c, d] = start
  if (a === 0x1f && b === 0x8b) {
    yield* connect([whole, createGunzip()])
  } else if (a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd) {
    yield* connect([whole, cutZstdFrames(), createZstdDecompress()])
  } else {
    yield* whole
  }
}

/** The last of the streams, which also tells of a failure of the others. */
function connect(streams: [Readable, ...Transform[]]): Readable {
  return pipeline(streams, () => {}) as unknown as Readable
}

async function* prepend(first: Uint8Array, rest: AsyncGenerator<Uint8Array>) {
  yield first
  yield* rest
}

/** So that the last line of one file and the first of the next stay apart. */
async function* endWithNewline(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let last: number | undefined
  for await (const chunk of source) {
    if (chunk.length > 0) last = chunk[chunk.length - 1]
    yield chunk
  }
  if (last !== undefined && last !== 10) yield Buffer.from('\n')
}

function explain(error: unknown, path: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  const name = path === '-' ? 'Standard input' : path
  if (code === 'ENOENT') return new CommandError(`${path} does not exist.`)
  if (code === 'EACCES') return new CommandError(`${path} may not be read.`)
  const isDamaged = code?.startsWith('Z_') || code?.startsWith('ZSTD_') || /zstd/.test(message)
  return isDamaged ? new CommandError(`${name} is damaged: ${message}`) : error
}
