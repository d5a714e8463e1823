import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { readSoftware } from '../base/software.ts'
import { type ConfigReading, readConfig } from '../config/config.ts'
import { renderProblems } from '../config/render.ts'
import { resolvePath } from '../config/rules-tls.ts'
import { maskText } from '../config/secret.ts'
import { readSources, type SourcesRequest } from '../config/sources.ts'
import { HOCON_PREFIX, VARIABLES } from '../config/variables.ts'
import { composeYaml } from '../deploy/compose.ts'
import { databaseNotes } from '../deploy/database-server.ts'
import { kubernetesYaml } from '../deploy/kubernetes.ts'
import {
  DeployError,
  type DeployRequest,
  type GivenFile,
  type GivenValues,
  type GivenVariable,
} from '../deploy/request.ts'
import { type ConfigurationArguments, EXISTING_PARTS } from './configuration.ts'
import { type CliContext, CommandError, EXIT } from './output.ts'

export type DeployArguments = ConfigurationArguments & { image?: string }

/** A shorter secret is a word that any file may hold; the sources are searched for every length. */
const SECRET_LENGTH_SEARCHED_MIN = 6

/** Entries of secrets that are public by nature, and stand in values files too. */
const PUBLIC_ENTRIES = /\/(?:url|client-id|audience|scope|ledger-api-user)$/

const PRINTERS = { kubernetes: kubernetesYaml, compose: composeYaml }

export type DeployTarget = keyof typeof PRINTERS

export async function runDeploy(
  target: DeployTarget,
  args: DeployArguments,
  { env, terminal }: CliContext,
): Promise<void> {
  const request = sourcesRequest(args, env)
  const reading = readConfig(request, {
    parts: [...EXISTING_PARTS, 'deployment'],
    lenient: args.lenient ?? false,
  })
  const told = reading.problems.filter(({ severity }) => severity !== 'notice')
  if (told.length > 0) {
    const colours = terminal.isInteractive && !env.NO_COLOR
    terminal.stderr.write(renderProblems(told, { colours, secretTexts: reading.secretTexts }))
  }
  const deployment = deployRequest(reading, request, args)
  for (const note of databaseNotes(deployment)) terminal.stderr.write(`Note: ${note}\n`)
  terminal.stdout.write(print(target, deployment, hiddenTexts(reading)))
}

/** What would be deployed, from a reading of the same sources. */
export function deployRequest(
  reading: ConfigReading,
  request: SourcesRequest,
  args: DeployArguments,
): DeployRequest {
  const { config, settings } = reading
  if (config === undefined) {
    throw new CommandError('The configuration has errors; nothing was printed.', EXIT.usage)
  }
  const hidden = hiddenTexts(reading)
  const values = [
    ...valuesOf('validator', request.validatorValues, request.cwd, hidden),
    ...valuesOf('participant', request.participantValues, request.cwd, hidden),
  ]
  return {
    config,
    settings,
    image: args.image ?? `annals:${readSoftware().version}`,
    isLenient: args.lenient ?? false,
    values,
    variables: variablesOf(request, values, hidden),
    envFile: request.envFile,
    hasSecrets: request.secrets !== undefined,
    files: filesOf(reading, request),
  }
}

function print(target: DeployTarget, deployment: DeployRequest, hidden: Set<string>): string {
  try {
    const text = PRINTERS[target](deployment)
    const leaks = [...hidden].some(
      (secret) => secret.length >= SECRET_LENGTH_SEARCHED_MIN && text.includes(secret),
    )
    if (leaks) {
      throw new DeployError(
        'The output would hold the text of a secret, so nothing was printed. Move the secret out of the keys that describe the pod.',
      )
    }
    return text
  } catch (error) {
    if (!(error instanceof DeployError)) throw error
    throw new CommandError(error.message, EXIT.usage)
  }
}

function sourcesRequest(args: DeployArguments, env: CliContext['env']): SourcesRequest {
  const { validatorValues, participantValues, postgresValues, envFile, secrets } = args
  return {
    env,
    cwd: process.cwd(),
    envFile,
    secrets,
    ...(validatorValues === undefined ? {} : { validatorValues }),
    ...(participantValues === undefined ? {} : { participantValues }),
    ...(postgresValues === undefined ? {} : { postgresValues }),
  }
}

/** The texts of secrets, those left out that are no secrets. */
function hiddenTexts({ settings, secretTexts }: ConfigReading): Set<string> {
  const hidden = new Set(secretTexts)
  for (const { file, name, value } of settings.all()) {
    if (file === 'secret' && PUBLIC_ENTRIES.test(name)) hidden.delete(String(value))
  }
  hidden.delete('')
  return hidden
}

function holdsSecret(text: string, hidden: Set<string>): boolean {
  return [...hidden].some((secret) => text.includes(secret)) || maskText(text, []) !== text
}

function valuesOf(
  app: GivenValues['app'],
  paths: readonly string[] | undefined,
  cwd: string,
  hidden: Set<string>,
): GivenValues[] {
  return (paths ?? []).map((path) => {
    const text = readFileSync(resolve(cwd, path), 'utf8')
    return { app, path, text, holdsSecret: holdsSecret(text, hidden) }
  })
}

/** The variables that the node would read, and those that settings in HOCON refer to. */
function variablesOf(
  request: SourcesRequest,
  values: readonly GivenValues[],
  hidden: Set<string>,
): GivenVariable[] {
  const { variables } = readSources(request)
  const known = new Map(VARIABLES.map((variable) => [variable.name, variable]))
  const isRead = (name: string) => known.has(name) || name.startsWith(HOCON_PREFIX)
  const read = [...variables].filter(([name]) => isRead(name))
  const texts = [...read.map(([, { text }]) => text), ...values.map(({ text }) => text)]
  const referred = new Set(
    texts.flatMap((text) => [...text.matchAll(/\$\{\??(\w+)\}/g)].map((match) => match[1])),
  )
  return [...variables]
    .filter(([name]) => isRead(name) || referred.has(name))
    .map(([name, { text, place }]) => ({
      name,
      text,
      isSecret: !isRead(name) || known.get(name)?.secret === true || holdsSecret(text, hidden),
      from: place.source.kind === 'variable' ? ('environment' as const) : ('env-file' as const),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Certificates and keys that settings name by path. */
function filesOf({ settings }: ConfigReading, request: SourcesRequest): GivenFile[] {
  const written = new Set<string>()
  for (const { file, path, value } of settings.all()) {
    const isFile = /(?:-file|\.sslrootcert|\.sslcert|\.sslkey)$/.test(path)
    if (file === 'canton' && isFile && !String(value).includes('-----BEGIN '))
      written.add(String(value))
  }
  return [...written].map((name) => ({ written: name, path: resolvePath(request, name) }))
}
