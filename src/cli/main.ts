import { Command, CommanderError } from 'commander'
import { readSoftware } from '../base/software.ts'
import { exportCommand, importCommand, startCommand, verifyCommand } from './commands.ts'
import { CommandError, EXIT, type Terminal } from './output.ts'

const EXAMPLES = `
Examples:
  annals start
  annals import history.ndjson.zst
  annals verify
  annals export --from 0,2025-06-01T00:00:00Z -o part.ndjson.gz`

/** Errors whose message was written for the user; any other is a mistake of ours and shows its stack. */
const EXPLAINED = new Set([
  'DirectoryLockError',
  'ListenError',
  'DatabaseUnavailable',
  'SchemaError',
])

const terminal: Terminal = {
  stdout: process.stdout,
  stderr: process.stderr,
  isInteractive: process.stderr.isTTY === true,
}
process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  let exitCode: number = EXIT.ok
  const context = {
    terminal,
    finish: (code: number) => {
      exitCode = code
    },
  }
  const program = new Command('annals')
    .description('A node of a Canton-style network: its update history, users and automations.')
    .version(readSoftware().version)
    .addHelpText('after', EXAMPLES)
    .addCommand(startCommand(context))
    .addCommand(importCommand(context))
    .addCommand(exportCommand(context))
    .addCommand(verifyCommand(context))
  for (const command of [program, ...program.commands]) command.exitOverride()
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    return reportError(error)
  }
}

function reportError(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (error instanceof CommandError) {
    terminal.stderr.write(`annals: ${error.message}\n`)
    return error.exitCode
  }
  const { name, message, stack, code } = error as NodeJS.ErrnoException
  // Whoever read our output has seen enough, as `head` does.
  if (code === 'EPIPE') return EXIT.ok
  terminal.stderr.write(`annals: ${EXPLAINED.has(name) ? message : (stack ?? message)}\n`)
  return EXIT.failed
}
