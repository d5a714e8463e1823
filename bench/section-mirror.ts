// How fast a history is copied from four scans on this machine, each page from three of them,
// compared with a plain import of the same updates.

import { cpSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { startProgram } from './child.ts'
import { type NodeProcess, startByCommand } from './node-process.ts'
import type { BenchOptions, Section } from './section.ts'
import { median, type SectionReport } from './table.ts'
import { importFile } from './workspace.ts'

export const mirrorSection: Section = {
  name: 'mirror',
  summary: 'updates per second copied from four scans, as a fraction of the import rate',
  run: measureMirror,
}

const SCANS = 4
const RATIO_WANTED = 0.5

async function measureMirror(options: BenchOptions): Promise<SectionReport> {
  const { workspace, count } = options
  const file = await workspace.historyFile()
  const data = await workspace.dataDirectory()
  const copied: number[] = []
  const imported: number[] = []
  const scans: NodeProcess[] = []
  try {
    for (let n = 0; n < SCANS; n += 1) {
      const directory = workspace.path(`scan-${n}`)
      cpSync(data, directory, { recursive: true })
      scans.push(await startByCommand(directory))
    }
    const urls = scans.map(({ scanUrl }) => scanUrl)
    for (let round = 0; round < options.rounds; round += 1) {
      options.say(`mirror, round ${round + 1} of ${options.rounds}`)
      imported.push(count / (await secondsOf((target) => importFile(file, target))))
      copied.push(count / (await secondsOf((target) => mirror(urls, target))))
    }
  } finally {
    for (const scan of scans) await scan.stop()
  }
  const ratio = median(copied.map((rate, i) => rate / (imported[i] as number)))
  return {
    tables: [
      {
        title: `Copy of ${count.toLocaleString('en-US')} updates from ${SCANS} scans on ${availableParallelism()} cores, which they share`,
        columns: [
          { key: 'what', title: '' },
          { key: 'value', title: 'mirror' },
          { key: 'reference', title: 'import' },
          { key: 'of', title: 'ratio', digits: 2 },
        ],
        rows: [
          {
            what: 'updates/s, from start to exit of the command',
            value: median(copied),
            reference: median(imported),
            of: ratio,
          },
        ],
        notes: [
          'Each page is fetched from three of the scans, its compact form from one of them in turn, and stored when two of them agree.',
        ],
      },
    ],
    aims: [
      {
        aim: 'mirror: copying rate as a fraction of the import rate',
        measured: ratio,
        wanted: RATIO_WANTED,
        isUpperBound: false,
      },
    ],
  }

  async function secondsOf(work: (target: string) => Promise<unknown>): Promise<number> {
    const target = workspace.path('copied')
    const startedAt = performance.now()
    await work(target)
    const seconds = (performance.now() - startedAt) / 1000
    rmSync(target, { recursive: true })
    return seconds
  }
}

async function mirror(urls: string[], data: string): Promise<void> {
  const args = ['mirror', '--json', '--data', data, '--no-discovery', '--from', ...urls]
  const command = startProgram('../src/cli/main.ts', args)
  while (JSON.parse(await command.nextLine()).event !== 'mirrored');
  await command.succeed()
}
