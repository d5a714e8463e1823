import { Command, CommanderError } from 'commander'
import { readSoftware } from '../base/software.ts'
import { processEnvironment } from '../config/sources.ts'
import { auditCommand } from './audit.ts'
import { automationsCommand } from './automations.ts'
import { checkCommand } from './check-config.ts'
import { exportCommand, importCommand, startCommand, verifyCommand } from './commands.ts'
import { EXISTING_PARTS } from './configuration.ts'
import { demoCommand } from './demo.ts'
import { deployCommand } from './deploy.ts'
import { idpsCommand } from './idps.ts'
import { mirrorCommand } from './mirror.ts'
import { CommandError, EXIT, type Terminal } from './output.ts'
import { rehearseCommand } from './rehearse.ts'
import { sponsorCommand } from './sponsor.ts'
import { tokenCommand } from './token.ts'
import { usersCommand } from './users.ts'
import { walletCommand } from './wallet.ts'

const EXAMPLES = `
Examples:
  annals start
  annals check -f validator-values.yaml
  annals import history.ndjson.zst
  annals verify
  annals users list`

/** Errors whose message was written for the user; any other is a mistake of ours and shows its stack. */
const EXPLAINED = new Set([
  'DamagedHistoryError',
  'DatabaseSetupError',
  'DatabaseUnavailable',
  'DirectoryLockError',
  'ListenError',
  'OnboardingError',
  'ParticipantError',
  'SchemaError',
  'TlsError',
])

/** How SQLite, PostgreSQL and the operating system say that they cannot write. */
const DISK_CODES = new Set([
  'SQLITE_FULL',
  'SQLITE_IOERR',
  '53100',
  'ENOSPC',
  'EDQUOT',
  'EFBIG',
  'EIO',
])

const terminal: Terminal = {
  stdout: process.stdout,
  stderr: process.stderr,
  isInteractive: process.stderr.isTTY === true,
}
// Whoever read our output has seen enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(EXIT.ok)
})
process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  let exitCode: number = EXIT.ok
  const context = {
    env: processEnvironment(),
    terminal,
    finish: (code: number) => {
      exitCode = code
    },
  }
  const { version } = readSoftware()
  const program = new Command('annals')
    .description('A node of a Canton-style network: its update history, users and automations.')
    .version(version)
    .addHelpText('after', EXAMPLES)
    .addCommand(startCommand(context))
    .addCommand(checkCommand({ ...context, parts: EXISTING_PARTS, version }))
    .addCommand(deployCommand(context))
    .addCommand(importCommand(context))
    .addCommand(exportCommand(context))
    .addCommand(verifyCommand(context))
    .addCommand(mirrorCommand(context))
    .addCommand(tokenCommand(context))
    .addCommand(usersCommand(context))
    .addCommand(idpsCommand(context))
    .addCommand(auditCommand(context))
    .addCommand(walletCommand(context))
    .addCommand(automationsCommand(context))
    .addCommand(rehearseCommand(context))
    .addCommand(sponsorCommand(context))
    .addCommand(demoCommand(context))
  for (const command of withSubcommands(program)) command.exitOverride()
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    return reportError(error)
  }
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)]
}

function reportError(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (error instanceof CommandError) {
    terminal.stderr.write(`annals: ${error.message}\n`)
    return error.exitCode
  }
  const { name, message, stack, code } = error as NodeJS.ErrnoException
  if (code !== undefined && DISK_CODES.has(code)) {
    terminal.stderr.write(
      `annals: The disk is full or does not work (${message}). What was stored before is sound; make room and run the same command again.\n`,
    )
    return EXIT.failed
  }
  terminal.stderr.write(`annals: ${EXPLAINED.has(name) ? message : (stack ?? message)}\n`)
  return EXIT.failed
}
