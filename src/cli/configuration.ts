import type { NodeConfig } from '../config/node-config.ts'
import type { Part } from '../config/parts.ts'
import type { Problem } from '../config/problem.ts'
import { type CliContext, CommandError, EXIT } from './output.ts'

/** The parts of the house that stand; settings of others are said to have no effect. */
export const EXISTING_PARTS: readonly Part[] = [
  'listen',
  'log',
  'scan',
  'users',
  'postgres',
  'tls',
  'proxy',
  'health',
  'metrics',
  'topologyMetrics',
  'deployment',
  'ledger',
  'migration',
  'onboarding',
  'mirror',
  'wallet',
  'pruning',
  'sweep',
  'autoAccept',
  'topUp',
]

/** Where the configuration is, and the flags that win over it. */
export type ConfigurationArguments = {
  validatorValues?: string[]
  participantValues?: string[]
  postgresValues?: string[]
  envFile?: string
  secrets?: string
  lenient?: boolean
  data?: string
  bind?: string
  ledgerPort?: string
  scanPort?: string
  validatorPort?: string
  metricsPort?: string
}

const FLAGS = {
  data: { flag: '--data', key: 'annals.dataDir' },
  bind: { flag: '--bind', key: 'annals.bindAddress' },
  ledgerPort: { flag: '--ledger-port', key: 'annals.ports.ledger' },
  scanPort: { flag: '--scan-port', key: 'annals.ports.scan' },
  validatorPort: { flag: '--validator-port', key: 'annals.ports.validator' },
  metricsPort: { flag: '--metrics-port', key: 'annals.ports.metrics' },
} as const

/** Reads and checks the configuration; problems go to standard error, and errors end the command. */
export async function readConfiguration(
  args: ConfigurationArguments,
  { env, terminal }: CliContext,
  options: {
    isQuiet?: boolean
    /** Told of each problem instead of standard error; of a refused start only when `isRunning`. */
    onProblem?: ((problem: Problem) => void) | undefined
    isRunning?: boolean
  } = {},
): Promise<NodeConfig> {
  const { readConfig } = await import('../config/config.ts')
  const { validatorValues, participantValues, postgresValues, envFile, secrets } = args
  const reading = readConfig(
    {
      env,
      cwd: process.cwd(),
      envFile,
      secrets,
      ...(validatorValues === undefined ? {} : { validatorValues }),
      ...(participantValues === undefined ? {} : { participantValues }),
      ...(postgresValues === undefined ? {} : { postgresValues }),
      flags: flagsOf(args),
    },
    { parts: EXISTING_PARTS, lenient: args.lenient ?? false },
  )
  const told = options.isQuiet
    ? reading.problems.filter(({ severity }) => severity === 'error')
    : reading.problems
  const { onProblem, isRunning = false } = options
  if (onProblem !== undefined && (reading.config !== undefined || isRunning)) {
    told.forEach(onProblem)
  } else if (told.length > 0) {
    const { renderProblems } = await import('../config/render.ts')
    const colours = terminal.isInteractive && !env.NO_COLOR
    terminal.stderr.write(renderProblems(told, { colours, secretTexts: reading.secretTexts }))
  }
  if (reading.config === undefined) {
    throw new CommandError('The configuration has errors; nothing was started.', EXIT.usage)
  }
  return reading.config
}

function flagsOf(args: ConfigurationArguments): Record<string, { flag: string; value: string }> {
  const flags: Record<string, { flag: string; value: string }> = {}
  for (const name of Object.keys(FLAGS) as (keyof typeof FLAGS)[]) {
    const value = args[name]
    if (value !== undefined) flags[FLAGS[name].key] = { flag: FLAGS[name].flag, value }
  }
  return flags
}
