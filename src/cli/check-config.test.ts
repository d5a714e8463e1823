import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { runCommand } from '../../test/support/command.ts'
import { caseNamed, configCases, requestFor, withFiles } from '../../test/support/config-files.ts'
import { readConfig } from '../config/config.ts'
import { ALL_PARTS } from '../config/parts.ts'
import { type CheckArguments, checkCommand, checkConfig } from './check-config.ts'

const ESCAPE = '\u001b'

type Run = { code: number; output: string }

async function check(
  files: Record<string, string>,
  env: Record<string, string>,
  args: CheckArguments = {},
  terminal = false,
): Promise<Run> {
  using directory = withFiles(files)
  const {
    cwd,
    flags: _,
    env: variables,
    envFile,
    secrets,
    ...values
  } = requestFor(directory.dir, files, env)
  let output = ''
  const code = await checkConfig(
    {
      ...values,
      ...(envFile === undefined ? {} : { envFile }),
      ...(secrets === undefined ? {} : { secrets }),
      ...args,
    },
    {
      env: variables,
      cwd,
      stdout: { write: (text: string) => (output += text), isTTY: terminal },
      parts: ALL_PARTS,
      version: '1.2.3',
    },
  )
  assert.deepEqual(
    readdirSync(directory.dir).sort(),
    [...new Set(Object.keys(files).map((name) => name.split('/')[0] as string))].sort(),
  )
  return { code, output }
}

test('the exit code is 0 for a sound configuration, 1 for warnings with --strict, 2 for errors', async () => {
  const sound = caseNamed('valid-everything-set')
  assert.equal((await check(sound.files, sound.env, { strict: true })).code, 0)
  const warned = caseNamed('valid-short-namespace')
  assert.equal((await check(warned.files, warned.env)).code, 0)
  assert.equal((await check(warned.files, warned.env, { strict: true })).code, 1)
  const wrong = caseNamed('bad-topup-interval-below-polling')
  assert.equal((await check(wrong.files, wrong.env)).code, 2)
  assert.equal(
    (await check({ 'validator-values.yaml': 'noSuchKey: 1\n' }, {}, { lenient: true })).code,
    0,
  )
})

test('every case names its key in the human, the JSON and the SARIF output', async () => {
  for (const { name, files, env, expect, error_key } of configCases()) {
    for (const args of [{}, { json: true }, { sarif: true }]) {
      const { code, output } = await check(files, env, args)
      assert.equal(code, expect === 'ok' ? 0 : 2, name)
      if (expect === 'error') assert.ok(output.includes(String(error_key)), `${name}: ${output}`)
    }
  }
})

test('a problem is shown with its place, an excerpt, a caret, what is allowed and what to write', async () => {
  const { files, env } = caseNamed('bad-topup-interval-blank')
  const { output } = await check(files, env)
  assert.match(output, /^validator-values\.yaml:28:21 error topup\.minTopupInterval$/m)
  assert.match(output, /^ {2}28 \| {3}minTopupInterval: "1 m"\n {5}\| {21}\^{5}$/m)
  assert.match(output, /found: {3}"1 m"/)
  assert.match(output, /allowed: digits followed by s, m or h/)
  assert.match(output, /try: {5}minTopupInterval: "1m"/)
  assert.match(output, /The configuration is refused: 1 error/)
})

test('a terminal gets colours, unless NO_COLOR is set', async () => {
  const { files, env } = caseNamed('bad-topup-interval-blank')
  assert.ok((await check(files, env, {}, true)).output.includes(`${ESCAPE}[31m`))
  const plain = await check(files, { ...env, NO_COLOR: '1' }, {}, true)
  assert.ok(!plain.output.includes(ESCAPE))
})

test('--json prints counts and problems', async () => {
  const { files, env } = caseNamed('bad-sweep-no-receiver')
  const { output } = await check(files, env, { json: true })
  const report = JSON.parse(output)
  assert.equal(report.ok, false)
  assert.equal(report.errors, 1)
  const problem = report.problems.find(({ severity }: { severity: string }) => severity === 'error')
  assert.equal(problem.key, 'walletSweep.receiver')
  assert.match(problem.path, /^walletSweep\."acme-validator-1::1220/)
  assert.equal(problem.source, 'validator-values.yaml')
  assert.equal(problem.line, 30)
})

test('--sarif prints a log that code scanning takes', async () => {
  const { files, env } = caseNamed('bad-participant-port-range')
  const log = JSON.parse((await check(files, env, { sarif: true })).output)
  assert.equal(log.version, '2.1.0')
  const [run] = log.runs
  const result = run.results.find(({ level }: { level: string }) => level === 'error')
  assert.equal(run.tool.driver.rules[result.ruleIndex].id, result.ruleId)
  const { artifactLocation, region } = result.locations[0].physicalLocation
  assert.equal(artifactLocation.uri, 'participant-values.yaml')
  assert.deepEqual(region, { startLine: 8, startColumn: 9, endColumn: 14 })
})

test('--explain prints each effective setting with its origin', async () => {
  const { files, env } = caseNamed('valid-everything-set')
  const { output } = await check(
    files,
    { ...env, MIN_TRAFFIC_TOPUP_INTERVAL: '2m' },
    { explain: true },
  )
  assert.match(output, /^validatorPartyHint +acme-validator-1 +validator-values\.yaml:8:21$/m)
  assert.match(output, /^topup\.minTopupInterval +2m +MIN_TRAFFIC_TOPUP_INTERVAL:1:1$/m)
  assert.match(output, /^annals\.ports\.ledger +7575 +default$/m)
  assert.match(
    output,
    /topology-metrics-polling-interval +5m +validator-values\.yaml:\d+:\d+ \(ADDITIONAL_CONFIG_TOPOLOGY_METRICS_EXPORT\)$/m,
  )
  assert.match(output, /^onboarding\/secret +\*{4} +ONBOARDING_SECRET:1:1$/m)
  const settings = JSON.parse(
    (await check(files, env, { explain: true, json: true })).output,
  ).settings
  assert.ok(settings.length > 60)
})

test('--explain shows no default of a block that is not in use', async () => {
  const { output } = await check({}, {}, { explain: true })
  assert.match(output, /^annals\.bindAddress +127\.0\.0\.1 +default$/m)
  assert.doesNotMatch(output, /^(?:persistence|topup|scanClient|db|auth|# postgres)/m)
  const used = await check(
    { 'validator-values.yaml': 'persistence: { host: h }' },
    {},
    { explain: true },
  )
  assert.match(used.output, /^persistence\.port +5432 +default$/m)
})

test('the command ends with the code of the check', async (t) => {
  using directory = withFiles({ 'v.yaml': 'contactPoint: 5\n', 'w.yaml': 'enableWallet: yes\n' })
  const run = async (...args: string[]) =>
    (await runCommand(t, ['check', ...args], { cwd: directory.dir, env: { PATH: '' } })).code
  assert.deepEqual(
    await Promise.all([run(), run('-f', 'v.yaml'), run('-f', 'w.yaml', '--strict')]),
    [0, 2, 1],
  )
})

const PLANTED = {
  onboarding: 'PLANTED-onboarding-7f3a',
  password: 'PLANTED-password-91bc',
  compose: 'PLANTED-compose-44de',
  client: 'PLANTED-client-secret-0a2b',
  token: 'PLANTED-token-cc17',
  user: 'PLANTED-user-5521',
  hocon: 'PLANTED-hocon-e9e9',
  listed: 'PLANTED-listed-b00b',
  override: 'PLANTED-override-1d1d',
  typo: 'PLANTED-typo-8888',
  url: 'PLANTED-url-3434',
  proxy: 'PLANTED-proxy-6161',
  dotenv: 'PLANTED-dotenv-2727',
  referenced: 'PLANTED-referenced-f0f0',
} as const

test('no secret appears in any output, whatever is wrong around it', async () => {
  const base = caseNamed('valid-legacy-keys-defaults')
  const validator = `${(base.files['validator-values.yaml'] as string).replace('host: postgres', `host: postgres\n  port: "x"\n  secretOverrides: { postgresPassword: ${PLANTED.override}, pasword: "${PLANTED.typo}" }`)}
clientsecret: ${PLANTED.typo}
decentralizedSynchronizerUrl: "https://me:${PLANTED.url}@seq.example.net"
additionalJvmOptions: -Dhttps.proxyHost=p -Dhttps.proxyPort=x -Dhttps.proxyPassword=${PLANTED.proxy}
additionalEnvVars:
  - name: SPLICE_APP_POSTGRES_PASSWORD
    value: ${PLANTED.listed}
  - name: ADDITIONAL_CONFIG_REFERENCED
    valueFrom: { secretKeyRef: { name: hidden, key: hocon } }
  - name: ADDITIONAL_CONFIG_LISTED
    value: canton.participants.participant.storage.config.properties { password = ${PLANTED.hocon}, sslmode = wrong }
`
  const files = {
    'validator-values.yaml': validator,
    'participant-values.yaml': base.files['participant-values.yaml'] as string,
    '.env': `VALIDATOR_AUTH_CLIENT_SECRET=${PLANTED.client}\nMIGRATION_ID=x\nSPLICE_DB_PASSWORD="${PLANTED.dotenv}\n`,
    'secrets/postgres-secrets/postgresPassword': PLANTED.password,
    'secrets/splice-app-validator-ledger-api-auth/client-secret': PLANTED.client,
    'secrets/splice-app-validator-ledger-api-auth/token': PLANTED.token,
    'secrets/splice-app-validator-ledger-api-auth/ledger-api-user': PLANTED.user,
    'secrets/splice-app-validator-ledger-api-auth/url': `not a url ${PLANTED.url}`,
    'secrets/splice-app-validator-ledger-api-auth/audience': PLANTED.token,
    'secrets/hidden/hocon': `canton.participants.participant.ledger-api.tls { password = "${PLANTED.referenced}" ]`,
  }
  const env = {
    SPONSOR_SV_URL: 'wrong',
    ONBOARDING_SECRET: PLANTED.onboarding,
    SPLICE_DB_PASSWORD: PLANTED.compose,
    ADDITIONAL_CONFIG_BROKEN: `canton.x.password = "${PLANTED.hocon}`,
    ADDITIONAL_CONFIG_RESERVED: `canton.participants.participant.storage.config.properties.password = ${PLANTED.hocon}@x`,
  }
  for (const args of [
    {},
    { json: true },
    { sarif: true },
    { explain: true },
    { explain: true, json: true },
  ]) {
    for (const broken of [false, true]) {
      const given = broken
        ? { ...files, 'validator-values.yaml': `${validator}clientSecret: "${PLANTED.client}\n` }
        : files
      const { output, code } = await check(given, env, args)
      assert.equal(code, 2)
      for (const [where, secret] of Object.entries(PLANTED)) {
        assert.ok(
          !output.includes(secret),
          `${where} in ${JSON.stringify(args)}: ${output.split('\n').find((line) => line.includes(secret))}`,
        )
      }
    }
  }
})

test('a secret that stands below its name is not shown', async () => {
  const text = 'persistence:\n  secretOverrides:\n    postgresPassword:\n      [PLANTED]\n'
  const { output } = await check({ 'participant-values.yaml': text }, {})
  assert.match(output, /participant-values\.yaml:4:7 error/)
  assert.ok(!output.includes('PLANTED'))
})

test('a configuration that is printed shows no secret', () => {
  const { files, env } = caseNamed('valid-with-secrets')
  using directory = withFiles(files)
  const { config } = readConfig(
    requestFor(directory.dir, files, { ...env, SPLICE_DB_PASSWORD: 'not-this-either' }),
    { parts: ALL_PARTS },
  )
  const printed = [
    inspect(config, { depth: 20, showHidden: true }),
    JSON.stringify(config, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
    `${config?.network?.onboardingSecret}`,
  ].join()
  for (const secret of [
    'change-me',
    'not-a-real-secret',
    'not-this-either',
    env.ONBOARDING_SECRET as string,
  ]) {
    assert.ok(!printed.includes(secret), secret)
  }
})

test('generated texts need no configuration', async () => {
  assert.match((await check({}, {}, { example: true })).output, /^svSponsorAddress:/m)
  assert.match((await check({}, {}, { example: 'participant' })).output, /targetAudience/)
  assert.equal(JSON.parse((await check({}, {}, { schema: 'validator' })).output).type, 'object')
  assert.match((await check({}, {}, { manual: true })).output, /^# Configuration/)
})

test('the command has help with examples, and parses its arguments', () => {
  let help = ''
  const command = checkCommand({ version: '1.2.3' }).configureOutput({
    writeOut: (text) => (help += text),
  })
  command.outputHelp()
  for (const word of [
    '--validator-values',
    '--secrets',
    '--strict',
    '--sarif',
    'Examples:',
    'Exit codes',
  ])
    assert.ok(help.includes(word), word)
})

/** A pre-commit hook must not be felt. Far above what it takes, so that a busy machine does not fail the test. */
const CHECK_MS_MAX = 3000

test('a check of the largest case, with the start of its process, is quick', () => {
  const { files } = caseNamed('valid-everything-set')
  using directory = withFiles(files)
  const script = `import { checkCommand } from ${JSON.stringify(join(import.meta.dirname, 'check-config.ts'))}\nawait checkCommand().parseAsync(process.argv.slice(1), { from: 'user' })`
  const run = () => {
    const started = performance.now()
    const { status } = spawnSync(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        script,
        '--',
        '-f',
        'validator-values.yaml',
        '-p',
        'participant-values.yaml',
      ],
      { cwd: directory.dir, env: { PATH: '' } },
    )
    assert.equal(status, 0)
    return performance.now() - started
  }
  const times = [run(), run(), run()]
  assert.ok(Math.min(...times) < CHECK_MS_MAX, times.join())
})
