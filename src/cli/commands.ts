import { Command, InvalidArgumentError, Option } from 'commander'
import type { Position } from '../history/position.ts'
import { parseInstant } from '../values/instant.ts'
import type { Terminal } from './output.ts'

export type CommandContext = { terminal: Terminal; finish(exitCode: number): void }

const DEFAULT_DATA = './annals-data'
const DEFAULT_PORTS = { ledger: 7575, scan: 5012, validator: 5003, metrics: 10013 }

// What a command does is loaded when it runs, so that the others start quickly.

export function startCommand({ terminal, finish }: CommandContext): Command {
  const command = new Command('start')
    .description('Run a node until Ctrl-C.')
    .addOption(dataOption())
    .option('--empty', 'do not load the example history into an empty node', false)
    .option('--json', 'print one line of JSON when ready', false)
    .addHelpText(
      'after',
      '\nExamples:\n  annals start\n  annals start --data ./my-data --scan-port 0 --json',
    )
  for (const [name, port] of Object.entries(DEFAULT_PORTS)) {
    const description = `port of the ${name} API; 0 picks a free one`
    command.addOption(
      new Option(`--${name}-port <number>`, description).argParser(parsePort).default(port),
    )
  }
  return command.action(async ({ data, empty, json, ...ports }) => {
    const { runStart } = await import('./start.ts')
    const {
      ledgerPort: ledger,
      scanPort: scan,
      validatorPort: validator,
      metricsPort: metrics,
    } = ports
    finish(
      await runStart({ data, empty, json, ports: { ledger, scan, validator, metrics } }, terminal),
    )
  })
}

export function importCommand({ terminal, finish }: CommandContext): Command {
  return new Command('import')
    .description('Append updates from NDJSON files to the history of a stopped node.')
    .argument('<files...>', 'files, plain or compressed with gzip or zstd; - is standard input')
    .addOption(dataOption())
    .option('--sort', 'bring the input into order first', false)
    .option('--json', 'report progress and result as JSON lines', false)
    .addHelpText(
      'after',
      `
A line is an update in the lossless form, or {"protobuf_json":…,"compact_json":…}.
Run an interrupted import again: what is stored already is skipped.

Examples:
  annals import examples/history.ndjson
  gunzip -c part-*.gz | annals import --sort -`,
    )
    .action(async (files, { data, sort, json }) => {
      const { runImport } = await import('./import.ts')
      finish(await runImport({ files, dataDirectory: data, sort, json }, terminal))
    })
}

export function exportCommand({ terminal, finish }: CommandContext): Command {
  return new Command('export')
    .description('Write the updates of a stopped node as NDJSON.')
    .addOption(dataOption())
    .option('--from <position>', 'the first position, as MIGRATION,TIME', parsePosition)
    .option('--to <position>', 'the position to end before, as MIGRATION,TIME', parsePosition)
    .option('-o, --output <file>', 'a file instead of standard output; .gz and .zst compress')
    .addHelpText(
      'after',
      `
Examples:
  annals export > history.ndjson
  annals export --from 1,2025-06-01T00:00:00Z --to 1,2025-07-01T00:00:00Z -o june.ndjson.zst`,
    )
    .action(async ({ data, from, to, output }) => {
      const { runExport } = await import('./export.ts')
      finish(await runExport({ dataDirectory: data, from, to, output }, terminal))
    })
}

export function verifyCommand({ terminal, finish }: CommandContext): Command {
  return new Command('verify')
    .description('Check the stored history of a stopped node completely.')
    .addOption(dataOption())
    .option('--json', 'report progress and result as JSON lines', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 sound, 1 a fault was found, 2 wrong arguments.

Example:
  annals verify --data ./my-data`,
    )
    .action(async ({ data, json }) => {
      const { runVerify } = await import('./verify.ts')
      finish(await runVerify({ dataDirectory: data, json }, terminal))
    })
}

function dataOption(): Option {
  return new Option('--data <directory>', 'where the node keeps its data').default(DEFAULT_DATA)
}

function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError('A port is a number from 0 to 65535.')
}

function parsePosition(text: string): Position {
  const match = /^(-?\d{1,19}),(.+)$/.exec(text)
  const recordTime = match === null ? undefined : parseInstant(match[2] as string)
  if (match === null || recordTime === undefined) {
    throw new InvalidArgumentError(
      'A position is a migration id and a time, such as 1,2025-06-01T00:00:00Z.',
    )
  }
  return { migrationId: BigInt(match[1] as string), recordTime }
}
