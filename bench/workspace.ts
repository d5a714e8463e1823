// The data that sections share: a generated history as a file, the pages that a node must answer, and
// a data directory with the history imported. Each is made when first asked for.

import { once } from 'node:events'
import { createWriteStream, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Encoding } from '../src/history/encode.ts'
import { prepareLine } from '../src/history/encode.ts'
import { startProgram } from './child.ts'
import { generateHistory } from './generate.ts'

/** A fixed seed: every run on every machine measures the same bytes. */
const SEED = 1
const ENCODINGS: Encoding[] = ['compact_json', 'protobuf_json']

export type Expected = {
  count: number
  positions: { migrationId: string; recordTime: string }[]
  /** The whole answer of POST /v1/updates with the updates from `from` (included) to `to`. */
  page(encoding: Encoding, from: number, to: number): Buffer
}

export type Workspace = {
  readonly directory: string
  /** A path for something temporary, removed with all the rest. */
  path(name: string): string
  historyFile(): Promise<string>
  expected(): Promise<Expected>
  /** The data directory of a stopped node that holds the history. */
  dataDirectory(): Promise<string>
  remove(): void
}

export function createWorkspace(options: { count: number }): Workspace {
  const directory = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  const path = (name: string) => join(directory, name)
  const historyFile = makeOnce(async () => {
    const file = path('history.ndjson')
    const lines = generateHistory({ count: options.count, seed: SEED })
    await pipeline(Readable.from(withNewlines(lines)), createWriteStream(file))
    return file
  })
  const expected = makeOnce(() => writeExpected(path, options.count))
  const dataDirectory = makeOnce(async () => {
    const data = path('data')
    await importFile(await historyFile(), data)
    return data
  })
  return {
    directory,
    path,
    historyFile,
    expected,
    dataDirectory,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** Imports with the real command line; the lines are what it reported. */
export async function importFile(file: string, data: string): Promise<string[]> {
  const command = startProgram('../src/cli/main.ts', ['import', '--json', '--data', data, file])
  const reported: string[] = []
  for (;;) {
    const line = await command.nextLine()
    reported.push(line)
    if (JSON.parse(line).event === 'imported') break
  }
  await command.succeed()
  return reported
}

function makeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

function* withNewlines(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`
}

const HEAD = Buffer.from('{"transactions":[')
const TAIL = Buffer.from(']}')
const OFFSET_DIGITS = 18

/**
 * Writes both forms of every update, joined by commas, to a file each. They come straight from the
 * generator and the encoder, past the store, the frames, the pages and the server.
 */
async function writeExpected(path: (name: string) => string, count: number): Promise<Expected> {
  const positions: Expected['positions'] = []
  const starts: Record<Encoding, number[]> = { compact_json: [0], protobuf_json: [0] }
  const writers = ENCODINGS.map((encoding) => createWriteStream(path(encoding)))
  for (const line of generateHistory({ count, seed: SEED })) {
    const update = prepareLine(line)
    positions.push({ migrationId: String(update.migrationId), recordTime: update.recordTime })
    const offset = positions.length.toString(16).padStart(OFFSET_DIGITS, '0')
    for (const [i, encoding] of ENCODINGS.entries()) {
      const bytes = Buffer.from(encoding === 'compact_json' ? update.compact : update.protobuf)
      bytes.write(offset, update.offsetAt, 'latin1')
      const writer = writers[i] as ReturnType<typeof createWriteStream>
      const isDrained = writer.write(Buffer.concat([bytes, Buffer.from(',')]))
      starts[encoding].push((starts[encoding].at(-1) as number) + bytes.length + 1)
      if (!isDrained) await once(writer, 'drain')
    }
  }
  for (const writer of writers) await new Promise<void>((resolve) => writer.end(() => resolve()))
  const files = Object.fromEntries(ENCODINGS.map((name) => [name, openSync(path(name), 'r')]))
  return {
    count,
    positions,
    page(encoding, from, to) {
      const start = starts[encoding][from] as number
      const length = Math.max(0, (starts[encoding][to] as number) - start - 1)
      const page = Buffer.alloc(HEAD.length + length + TAIL.length)
      HEAD.copy(page)
      readSync(files[encoding] as number, page, HEAD.length, length, start)
      TAIL.copy(page, HEAD.length + length)
      return page
    },
  }
}
