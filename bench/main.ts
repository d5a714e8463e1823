// `npm run bench -- [section…] [--count N] [--quick] [--json]`: measures a node on a generated history.
// Rates depend on the machine; the ratios to references measured in the same run are what counts.

import { availableParallelism, cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import type { BenchOptions, Section } from './section.ts'
import { importSection } from './section-import.ts'
import { ledgerSection } from './section-ledger.ts'
import { metricsSection } from './section-metrics.ts'
import { mirrorSection } from './section-mirror.ts'
import { pagesSection } from './section-pages.ts'
import { startSection } from './section-start.ts'
import { tokensSection } from './section-tokens.ts'
import { printAims, printTable, type SectionReport } from './table.ts'
import { createWorkspace } from './workspace.ts'

const SECTIONS: Section[] = [
  importSection,
  mirrorSection,
  startSection,
  pagesSection,
  ledgerSection,
  metricsSection,
  tokensSection,
]

/** All sections together take about two minutes. */
const DEFAULTS = { count: 20_000, rounds: 3, sliceMs: 120 }
const QUICK = { count: 1000, rounds: 1, sliceMs: 5 }

const USAGE = `Usage: npm run bench -- [options] [section…]

Sections (all unless named):
${SECTIONS.map(({ name, summary }) => `  ${name.padEnd(8)} ${summary}`).join('\n')}

Options:
  --count N   updates in the generated history (${DEFAULTS.count})
  --rounds N  how often each measurement is repeated, in turns (${DEFAULTS.rounds})
  --quick     a smoke run: few updates, one round, numbers that mean nothing
  --json      print one JSON document instead of tables
`

type Settings = {
  count: number
  rounds: number
  sliceMs: number
  json: boolean
  sections: Section[]
}

function readSettings(args: string[]): Settings | string {
  let parsed: ReturnType<typeof parse>
  try {
    parsed = parse(args)
  } catch (error) {
    return `${(error as Error).message}\n\n${USAGE}`
  }
  const { values, positionals } = parsed
  if (values.help) return USAGE
  const preset = values.quick ? QUICK : DEFAULTS
  const count = Number(values.count ?? preset.count)
  const rounds = Number(values.rounds ?? preset.rounds)
  for (const [name, value] of Object.entries({ count, rounds })) {
    if (!Number.isSafeInteger(value) || value < 1) {
      return `--${name} is a whole number of at least 1, for example --${name} ${preset[name as 'count']}.\n`
    }
  }
  const unknown = positionals.find((name) => !SECTIONS.some((section) => section.name === name))
  if (unknown !== undefined) return `There is no section ${unknown}.\n\n${USAGE}`
  const sections = SECTIONS.filter(
    ({ name }) => positionals.length === 0 || positionals.includes(name),
  )
  return { count, rounds, sliceMs: preset.sliceMs, json: values.json === true, sections }
}

function parse(args: string[]) {
  return parseArgs({
    args,
    allowPositionals: true,
    options: {
      count: { type: 'string' },
      rounds: { type: 'string' },
      quick: { type: 'boolean' },
      json: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
}

async function run({ sections, json, ...settings }: Settings): Promise<void> {
  const machine = {
    cores: availableParallelism(),
    processor: cpus()[0]?.model ?? 'unknown',
    memoryBytes: totalmem(),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
  }
  if (!json) {
    process.stdout.write(
      `Annals bench: ${settings.count.toLocaleString('en-US')} updates, ${machine.cores} cores (${machine.processor}), Node ${machine.node}, ${machine.platform}\n\n`,
    )
  }
  const workspace = createWorkspace({ count: settings.count })
  const reports: Record<string, SectionReport> = {}
  const options: BenchOptions = { ...settings, workspace, say: createSay() }
  try {
    for (const section of sections) {
      const report = await section.run(options)
      options.say('')
      reports[section.name] = report
      if (!json) for (const table of report.tables) process.stdout.write(`${printTable(table)}\n`)
    }
  } finally {
    workspace.remove()
  }
  if (json) process.stdout.write(`${JSON.stringify({ machine, settings, sections: reports })}\n`)
  else process.stdout.write(printAims(Object.values(reports).flatMap((report) => report.aims)))
}

/** One line on a terminal that each step overwrites; nothing in a log. */
function createSay(): (text: string) => void {
  return (text) => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[2K${text}`)
  }
}

const settings = readSettings(process.argv.slice(2))
if (typeof settings === 'string') {
  const isHelp = settings === USAGE
  process[isHelp ? 'stdout' : 'stderr'].write(settings)
  process.exitCode = isHelp ? 0 : 2
} else {
  await run(settings)
}
