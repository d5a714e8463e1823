// How fast `annals import` stores a history durably, and how small it becomes.

import { readdirSync, rmSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { startProgram } from './child.ts'
import type { BenchOptions, Section } from './section.ts'
import { median, type SectionReport } from './table.ts'
import { importFile } from './workspace.ts'

export const importSection: Section = {
  name: 'import',
  summary: 'updates per second of the command, bytes on disk for an update',
  run: measureImport,
}

const RATE_WANTED = 5000
const DISK_BYTES_WANTED = 2000

async function measureImport(options: BenchOptions): Promise<SectionReport> {
  const { workspace, count } = options
  const file = await workspace.historyFile()
  const imported: number[] = []
  const work: number[] = []
  const parsed: number[] = []
  let diskBytes = 0
  for (let round = 0; round < options.rounds; round += 1) {
    options.say(`import, round ${round + 1} of ${options.rounds}`)
    const data = workspace.path('imported')
    let reported: string[] = []
    imported.push(
      count /
        (await secondsOf(async () => {
          reported = await importFile(file, data)
        })),
    )
    const progress = reported
      .map((line) => JSON.parse(line))
      .findLast((r) => r.event === 'progress')
    work.push(progress.updatesPerSecond)
    diskBytes = sizeOf(data)
    rmSync(data, { recursive: true })
    const parser = startProgram('./parse-lines.ts', [file])
    parsed.push(count / JSON.parse(await parser.nextLine()).seconds)
    await parser.succeed()
  }
  const ratio = median(work.map((rate, i) => rate / (parsed[i] as number)))
  const fileBytes = statSync(file).size
  const measured = (what: string, value: number, reference: number, of: number) => ({
    what,
    value,
    reference,
    of,
  })
  return {
    tables: [
      {
        title: `Import of ${count.toLocaleString('en-US')} updates on ${availableParallelism()} cores`,
        columns: [
          { key: 'what', title: '' },
          { key: 'value', title: 'annals' },
          { key: 'reference', title: 'reference' },
          { key: 'of', title: 'ratio', digits: 2 },
        ],
        rows: [
          measured('updates/s, while it works', median(work), median(parsed), ratio),
          measured(
            'updates/s, from start to exit of the command',
            median(imported),
            median(parsed),
            median(imported) / median(parsed),
          ),
          measured(
            'bytes on disk for an update, both forms',
            diskBytes / count,
            fileBytes / count,
            diskBytes / fileBytes,
          ),
        ],
        notes: [
          'References: JSON.parse of every line on one thread and nothing else; the size of the file with the lossless form alone.',
        ],
      },
    ],
    aims: [
      {
        aim: 'import: updates a second, checked, encoded and durable',
        measured: median(work),
        wanted: RATE_WANTED,
        isUpperBound: false,
      },
      {
        aim: 'bytes on disk for an update, both forms',
        measured: diskBytes / count,
        wanted: DISK_BYTES_WANTED,
        isUpperBound: true,
      },
    ],
  }
}

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (performance.now() - startedAt) / 1000
}

function sizeOf(directory: string): number {
  const files = readdirSync(directory, { withFileTypes: true }).filter((file) => file.isFile())
  return files.reduce((sum, file) => sum + statSync(join(directory, file.name)).size, 0)
}
