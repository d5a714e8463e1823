import { assembleConfig, identityOf, walletOf } from './assemble.ts'
import { gatherSettings } from './gather.ts'
import type { NodeConfig, WalletConfig } from './node-config.ts'
import { PARTS, type Part } from './parts.ts'
import { type Problem, sortProblems } from './problem.ts'
import { type Onboarded, type RuleContext, settingKey, subjectOf, tell } from './rule-context.ts'
import { checkAuth, checkSecrets } from './rules-auth.ts'
import { checkDatabases } from './rules-databases.ts'
import {
  checkIdentity,
  checkNetworkParameters,
  checkScanConnection,
  checkSequencerConnection,
  isJoining,
} from './rules-network.ts'
import { checkMetrics, checkProxy } from './rules-proxy.ts'
import { checkTls } from './rules-tls.ts'
import { checkMigration, checkPruning, checkTopUp, checkWallet } from './rules-wallet.ts'
import { maskText } from './secret.ts'
import type { Settings } from './settings.ts'
import { readSources, type SourcesRequest } from './sources.ts'

export type ConfigOptions = {
  /** The parts that this version has; settings of others are said to have no effect. */
  readonly parts: readonly Part[]
  /** Unknown keys and keys of the reference charts become warnings. */
  readonly lenient?: boolean
  /** Whether the node is known to be onboarded, so that the onboarding secret may be absent. */
  readonly onboarded?: Onboarded
}

export type ConfigReading = {
  /** All problems at once, in the order of the sources. */
  readonly problems: readonly Problem[]
  /** Undefined when any problem is an error. */
  readonly config: NodeConfig | undefined
  /** What was read, with origins, for `--explain`. */
  readonly settings: Settings
  /** Texts that must not be printed. */
  readonly secretTexts: ReadonlySet<string>
}

/** What must hold between keys and files; each rule tells all that it finds. */
const RULES: readonly ((context: RuleContext) => void)[] = [
  checkNetworkParameters,
  checkIdentity,
  checkScanConnection,
  checkSequencerConnection,
  checkAuth,
  checkSecrets,
  checkDatabases,
  checkMetrics,
  checkProxy,
  checkWallet,
  checkTopUp,
  checkPruning,
  checkMigration,
  checkTls,
]

/** Reads everything that an operator gave, checks it whole, and yields the options of the parts. */
export function readConfig(request: SourcesRequest, options: ConfigOptions): ConfigReading {
  const sources = readSources(request)
  const { settings, problems, secretTexts } = gatherSettings(sources, options.lenient ?? false)
  const joining = isJoining({ settings, problems })
  const context: RuleContext = {
    settings,
    sources,
    problems,
    joining,
    onboarded: options.onboarded ?? 'unknown',
  }
  for (const rule of RULES) rule(context)
  noteMissingParts(context, options.parts)
  const sorted = sortProblems(problems.map((problem) => masked(problem, secretTexts)))
  const wrong = sorted.some(({ severity }) => severity === 'error')
  return {
    problems: sorted,
    config: wrong ? undefined : assembleConfig(context),
    settings,
    secretTexts,
  }
}

export type WalletReading = Pick<ConfigReading, 'problems' | 'secretTexts'> & {
  /** Undefined when any problem is an error. */
  readonly wallet: WalletConfig | undefined
  readonly partyHint: string
}

/** What the configuration says about wallets and automations; neither secrets nor a network are needed. */
export function readWalletConfig(request: SourcesRequest, lenient: boolean): WalletReading {
  const sources = readSources(request)
  const { settings, problems, secretTexts } = gatherSettings(sources, lenient)
  const context: RuleContext = {
    settings,
    sources,
    problems,
    joining: false,
    onboarded: 'unknown',
  }
  for (const rule of [checkWallet, checkTopUp]) rule(context)
  const sorted = sortProblems(problems.map((problem) => masked(problem, secretTexts)))
  const wrong = sorted.some(({ severity }) => severity === 'error')
  return {
    problems: sorted,
    wallet: wrong ? undefined : walletOf(context),
    partyHint: identityOf(context).partyHint,
    secretTexts,
  }
}

/** One notice for each block and part, at the first setting that is in use. */
function noteMissingParts(context: RuleContext, parts: readonly Part[]): void {
  const told = new Set<string>()
  for (const setting of context.settings.all()) {
    const part = setting.key?.part
    if (part === undefined || parts.includes(part)) continue
    const key = settingKey(setting)
    const block =
      setting.file === 'canton' || key.startsWith('canton.') ? key : (key.split('.')[0] as string)
    if (told.has(`${part}:${block}`)) continue
    told.add(`${part}:${block}`)
    tell(context, 'notice', {
      rule: 'no-effect',
      about: subjectOf(setting),
      message: `${block} has no effect, because it belongs to ${PARTS[part]}, which this version does not have yet.`,
    })
  }
}

function masked(problem: Problem, secretTexts: ReadonlySet<string>): Problem {
  return problem.found === undefined
    ? problem
    : { ...problem, found: maskText(problem.found, secretTexts) }
}
