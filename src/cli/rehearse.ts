import { randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import type { WalletConfig } from '../config/node-config.ts'
import { assume, type Wishes } from '../rehearsal/assumptions.ts'
import type { Rehearsal } from '../rehearsal/rehearse.ts'
import { type Decimal, parseDecimal } from '../values/decimal.ts'
import { addSourceOptions } from './check-config.ts'
import type { ConfigurationArguments } from './configuration.ts'
import { printLine, printNote } from './ledger-client.ts'
import { type CliContext, CommandError, EXIT } from './output.ts'
import { startProgress } from './progress.ts'
import { formatTable } from './table.ts'

type RehearseOptions = ConfigurationArguments & {
  days: number
  seed?: string
  json?: boolean
  price?: Decimal
  income?: number
  balance?: Decimal
  traffic?: number
  trafficPrice?: Decimal
}

/** A year takes minutes; what is longer tells nothing new. */
const DAYS_MAX = 366
/** Acts that a person reads. */
const ACT_ROWS_MAX = 20
const PLOT_COLUMNS = 72

const EXAMPLES = `
Examples:
  annals rehearse -f validator-values.yaml
  annals rehearse -f validator-values.yaml --days 7 --seed monday --income 500
  annals rehearse -f validator-values.yaml --json > rehearsal.json

The automations are the real ones, the ledger is the real one in a temporary directory, and time
jumps. What comes in, what traffic is used and how the price moves is drawn at random: the same seed
gives the same. Nothing of a node is touched, and no secret is needed.`

/** annals rehearse: what the configured automations would do, on a simulated network. */
export function rehearseCommand(context: CliContext): Command {
  return addSourceOptions(new Command('rehearse'))
    .description('Run the configured automations on a simulated network, and show what they cost.')
    .option('--days <number>', 'how long', parseDays, 30)
    .option('--seed <text>', 'what chance follows from (default: drawn, and printed)')
    .option('--price <usd>', 'price of the coin on the first day', parseAmount)
    .option('--income <usd>', 'what each wallet receives a day on average', parseNumber)
    .option('--balance <usd>', 'what each wallet starts with', parseAmount)
    .option('--traffic <bytes>', 'bytes a second that applications send on average', parseNumber)
    .option('--traffic-price <usd>', 'price of a million bytes of traffic', parseAmount)
    .option('--json', 'print JSON for machines: every act, every hour')
    .addHelpText('after', EXAMPLES)
    .action((options: RehearseOptions) => runRehearsal(context, options))
}

async function runRehearsal(context: CliContext, options: RehearseOptions): Promise<void> {
  const { wallet, partyHint } = await readWallet(context, options)
  const seed = options.seed ?? randomBytes(4).toString('hex')
  const assumptions = assume(wallet, wishesOf(options))
  const progress = startProgress(context.terminal, { json: false, name: 'rehearse' })
  const { rehearse } = await import('../rehearsal/rehearse.ts')
  const stop = new AbortController()
  const giveUp = () => stop.abort(new CommandError('The rehearsal was given up.'))
  process.once('SIGINT', giveUp)
  process.once('SIGTERM', giveUp)
  const rehearsal = await rehearse({
    signal: stop.signal,
    wallet,
    partyHint,
    days: options.days,
    seed,
    assumptions,
    onProgress: (day, acts) =>
      progress.report({
        total: options.days,
        done: day,
        updates: acts,
        note: `day ${Math.floor(day)} of ${options.days}`,
      }),
  })
  progress.end()
  await print(context, { rehearsal, isJson: options.json ?? false })
}

async function print(
  context: CliContext,
  { rehearsal, isJson }: { rehearsal: Rehearsal; isJson: boolean },
): Promise<void> {
  const report = await import('../rehearsal/report.ts')
  if (isJson) {
    printLine(context, JSON.stringify(report.rehearsalJson(rehearsal)))
    return
  }
  const tables =
    rehearsal.acts.length === 0
      ? ['No automation did anything.']
      : [
          formatTable(report.ACT_HEADINGS, report.actRows(rehearsal, ACT_ROWS_MAX)),
          formatTable(report.TOTAL_HEADINGS, report.totalRows(rehearsal)),
        ]
  const plots = report.plotsOf(rehearsal, PLOT_COLUMNS)
  const notes = [...report.notesOf(rehearsal), `The seed was ${rehearsal.seed}.`].join('\n')
  printLine(context, [...tables, ...plots, notes].join('\n\n'))
}

async function readWallet(
  { env, terminal }: CliContext,
  options: RehearseOptions,
): Promise<{ wallet: WalletConfig; partyHint: string }> {
  const { readWalletConfig } = await import('../config/config.ts')
  const { validatorValues, participantValues, envFile } = options
  const reading = readWalletConfig(
    {
      env,
      cwd: process.cwd(),
      envFile,
      ...(validatorValues === undefined ? {} : { validatorValues }),
      ...(participantValues === undefined ? {} : { participantValues }),
    },
    options.lenient ?? false,
  )
  const told = reading.problems.filter(({ severity }) => severity !== 'notice')
  if (told.length > 0) {
    const { renderProblems } = await import('../config/render.ts')
    const colours = terminal.isInteractive && !env.NO_COLOR
    terminal.stderr.write(renderProblems(told, { colours, secretTexts: reading.secretTexts }))
  }
  const { wallet, partyHint } = reading
  if (wallet === undefined) {
    throw new CommandError('The configuration has errors; nothing was rehearsed.', EXIT.usage)
  }
  if (!wallet.enabled) {
    throw new CommandError(
      'enableWallet is false, so no automation would run. Write enableWallet: true to rehearse them.',
      EXIT.usage,
    )
  }
  if (wallet.sweeps.length + wallet.autoAccept.length === 0 && wallet.topUp === undefined) {
    printNote(
      { env, terminal },
      'Neither walletSweep, autoAcceptTransfers nor topup is configured, so little will happen.',
    )
  }
  return { wallet, partyHint }
}

function wishesOf(options: RehearseOptions): Wishes {
  const { price, income, balance, traffic, trafficPrice } = options
  return {
    ...(price === undefined ? {} : { price }),
    ...(income === undefined ? {} : { incomeUsd: income }),
    ...(balance === undefined ? {} : { balanceUsd: balance }),
    ...(traffic === undefined ? {} : { trafficPerSecond: traffic }),
    ...(trafficPrice === undefined ? {} : { trafficPrice }),
  }
}

function parseDays(text: string): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (days >= 1 && days <= DAYS_MAX) return days
  throw new InvalidArgumentError(`Days are a whole number from 1 to ${DAYS_MAX}, such as 30.`)
}

function parseAmount(text: string): Decimal {
  const amount = parseDecimal(text)
  if (amount !== undefined && amount > 0n) return amount
  throw new InvalidArgumentError('An amount is a decimal number above 0, such as 0.15.')
}

function parseNumber(text: string): number {
  if (/^\d{1,9}(\.\d{1,6})?$/.test(text)) return Number(text)
  throw new InvalidArgumentError('A number is from 0 to 999999999, such as 500.')
}
