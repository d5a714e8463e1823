import { Command, Option } from 'commander'
import type { ConfigReading } from '../config/config.ts'
import type { ValuesFile } from '../config/keys.ts'
import { ALL_PARTS, type Part } from '../config/parts.ts'

const EXIT_SOUND = 0
const EXIT_WARNINGS = 1
const EXIT_ERRORS = 2

export type CheckArguments = {
  readonly validatorValues?: readonly string[]
  readonly participantValues?: readonly string[]
  readonly postgresValues?: readonly string[]
  readonly envFile?: string
  readonly secrets?: string
  readonly json?: boolean
  readonly sarif?: boolean
  readonly strict?: boolean
  readonly lenient?: boolean
  readonly explain?: boolean
  readonly example?: ValuesFile | true
  readonly schema?: ValuesFile
  readonly manual?: boolean
}

export type CheckSurroundings = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean }
  /** The parts that this version has. */
  readonly parts: readonly Part[]
  readonly version: string
}

/** Checks a configuration and prints what was asked for. Starts nothing and writes no file. */
export async function checkConfig(
  args: CheckArguments,
  around: CheckSurroundings,
): Promise<number> {
  const { stdout } = around
  const generated = await generatedText(args)
  if (generated !== undefined) {
    stdout.write(generated)
    return EXIT_SOUND
  }
  const { validatorValues, participantValues, postgresValues, envFile, secrets } = args
  const request = {
    env: around.env,
    cwd: around.cwd,
    envFile,
    secrets,
    ...(validatorValues === undefined ? {} : { validatorValues }),
    ...(participantValues === undefined ? {} : { participantValues }),
    ...(postgresValues === undefined ? {} : { postgresValues }),
  }
  const { readConfig } = await import('../config/config.ts')
  const reading = readConfig(request, {
    parts: around.parts,
    lenient: args.lenient ?? false,
    onboarded: 'no',
  })
  await printReading(args, around, reading)
  const severities = new Set(reading.problems.map(({ severity }) => severity))
  if (severities.has('error')) return EXIT_ERRORS
  return args.strict === true && severities.has('warning') ? EXIT_WARNINGS : EXIT_SOUND
}

/** The texts that come from the tables alone. */
async function generatedText(args: CheckArguments): Promise<string | undefined> {
  if (args.example !== undefined) {
    const { exampleOf } = await import('../config/example.ts')
    return exampleOf(args.example === true ? 'validator' : args.example)
  }
  if (args.schema !== undefined) {
    const { printSchema, schemaOf } = await import('../config/schema.ts')
    return `${printSchema(schemaOf(args.schema))}\n`
  }
  if (args.manual === true) return (await import('../config/manual.ts')).manual()
  return undefined
}

async function printReading(
  args: CheckArguments,
  around: CheckSurroundings,
  { problems, settings, secretTexts }: ConfigReading,
): Promise<void> {
  const { countBySeverity, jsonProblem, renderProblems, sarifLog } = await import(
    '../config/render.ts'
  )
  const explain = args.explain === true ? await import('../config/explain.ts') : undefined
  const effective = explain?.effectiveSettings(settings, secretTexts)
  const print = (value: unknown) => around.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
  if (args.sarif === true) {
    print(sarifLog(problems, around.version))
  } else if (args.json === true) {
    const { error, warning, notice } = countBySeverity(problems)
    print({
      ok: error === 0,
      errors: error,
      warnings: warning,
      notices: notice,
      problems: problems.map(jsonProblem),
      ...(effective === undefined ? {} : { settings: effective }),
    })
  } else {
    const colours = around.stdout.isTTY === true && !around.env.NO_COLOR
    if (explain !== undefined && effective !== undefined) {
      around.stdout.write(`${explain.renderEffective(effective)}\n`)
    }
    around.stdout.write(renderProblems(problems, { colours, secretTexts }))
  }
}

const FILES = ['validator', 'participant', 'postgres']

const EXAMPLES = `
Examples:
  annals check -f validator-values.yaml -p participant-values.yaml
  annals check -f validator-values.yaml -p participant-values.yaml --env-file .env --secrets secrets/ --strict
  annals check -f validator-values.yaml --explain
  annals check -f validator-values.yaml --sarif > annals.sarif
  annals check --example > validator-values.yaml
  annals check --schema participant > participant-values.schema.json

Exit codes: 0 sound, 1 warnings with --strict, 2 errors.`

/** The options that `check` and `start` share: where the configuration is. */
export function addSourceOptions(command: Command): Command {
  const collect = (value: string, before: readonly string[] | undefined) => [
    ...(before ?? []),
    value,
  ]
  return command
    .option(
      '-f, --validator-values <file>',
      'validator values (YAML); may be given again, later wins',
      collect,
    )
    .option(
      '-p, --participant-values <file>',
      'participant values (YAML); may be given again, later wins',
      collect,
    )
    .option(
      '--postgres-values <file>',
      'database values (YAML); may be given again, later wins',
      collect,
    )
    .option('--env-file <file>', 'variables, as NAME=value lines; the environment wins over them')
    .option(
      '--secrets <path>',
      'directory of mounted secrets (<secret name>/<entry>), or a file of Secret manifests',
    )
    .option('--lenient', 'unknown keys are warnings')
}

/** The command `check`; `main` adds it and hands over what the version has. */
export function checkCommand(
  options: {
    parts?: readonly Part[]
    version?: string
    /** Told the exit code; without it the process ends with that. */
    finish?: (exitCode: number) => void
  } = {},
): Command {
  const command = new Command('check').description(
    'Check a configuration completely and say what is wrong with it.',
  )
  return addSourceOptions(command)
    .option('--strict', 'exit with 1 when there are warnings')
    .option('--explain', 'print every effective setting with its origin; secrets are masked')
    .addOption(new Option('--json', 'print JSON').conflicts('sarif'))
    .addOption(new Option('--sarif', 'print SARIF 2.1.0, for code scanning'))
    .addOption(
      new Option(
        '--example [file]',
        'print a commented configuration that passes: validator (default), participant or postgres',
      ).choices(FILES),
    )
    .addOption(
      new Option('--schema <file>', 'print the JSON Schema of a values file').choices(FILES),
    )
    .option('--manual', 'print the manual of all settings (Markdown)')
    .addHelpText('after', EXAMPLES)
    .action(async (args: CheckArguments) => {
      const { processEnvironment } = await import('../config/sources.ts')
      const finish = options.finish ?? ((exitCode) => (process.exitCode = exitCode))
      const exitCode = await checkConfig(args, {
        env: processEnvironment(),
        cwd: process.cwd(),
        stdout: process.stdout,
        parts: options.parts ?? ALL_PARTS,
        version: options.version ?? '0.0.0',
      })
      finish(exitCode)
    })
}
