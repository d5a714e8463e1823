import type { WriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip, createZstdCompress } from 'node:zlib'
import { exportLines } from '../history/export.ts'
import type { Position } from '../history/position.ts'
import type { ConfigurationArguments } from './configuration.ts'
import { type CliContext, CommandError, EXIT, printBytes, printNumber } from './output.ts'
import { startProgress } from './progress.ts'
import { openOfflineStore } from './store.ts'

export type ExportArguments = ConfigurationArguments & {
  from: Position | undefined
  to: Position | undefined
  /** Standard output unless given; the ending .gz or .zst compresses. */
  output: string | undefined
}

const NEWLINE = 10

/** `annals export`: writes updates as NDJSON, in the format that `annals import` reads. */
export async function runExport(args: ExportArguments, context: CliContext): Promise<number> {
  const { terminal } = context
  await using store = await openOfflineStore(args, context, { create: false })
  const progress = startProgress(terminal, { json: false, name: 'export' })
  const { updates, imports } = store.history.view
  const isWhole = args.from === undefined && args.to === undefined
  let written = 0
  let bytes = 0
  async function* lines() {
    for await (const chunk of exportLines(store.history, args)) {
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1))
        written += 1
      bytes += chunk.length
      yield chunk
      const total = isWhole ? updates + imports : undefined
      progress.report({ total, done: written, updates: written, note: printBytes(bytes) })
    }
  }
  const source = Readable.from(lines(), { objectMode: false })
  const { output } = args
  if (output === undefined) {
    await pipeline(source, terminal.stdout, { end: false })
  } else {
    const file = await createFile(output)
    if (output.endsWith('.gz')) await pipeline(source, createGzip(), file)
    else if (output.endsWith('.zst')) await pipeline(source, createZstdCompress(), file)
    else await pipeline(source, file)
  }
  progress.end()
  if (output !== undefined) {
    terminal.stdout.write(`Wrote ${printNumber(written)} updates to ${output}.\n`)
  }
  return EXIT.ok
}

async function createFile(path: string): Promise<WriteStream> {
  try {
    const file = await open(path, 'w')
    return file.createWriteStream({ flush: true })
  } catch (error) {
    throw new CommandError(`${path} cannot be written: ${(error as Error).message}.`)
  }
}
