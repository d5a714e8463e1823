import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorsOf, readFiles } from '../../test/support/config-files.ts'
import { parseEnvFile } from './env-file.ts'
import { nearestWord } from './nearest.ts'
import { guessPath } from './yaml-file.ts'

const VALUES = 'validator-values.yaml'

function only(files: Record<string, string | Uint8Array>) {
  const errors = errorsOf(readFiles(files))
  assert.equal(errors.length, 1, JSON.stringify(errors.map(({ message }) => message)))
  const [error] = errors
  assert.ok(error?.place !== undefined)
  return { ...error, at: [error.place.line, error.place.column] }
}

test('an unquoted star is told at its key, with the remedy', () => {
  const problem = only({
    [VALUES]: 'participantPruningSchedule:\n  cron: */10 * * * * ?\n  maxDuration: 5m\n',
  })
  assert.equal(problem.key, 'participantPruningSchedule.cron')
  assert.equal(problem.at[0], 2)
  assert.match(problem.hint ?? '', /quotes/)
})

const BROKEN: [fact: string, text: string, line: number][] = [
  ['a tab that indents', 'migration:\n\tid: 3\n', 2],
  ['a quote that is never closed', 'contactPoint: "x\nenableWallet: true\n', 1],
  ['a bracket that is never closed', 'validatorWalletUsers: [a, b\nenableWallet: true\n', 1],
  ['an indentation that fits nothing', 'migration:\n    id: 3\n  migrating: false\n', 3],
  ['a line without a colon', 'contactPoint: x\nenableWallet\n', 2],
  ['a template that was not rendered', 'migration:\n  id: {{ .Values.id }}\n', 2],
]

for (const [fact, text, line] of BROKEN) {
  test(`${fact} is a problem with its line`, () => {
    const errors = errorsOf(readFiles({ [VALUES]: text }))
    assert.ok(
      errors.some(({ place }) => place?.line === line),
      JSON.stringify(errors),
    )
  })
}

test('what is never closed is told where it opens, however long the file goes on', () => {
  const rest = 'enableWallet: true\n'.concat('# more\n'.repeat(9), 'nodeIdentifier: x\n')
  for (const open of ['"x', "'x", '[x', '{ x: 1', '[ "a", [b ]']) {
    const problem = only({ [VALUES]: `migration:\n  id: ${open}\n${rest}` })
    assert.equal(problem.key, 'migration.id')
    assert.equal(problem.at[0], 2)
    assert.match(problem.message, /never closed/)
  }
})

test('a key that is given twice is refused at the second', () => {
  const problem = only({ [VALUES]: 'contactPoint: a\nenableWallet: true\ncontactPoint: b\n' })
  assert.equal(problem.rule, 'duplicate-key')
  assert.deepEqual(problem.at, [3, 1])
})

test('nothing is said to be missing in a file that cannot be read', () => {
  const files = {
    [VALUES]: 'a: [\n',
    'participant-values.yaml':
      'disableAuth: true\nadditionalJvmOptions: -Dhttps.proxyHost=p -Dhttps.proxyPort=1\n',
  }
  assert.ok(
    errorsOf(readFiles(files, { TRUSTED_SCAN_URL: 'https://scan.x.net' })).every(
      ({ rule }) => rule === 'yaml' || rule === 'required',
    ),
  )
})

test('empty files, and files of comments, are files without settings', () => {
  for (const text of ['', '\n', '# nothing\n', '---\n', '{}\n', 'null\n']) {
    assert.deepEqual(
      readFiles({ [VALUES]: text, 'participant-values.yaml': text }).problems,
      [],
      JSON.stringify(text),
    )
  }
})

test('a file that is no map, or holds several documents, is refused', () => {
  assert.match(only({ [VALUES]: '- a\n- b\n' }).message, /not a map/)
  assert.match(only({ [VALUES]: 'just text\n' }).message, /not a map/)
  assert.match(
    only({ [VALUES]: 'contactPoint: a\n---\ncontactPoint: b\n' }).message,
    /several YAML documents/,
  )
})

test('a byte order mark and the line ends of other systems change nothing', () => {
  const text = '\uFEFFcontactPoint: a\r\nmigration:\r\n  id: "x"\r\n'
  const problem = only({ [VALUES]: text })
  assert.equal(problem.key, 'migration.id')
  assert.deepEqual(problem.at, [3, 7])
})

test('a file that is not UTF-8 is refused where it stops being so', () => {
  const bytes = Buffer.concat([
    Buffer.from('contactPoint: "M'),
    Buffer.from([0xfc]),
    Buffer.from('ller"\n'),
  ])
  assert.match(only({ [VALUES]: bytes }).message, /UTF-8/)
  assert.match(
    only({ [VALUES]: Buffer.from('contactPoint: a\n', 'utf16le') }).message,
    /unknown|UTF-8|map|YAML/,
  )
})

test('a huge file is refused by its size, before it is read', () => {
  assert.match(only({ [VALUES]: `#${'x'.repeat(2 * 1024 * 1024)}\n` }).message, /bytes/)
})

test('aliases and merge keys are followed', () => {
  const text =
    'contactPoint: &who ops\nannals:\n  ports: &ports\n    ledger: 1\n    scan: 2\nvalidatorWalletUsers: [*who]\nmetrics:\n  release: *who\n'
  const { config, problems } = readFiles({ [VALUES]: text })
  assert.deepEqual(problems, [])
  assert.deepEqual(config?.wallet.users, ['ops'])
  const merged = readFiles({
    [VALUES]: 'annals:\n  ports:\n    <<: { ledger: 1, scan: 2 }\n    scan: 3\n',
  })
  assert.deepEqual([merged.config?.listen.ports.ledger, merged.config?.listen.ports.scan], [1, 3])
})

test('aliases that multiply do not fill the memory', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < 12; i++)
    lines.push(
      `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    )
  const started = performance.now()
  assert.ok(errorsOf(readFiles({ [VALUES]: `${lines.join('\n')}\n` })).length > 0)
  assert.ok(performance.now() - started < 5000)
})

test('deep nesting is refused, not followed', () => {
  assert.ok(
    errorsOf(readFiles({ [VALUES]: `a: ${'['.repeat(2000)}${']'.repeat(2000)}\n` })).length > 0,
  )
})

test('keys that are numbers or stranger still are read or refused, never dropped', () => {
  assert.equal(only({ [VALUES]: '3: x\n' }).key, '3')
  assert.ok(errorsOf(readFiles({ [VALUES]: '? [a, b]\n: c\n' })).length > 0)
  assert.equal(only({ [VALUES]: '__proto__: { x: 1 }\n' }).key, '__proto__')
  assert.equal(only({ [VALUES]: 'constructor: 1\n' }).key, 'constructor')
})

test('a file that does not exist is told by its name', async () => {
  const { readConfig } = await import('./config.ts')
  const { problems } = readConfig(
    {
      cwd: '/',
      env: {},
      validatorValues: ['no/such.yaml'],
      envFile: 'no/such.env',
      secrets: 'no/such',
    },
    { parts: [] },
  )
  assert.deepEqual(problems.map(({ path }) => path).sort(), [
    'no/such',
    'no/such.env',
    'no/such.yaml',
  ])
})

function env(text: string) {
  const { variables, problems } = parseEnvFile({ name: '.env', kind: 'file', text, secret: false })
  return {
    values: Object.fromEntries([...variables].map(([name, { text: value }]) => [name, value])),
    variables,
    problems,
  }
}

test('an env file is read as compose reads it', () => {
  const { values, problems } = env(
    '# comment\nA=1\nexport B = two words # note\nC="x\\ny#z"\nD=\'a"b\'\nE=\n\nF="multi\nline"\r\nG=a#b\n',
  )
  assert.deepEqual(problems, [])
  assert.deepEqual(values, {
    A: '1',
    B: 'two words',
    C: 'x\ny#z',
    D: 'a"b',
    E: '',
    F: 'multi\nline',
    G: 'a#b',
  })
})

test('a value of an env file knows its place', () => {
  const { variables } = env('# x\nMIGRATION_ID=v3\nB="q"\n')
  assert.deepEqual(
    [variables.get('MIGRATION_ID')?.place.line, variables.get('MIGRATION_ID')?.place.column],
    [2, 14],
  )
  assert.deepEqual([variables.get('B')?.place.line, variables.get('B')?.place.column], [3, 4])
})

test('a line of an env file that sets nothing is a problem with its line', () => {
  const { problems, values } = env('A=1\nnot a variable\nB=2\n')
  assert.deepEqual(
    problems.map(({ place }) => place?.line),
    [2],
  )
  assert.deepEqual(values, { A: '1', B: '2' })
})

test('the environment wins over the env file', () => {
  const { config } = readFiles({ '.env': 'LOG_LEVEL=debug\nAUTH_URL=\n' }, { LOG_LEVEL: 'ERROR' })
  assert.equal(config?.logLevel, 'error')
})

test('a log level of some other program is a warning', () => {
  const { config, problems } = readFiles({}, { LOG_LEVEL: 'verbose' })
  assert.equal(config?.logLevel, 'info')
  assert.deepEqual(
    problems.map(({ severity }) => severity),
    ['warning'],
  )
})

test('secrets come from a mounted directory, without the newline at their end', () => {
  const { config } = readFiles({
    [VALUES]: 'persistence: { host: h }\n',
    'participant-values.yaml': 'persistence: { host: h, schema: participant }\n',
    'secrets/postgres-secrets/postgresPassword': 'hunter22\n',
    'secrets/postgres-secrets/..data/postgresPassword': 'other',
    'secrets/.ignored': '',
  })
  assert.ok(config?.databases.app.engine === 'postgres')
  assert.equal(config.databases.app.password?.reveal(), 'hunter22')
})

test('a variable of the values may take its text from a secret', () => {
  const files = {
    [VALUES]:
      'additionalEnvVars:\n  - name: ADDITIONAL_CONFIG_X\n    valueFrom: { secretKeyRef: { name: s, key: k } }\n',
    'secrets/s/k':
      'canton.validator-apps.validator_backend.automation.topology-metrics-polling-interval = 2m',
  }
  assert.equal(readFiles(files).config?.metrics.topologyIntervalMs, 120_000)
})

test('a typing mistake finds the word that was meant', () => {
  const words = [
    'validatorPartyHint',
    'validatorWalletUsers',
    'nodeIdentifier',
    'scanAddress',
    'topup',
    'enableWallet',
  ]
  const rows: [string, string | undefined][] = [
    ['validatorPartyHnt', 'validatorPartyHint'],
    ['validator_party_hint', 'validatorPartyHint'],
    ['nodeIdentifer', 'nodeIdentifier'],
    ['ScanAddress', 'scanAddress'],
    ['topUp', 'topup'],
    ['enabledWallet', 'enableWallet'],
    ['completelyElse', undefined],
    ['x', undefined],
    ['y'.repeat(1000), undefined],
  ]
  for (const [typed, meant] of rows) assert.equal(nearestWord(typed, words), meant, typed)
})

test('the key of a line is found by its indentation', () => {
  const text = 'a:\n  b:\n    - c: 1\n      d: 2\n  e: 3\n"f g": 4\n'
  assert.equal(guessPath(text, 4), 'a.b.d')
  assert.equal(guessPath(text, 5), 'a.e')
  assert.equal(guessPath(text, 6), 'f g')
})
