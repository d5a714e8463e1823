import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { readSoftware } from '../base/software.ts'
import type { Position } from '../history/position.ts'
import { PORT_NAMES, type PortName, type Ports } from '../listen.ts'
import { parseInstant } from '../values/instant.ts'
import { CommandError, EXIT, type Terminal } from './output.ts'

const DEFAULT_PORTS: Ports = { ledger: 7575, scan: 5012, validator: 5003, metrics: 10013 }
const DEFAULT_DATA = './annals-data'

const terminal: Terminal = {
  stdout: process.stdout,
  stderr: process.stderr,
  isInteractive: process.stderr.isTTY === true,
}
process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  let exitCode: number = EXIT.ok
  const program = createProgram((code) => {
    exitCode = code
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    return reportError(error)
  }
}

function createProgram(setExitCode: (code: number) => void): Command {
  const program = new Command('annals')
    .description('A node of a Canton-style network: its update history, users and automations.')
    .version(readSoftware().version)
    .exitOverride()
    .showHelpAfterError('Run "annals --help" for the commands and their options.')
    .addHelpText(
      'after',
      '\nExamples:\n  annals start\n  annals import history.ndjson.zst\n  annals verify\n  annals export --from 0,2025-06-01T00:00:00Z -o part.ndjson.gz',
    )
  const run = (work: () => Promise<number>) => work().then(setExitCode)

  const start = program
    .command('start', { isDefault: true })
    .description('Run a node until Ctrl-C.')
    .option('--data <directory>', 'where the node keeps its data', DEFAULT_DATA)
    .option('--empty', 'do not load the example history into an empty node')
    .option('--json', 'print one line of JSON when ready, and logs as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  annals start\n  annals start --data /var/lib/annals --scan-port 0 --json',
    )
    .action((options) =>
      run(async () => {
        const { runStart } = await import('./start.ts')
        return runStart(
          {
            data: options.data,
            ports: readPorts(options),
            empty: options.empty === true,
            json: options.json === true,
          },
          terminal,
        )
      }),
    )
  for (const name of PORT_NAMES) {
    start.addOption(
      new Option(`--${name}-port <number>`, `port of the ${name} API; 0 picks a free one`)
        .argParser(parsePort)
        .default(DEFAULT_PORTS[name]),
    )
  }

  program
    .command('import')
    .description('Append updates from NDJSON files to the history of a stopped node.')
    .argument('<files...>', 'files, plain or compressed with gzip or zstd; - is standard input')
    .option('--data <directory>', 'where the node keeps its data', DEFAULT_DATA)
    .option('--sort', 'bring the input into order first')
    .option('--json', 'report progress and result as JSON lines')
    .addHelpText(
      'after',
      '\nA line is an update in the lossless form, or {"protobuf_json":…,"compact_json":…}.\nAn interrupted import is simply run again.\n\nExamples:\n  annals import history.ndjson\n  zcat part-*.gz | annals import --sort -',
    )
    .action((files, options) =>
      run(async () => {
        const { runImport } = await import('./import.ts')
        return runImport(
          {
            files,
            dataDirectory: options.data,
            sort: options.sort === true,
            json: options.json === true,
          },
          terminal,
        )
      }),
    )

  program
    .command('export')
    .description('Write the updates of a stopped node as NDJSON.')
    .option('--data <directory>', 'where the node keeps its data', DEFAULT_DATA)
    .option('--from <position>', 'the first position, as MIGRATION,TIME', parsePosition)
    .option('--to <position>', 'the position to end before, as MIGRATION,TIME', parsePosition)
    .option('-o, --output <file>', 'a file instead of standard output; .gz and .zst compress')
    .addHelpText(
      'after',
      '\nExamples:\n  annals export > history.ndjson\n  annals export --from 1,2025-06-01T00:00:00Z --to 1,2025-07-01T00:00:00Z -o june.ndjson.zst',
    )
    .action((options) =>
      run(async () => {
        const { runExport } = await import('./export.ts')
        return runExport(
          {
            dataDirectory: options.data,
            from: options.from,
            to: options.to,
            output: options.output,
          },
          terminal,
        )
      }),
    )

  program
    .command('verify')
    .description('Check the stored history of a stopped node completely.')
    .option('--data <directory>', 'where the node keeps its data', DEFAULT_DATA)
    .option('--json', 'report progress and result as JSON lines')
    .addHelpText(
      'after',
      '\nExit codes: 0 sound, 1 a fault was found, 2 wrong arguments.\n\nExample:\n  annals verify --data /var/lib/annals',
    )
    .action((options) =>
      run(async () => {
        const { runVerify } = await import('./verify.ts')
        return runVerify({ dataDirectory: options.data, json: options.json === true }, terminal)
      }),
    )
  return program
}

function readPorts(options: Record<string, number>): Ports {
  const ports = {} as Ports
  for (const name of PORT_NAMES) ports[name as PortName] = options[`${name}Port`] as number
  return ports
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

/** Errors whose message was written for the user; anything else is a mistake of ours. */
const EXPLAINED = new Set([
  'CommandError',
  'DirectoryLockError',
  'ListenError',
  'DatabaseUnavailable',
  'MigrationError',
])

function reportError(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  const { name, message, stack } = error as Error
  terminal.stderr.write(
    EXPLAINED.has(name) ? `annals: ${message}\n` : `annals: ${stack ?? message}\n`,
  )
  return error instanceof CommandError ? error.exitCode : EXIT.failed
}
