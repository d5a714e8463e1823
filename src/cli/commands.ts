import { Command, InvalidArgumentError } from 'commander'
import type { Position } from '../history/position.ts'
import { parseInstant } from '../values/instant.ts'
import { addSourceOptions } from './check-config.ts'
import type { CliContext } from './output.ts'

export type CommandContext = CliContext & { finish(exitCode: number): void }

// What a command does is loaded when it runs, so that the others start quickly.

export function startCommand(context: CommandContext): Command {
  return addSourceOptions(addDataOption(new Command('start')))
    .description('Run a node until Ctrl-C.')
    .option('--bind <address>', 'address that every server binds to (default 127.0.0.1)')
    .option('--ledger-port <number>', 'port of the ledger API (default 7575; 0 picks a free one)')
    .option('--scan-port <number>', 'port of the scan API (default 5012)')
    .option('--validator-port <number>', 'port of the validator API and of health (default 5003)')
    .option('--metrics-port <number>', 'port of the metrics (default 10013)')
    .option('--empty', 'do not seed a small network on an empty node', false)
    .option('--seed <text>', 'make the seeded network the same each time')
    .option('--sim-time', 'time stands still until POST /v2/time advances it', false)
    .option('--json', 'print one line of JSON when ready', false)
    .addHelpText(
      'after',
      `
Examples:
  annals start
  annals start --data ./my-data --scan-port 0 --json
  annals start -f validator-values.yaml -p participant-values.yaml --secrets secrets/`,
    )
    .action(async (args) => {
      const { runStart } = await import('./start.ts')
      context.finish(await runStart(args, context))
    })
}

export function importCommand(context: CommandContext): Command {
  return addSourceOptions(addDataOption(new Command('import')))
    .description('Append updates from NDJSON files to the history of a stopped node.')
    .argument('<files...>', 'files, plain or compressed with gzip or zstd; - is standard input')
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
    .action(async (files, args) => {
      const { runImport } = await import('./import.ts')
      context.finish(await runImport({ ...args, files }, context))
    })
}

export function exportCommand(context: CommandContext): Command {
  return addSourceOptions(addDataOption(new Command('export')))
    .description('Write the updates of a stopped node as NDJSON.')
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
    .action(async (args) => {
      const { runExport } = await import('./export.ts')
      context.finish(await runExport(args, context))
    })
}

export function verifyCommand(context: CommandContext): Command {
  return addSourceOptions(addDataOption(new Command('verify')))
    .description('Check the stored history of a stopped node completely.')
    .option(
      '--against <urls...>',
      'compare it with what these scans, and those they list, agree on',
    )
    .option('--from <position>', 'with --against: the first position', parsePosition)
    .option('--to <position>', 'with --against: the position to end before', parsePosition)
    .option('--no-discovery', 'with --against: ask only the scans that it names')
    .option('--json', 'report progress and result as JSON lines', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 sound, 1 a fault was found, 2 wrong arguments.

Examples:
  annals verify --data ./my-data
  annals verify --against https://scan.sv-1.example.net --from 1,2025-06-01T00:00:00Z`,
    )
    .action(async (args) => {
      if (args.against !== undefined) {
        const { runVerifyAgainst } = await import('./verify-against.ts')
        context.finish(await runVerifyAgainst(args, context))
        return
      }
      const { runVerify } = await import('./verify.ts')
      context.finish(await runVerify(args, context))
    })
}

export function addDataOption(command: Command): Command {
  return command.option(
    '--data <directory>',
    'where the node keeps its data (default ./annals-data)',
  )
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
