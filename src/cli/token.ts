import { Command } from 'commander'
import { addSourceOptions } from './check-config.ts'
import { addDataOption } from './commands.ts'
import { type ConfigurationArguments, readConfiguration } from './configuration.ts'
import { printLine } from './ledger-client.ts'
import { type CliContext, CommandError, EXIT } from './output.ts'

type TokenOptions = ConfigurationArguments & { user: string; ttl: string }

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const

const EXAMPLES = `
Examples:
  annals token
  annals token --user alice --ttl 15m
  ANNALS_TOKEN=$(annals token) annals users list

Works beside the data directory of a node that has no identity provider configured; with one, get
tokens from it. Whoever can read the key in that directory can make tokens for any user.`

/** annals token: a development token, made with the node's own key. */
export const tokenCommand = (context: CliContext): Command =>
  addSourceOptions(addDataOption(new Command('token')))
    .description('Print a development token for a node without an identity provider.')
    .option('--user <id>', 'user of the token', 'participant_admin')
    .option('--ttl <duration>', 'how long it lives: 90s, 15m, 1h, 7d', '1h')
    .addHelpText('after', EXAMPLES)
    .action((options: TokenOptions) => printToken(context, options))

const printToken = async (context: CliContext, options: TokenOptions): Promise<void> => {
  const ttlSeconds = secondsOf(options.ttl)
  const { auth, dataDir } = await readConfiguration(options, context, { isQuiet: true })
  if (auth.participant !== undefined) {
    throw new CommandError(
      `This node takes its tokens from the provider of ${auth.participant.jwksUrl}, and its own key is off. Get a token there.`,
    )
  }
  const { DEV_AUDIENCE, mintDevToken, readDevKey } = await import('../users/dev-key.ts')
  const key = await readDevKey(dataDir)
  if (key === undefined) {
    throw new CommandError(
      `There is no signing key in ${dataDir}. Start the node once, then ask again; --data names its directory.`,
    )
  }
  const token = { userId: options.user, ttlSeconds, audience: DEV_AUDIENCE }
  printLine(context, await mintDevToken(key, token))
}

const secondsOf = (duration: string): number => {
  const match = /^(\d{1,8})([smhd])$/.exec(duration)
  const seconds = Number(match?.[1] ?? 0) * SECONDS[(match?.[2] ?? 's') as keyof typeof SECONDS]
  if (seconds < 1 || seconds > 365 * SECONDS.d) {
    throw new CommandError(
      `--ttl ${duration} is not a duration from 1s to 365d, like 90s, 15m, 1h or 7d.`,
      EXIT.usage,
    )
  }
  return seconds
}
