import { Command, InvalidArgumentError } from 'commander'
import { type Instant, parseInstant } from '../values/instant.ts'
import { addSourceOptions } from './check-config.ts'
import { addDataOption, type CommandContext } from './commands.ts'
import type { MirrorArguments } from './mirror-run.ts'
import { mirrorStatusCommand } from './mirror-status.ts'

export function mirrorCommand(context: CommandContext): Command {
  return addSourceOptions(addDataOption(new Command('mirror')))
    .description(
      'Copy the history of a network into a stopped node, checked against several scans.',
    )
    .option('--from <urls...>', 'scans of the network; further ones are found from them')
    .option('--until <time>', 'end with the last update that is not later', parseTime)
    .option('--no-discovery', 'ask only the scans that --from names')
    .option('--json', 'report progress and result as JSON lines', false)
    .addHelpText(
      'after',
      `
Of n scans f = (n-1)/3 may be faulty: 2f+1 are asked, and what f+1 of them say alike is stored.
Run an interrupted copy again: it goes on where it ended.

Exit codes: 0 copied, 1 the scans do not agree or answer, 2 wrong arguments.

Examples:
  annals mirror --from https://scan.sv-1.example.net
  annals mirror --from https://a.example https://b.example --until 2025-07-01T00:00:00Z
  annals mirror status`,
    )
    .action(async (args: MirrorArguments) => {
      const { runMirror } = await import('./mirror-run.ts')
      context.finish(await runMirror(args, context))
    })
    .addCommand(mirrorStatusCommand(context))
}

function parseTime(text: string): Instant {
  const time = parseInstant(text)
  if (time === undefined) {
    throw new InvalidArgumentError('A time looks like 2025-06-01T00:00:00Z.')
  }
  return time
}
