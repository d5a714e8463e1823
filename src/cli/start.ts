import type { Logger } from 'pino'
import { createLogs, type LogLevel, type Logs } from '../base/log.ts'
import { readSoftware } from '../base/software.ts'
import type { NodeConfig } from '../config/node-config.ts'
import type { Problem } from '../config/problem.ts'
import { placeText } from '../config/render.ts'
import type { Secret } from '../config/secret.ts'
import { type RunningNode, startNode } from '../node.ts'
import { type ConfigurationArguments, readConfiguration } from './configuration.ts'
import { type CliContext, EXIT, printNumber } from './output.ts'

export type StartArguments = ConfigurationArguments & {
  empty: boolean
  json: boolean
  seed?: string
  simTime?: boolean
}

/**
 * A Ctrl-C reaches the node twice when npm or the launcher passes it on; a second signal that soon
 * is the same one.
 */
const SAME_SIGNAL_MS = 250

/** `annals start`: runs a node until a signal, then closes it in order. */
export async function runStart(args: StartArguments, context: CliContext): Promise<number> {
  const { terminal } = context
  const problems: Problem[] = []
  // A person reads them as they stand; otherwise standard error holds log lines alone.
  const onProblem = terminal.isInteractive
    ? undefined
    : (problem: Problem) => problems.push(problem)
  const config = await readConfiguration(args, context, { onProblem })
  const logs = createLogs({
    level: logLevelOf(config),
    pretty: terminal.isInteractive,
    secrets: secretsIn(config),
  })
  const log = logs.named('annals.config')
  for (const problem of problems) logProblem(log, problem)
  const levels = { configured: logLevelOf(config) }
  const running: { node?: RunningNode } = {}
  // From now on neither of them ends the process.
  process.on('SIGUSR2', () => toggleDebug(logs, levels.configured))
  process.on('SIGHUP', () => running.node && reload(running.node, { args, context, log, levels }))
  const stop = waitForStop()
  const node = await startNode({
    config,
    logs,
    empty: args.empty,
    seed: args.seed,
    simTime: args.simTime ?? false,
  })
  running.node = node
  terminal.stdout.write(args.json ? readyLine(node) : banner(node, config))
  const failure = await Promise.race([stop, node.failed])
  if (!args.json) terminal.stdout.write('Stopping.\n')
  await node.close()
  if (failure !== undefined) throw failure
  return EXIT.ok
}

function logLevelOf(config: NodeConfig): LogLevel {
  return config.logLevel === 'off' ? 'silent' : config.logLevel
}

/** Every secret of the configuration, to keep it out of the log. */
function secretsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const { reveal } = value as Partial<Secret>
  if (typeof reveal === 'function') return [reveal()]
  return Object.values(value).flatMap(secretsIn)
}

/** Between the configured level and debug, for a look at a running node. */
function toggleDebug(logs: Logs, configured: LogLevel): void {
  logs.setLevel(logs.level() === 'debug' ? configured : 'debug')
}

/** Reads the configuration again; what has errors changes nothing. */
async function reload(
  node: RunningNode,
  around: {
    args: StartArguments
    context: CliContext
    log: Logger
    levels: { configured: LogLevel }
  },
): Promise<void> {
  const { args, context, log, levels } = around
  const onProblem = context.terminal.isInteractive
    ? undefined
    : (problem: Problem) => logProblem(log, problem)
  try {
    const config = await readConfiguration(args, context, { onProblem, isRunning: true })
    const { applied, needsRestart } = node.reload(config)
    levels.configured = logLevelOf(config)
    log.info(`Reloaded: ${applied.length === 0 ? 'nothing has changed' : applied.join(', ')}.`)
    if (needsRestart.length > 0) {
      log.warn(`These have changed and need a restart: ${needsRestart.join(', ')}.`)
    }
  } catch (error) {
    log.error(`Not reloaded: ${(error as Error).message}`)
  }
}

function logProblem(log: Logger, problem: Problem): void {
  const { severity, path, message, place, found, hint } = problem
  const record = { key: path, place: placeText(place), found, hint }
  log[{ error: 'error', warning: 'warn', notice: 'info' }[severity] as 'info'](record, message)
}

function readyLine({ urls }: RunningNode): string {
  return `${JSON.stringify({
    event: 'ready',
    ledgerUrl: urls.ledger,
    scanUrl: urls.scan,
    validatorUrl: urls.validator,
    metricsUrl: urls.metrics,
  })}\n`
}

function banner({ urls, history, isSeeded, ledgerOff }: RunningNode, config: NodeConfig): string {
  const updates = history.view.updates
  const nothing =
    config.historyWriter === 'mirror'
      ? 'nothing yet; it copies the history of its network'
      : 'an empty history; fill it with annals import, or submit commands'
  const content = isSeeded
    ? `a new small network, ${printNumber(updates)} updates (start with --empty to leave it out)`
    : updates === 0
      ? nothing
      : `${printNumber(updates)} updates`
  const data = config.dataDir === './annals-data' ? '' : ` --data ${config.dataDir}`
  const token =
    config.auth.disabled || config.auth.participant !== undefined
      ? ''
      : `Token:  npx annals token${data}\n`
  return `Annals ${readSoftware().version} is ready.

  holds      ${content}
  data       ${config.dataDir}
  scan       ${urls.scan}
  ledger     ${urls.ledger}
  validator  ${urls.validator}
  metrics    ${urls.metrics}
${ledgerOff === undefined ? '' : `\nNote:   ${ledgerOff}\n`}
Try:    curl -s ${urls.scan}/v1/updates -d '{"page_size":2}'
${token}Stop:   Ctrl-C
`
}

/** Resolves at the first signal; the second ends the process at once. */
function waitForStop(): Promise<void> {
  let firstAt: number | undefined
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (firstAt !== undefined && performance.now() - firstAt > SAME_SIGNAL_MS) {
          process.exit(EXIT.failed)
        }
        firstAt ??= performance.now()
        resolve()
      })
    }
  })
}
