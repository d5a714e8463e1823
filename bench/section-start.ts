// How long a node takes until it is ready, and until it has answered.

import { rmSync } from 'node:fs'
import { startChild } from './child.ts'
import { startByCommand } from './node-process.ts'
import type { BenchOptions, Section } from './section.ts'
import { median, type SectionReport } from './table.ts'

export const startSection: Section = {
  name: 'start',
  summary: 'time from the command to the ready line and to the first answer',
  run: measureStart,
}

const READY_MS_WANTED = 1000

type Times = { ready: number[]; answer: number[] }

async function measureStart(options: BenchOptions): Promise<SectionReport> {
  const { workspace, count } = options
  const dataDirectory = await workspace.dataDirectory()
  const filled: Times = { ready: [], answer: [] }
  const first: Times = { ready: [], answer: [] }
  const bare: number[] = []
  for (let round = 0; round < options.rounds; round += 1) {
    options.say(`start, round ${round + 1} of ${options.rounds}`)
    await timeStart(dataDirectory, filled)
    const fresh = workspace.path('fresh')
    await timeStart(fresh, first)
    rmSync(fresh, { recursive: true })
    const startedAt = performance.now()
    await startChild(process.execPath, ['-e', '0']).succeed()
    bare.push(performance.now() - startedAt)
  }
  const row = (what: string, { ready, answer }: Times) => ({
    what,
    ready: median(ready),
    answer: median(answer),
    bare: median(bare),
    ratio: median(ready.map((ms, i) => ms / (bare[i] as number))),
  })
  return {
    tables: [
      {
        title: 'Start, milliseconds from the command',
        columns: [
          { key: 'what', title: '' },
          { key: 'ready', title: 'ready' },
          { key: 'answer', title: 'first answer' },
          { key: 'bare', title: 'empty program' },
          { key: 'ratio', title: 'ratio', digits: 1 },
        ],
        rows: [
          row(`with ${count.toLocaleString('en-US')} updates`, filled),
          row('first start, seeds a small network', first),
        ],
        notes: ['Reference: the same Node running an empty program, from start to exit.'],
      },
    ],
    aims: [filled, first].map(({ ready }, i) => ({
      aim: `milliseconds until ready${i === 0 ? '' : ', first start'}`,
      measured: median(ready),
      wanted: READY_MS_WANTED,
      isUpperBound: true,
    })),
  }
}

async function timeStart(dataDirectory: string, times: Times): Promise<void> {
  const startedAt = performance.now()
  const node = await startByCommand(dataDirectory)
  try {
    times.ready.push(performance.now() - startedAt)
    const response = await fetch(`${node.scanUrl}/v1/updates`, {
      method: 'POST',
      body: '{"page_size":1}',
    })
    await response.arrayBuffer()
    times.answer.push(performance.now() - startedAt)
  } finally {
    await node.stop()
  }
}
