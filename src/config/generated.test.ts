import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { configCases, readFiles } from '../../test/support/config-files.ts'
import { CANTON_KEYS } from './canton-keys.ts'
import { exampleOf } from './example.ts'
import { VALUES_KEYS, type ValuesFile } from './keys.ts'
import { FORMATS } from './kinds.ts'
import { manual } from './manual.ts'
import { printSchema, schemaOf } from './schema.ts'
import { keyName, stepsOf } from './shape.ts'
import { SECRET_ENTRIES, VARIABLES } from './variables.ts'

const ROOT = join(import.meta.dirname, '../..')
const FILES: ValuesFile[] = ['validator', 'participant', 'postgres']

function inRepository(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

test('docs/configuration.md is what the tables say: annals check --manual', () => {
  assert.equal(inRepository('docs/configuration.md'), manual())
})

for (const file of FILES) {
  test(`schemas/${file}-values.schema.json is what the table says: annals check --schema ${file}`, () => {
    assert.equal(
      inRepository(`schemas/${file}-values.schema.json`),
      `${printSchema(schemaOf(file))}\n`,
    )
  })

  test(`examples/${file}-values.yaml is what the table says: annals check --example ${file}`, () => {
    assert.equal(inRepository(`examples/${file}-values.yaml`), exampleOf(file))
  })
}

test('the examples pass together, and the validator example alone', () => {
  const files = Object.fromEntries(FILES.map((file) => [`${file}-values.yaml`, exampleOf(file)]))
  const severities = readFiles(files).problems.map(({ severity }) => severity)
  assert.ok(
    severities.every((severity) => severity === 'notice'),
    severities.join(),
  )
  const alone = readFiles({ 'validator-values.yaml': exampleOf('validator') })
  assert.ok(alone.config !== undefined)
})

test('the example with every comment opened is still YAML', () => {
  for (const file of FILES) {
    const opened = exampleOf(file)
      .replaceAll(/^# (?=[a-z][a-zA-Z]*:(?: |$))/gm, '')
      .replaceAll(/^# (?= )/gm, '')
    assert.equal(typeof parse(opened), 'object')
  }
})

/** The keys of the specification's tables. */
const SPEC: Record<string, string[]> = {
  variable: [
    'MIGRATION_ID',
    'SPONSOR_SV_URL',
    'ONBOARDING_SECRET',
    'TRUSTED_SCAN_URL',
    'TARGET_TRAFFIC_THROUGHPUT',
    'MIN_TRAFFIC_TOPUP_INTERVAL',
  ],
  validator: [
    'svSponsorAddress',
    'validatorPartyHint',
    'nodeIdentifier',
    'migration.id',
    'migration.migrating',
    'persistence.secretName',
    'persistence.host',
    'persistence.databaseName',
    'persistence.schema',
    'scanAddress',
    'validatorWalletUsers',
    'auth.audience',
    'auth.jwksUrl',
    'contactPoint',
    'enableWallet',
    'disableAuth',
    'participantPruningSchedule',
    'participantPruningSchedule.cron',
    'participantPruningSchedule.maxDuration',
    'participantPruningSchedule.retention',
    'walletSweep',
    'walletSweep.maxBalanceUSD',
    'walletSweep.minBalanceUSD',
    'walletSweep.receiver',
    'walletSweep.useTransferPreapproval',
    'autoAcceptTransfers',
    'autoAcceptTransfers.fromParties',
    'nonSvValidatorTrustSingleScan',
    'useSequencerConnectionsFromScan',
    'decentralizedSynchronizerUrl',
    'additionalJvmOptions',
    'metrics.enable',
    'topup.enabled',
    'topup.targetThroughput',
    'topup.minTopupInterval',
  ],
  participant: [
    'persistence.host',
    'persistence.port',
    'persistence.secretName',
    'persistence.databaseName',
    'persistence.schema',
    'auth.jwksUrl',
    'auth.targetAudience',
    'enableHealthProbes',
    'disableAuth',
    'additionalJvmOptions',
    'metrics.enable',
  ],
  postgres: ['db.volumeSize', 'db.volumeStorageClass', 'persistence.secretName'],
  canton: [
    'tls.cert-chain-file',
    'tls.private-key-file',
    'tls.trust-collection-file',
    'tls.client-auth.type',
    'tls.client-auth.admin-client.cert-chain-file',
    'tls.client-auth.admin-client.private-key-file',
    'tls.minimum-server-protocol-version',
    'tls.ciphers',
    'properties.serverName',
    'properties.databaseName',
    'properties.portNumber',
    'properties.user',
    'properties.password',
    'properties.ssl',
    'properties.sslmode',
    'properties.sslrootcert',
    'properties.sslcert',
    'properties.sslkey',
    'canton.monitoring.metrics.histograms',
    'automation.topology-metrics-polling-interval',
  ],
  secret: [
    'splice-app-validator-ledger-api-auth/ledger-api-user',
    'splice-app-validator-ledger-api-auth/url',
    'splice-app-validator-ledger-api-auth/client-id',
    'splice-app-validator-ledger-api-auth/client-secret',
    'splice-app-validator-ledger-api-auth/audience',
    'splice-app-wallet-ui-auth/url',
    'splice-app-wallet-ui-auth/client-id',
    'splice-app-cns-ui-auth/url',
    'splice-app-cns-ui-auth/client-id',
  ],
}

test('every key of the specification has a row', () => {
  const rows: Record<string, string[]> = {
    variable: VARIABLES.map(({ name }) => name),
    canton: CANTON_KEYS.map(({ path }) => keyName(stepsOf(path))),
    secret: SECRET_ENTRIES.map(({ secret, entry }) => `${secret}/${entry}`),
    ...Object.fromEntries(
      FILES.map((file) => [file, VALUES_KEYS[file].map(({ path }) => keyName(stepsOf(path)))]),
    ),
  }
  for (const [table, keys] of Object.entries(SPEC)) {
    const missing = keys.filter(
      (key) =>
        !rows[table]?.some((row) => row === key || (table === 'canton' && row.endsWith(`.${key}`))),
    )
    assert.deepEqual(missing, [], table)
  }
})

test('no table has two rows for one key, and every row has a sentence', () => {
  for (const rows of [...Object.values(VALUES_KEYS), CANTON_KEYS]) {
    const paths = rows.map(({ path }) => path)
    assert.deepEqual(
      paths.filter((path, index) => paths.indexOf(path) !== index),
      [],
    )
    for (const { path, doc } of rows) assert.match(doc, /[.)]$/, path)
  }
})

test('every example of a row is a value that the row takes', () => {
  for (const rows of Object.values(VALUES_KEYS)) {
    for (const { path, kind, example } of rows) {
      if (example === undefined) continue
      const reading = kind.fromText(String(parse(example)))
      assert.ok('value' in reading, `${path}: ${example}`)
    }
  }
  for (const { name, kind, example } of VARIABLES)
    assert.ok('value' in kind.fromText(example), name)
})

function validators() {
  const ajv = new Ajv({ allowUnionTypes: true, strict: false, allErrors: true })
  for (const [name, kind] of Object.entries(FORMATS)) {
    ajv.addFormat(name, {
      type: 'string',
      validate: (text: string) => 'value' in kind.fromText(text),
    })
  }
  return Object.fromEntries(FILES.map((file) => [file, ajv.compile(schemaOf(file))]))
}

/** Rules that one file can be told to break by itself. */
const SCHEMA_RULES =
  /^(?:kind-.*|unknown-key|map-key|required|wallet-users|scan-client|synchronizer|party-hint)$/

test('the schemas and the check agree on every case that is a matter of one file', () => {
  const validate = validators()
  let refused = 0
  for (const { name, files, env } of configCases()) {
    const { problems } = readFiles(files, env)
    for (const file of FILES) {
      const text = files[`${file}-values.yaml`]
      const here = problems.filter(
        ({ severity, place }) =>
          severity === 'error' && place?.source.name === `${file}-values.yaml`,
      )
      if (text === undefined || here.some(({ rule }) => rule === 'yaml')) continue
      const ours = here.filter(
        ({ rule, key }) => SCHEMA_RULES.test(rule) && key !== 'validatorWalletUser',
      )
      const verdict = validate[file]?.(parse(text))
      assert.equal(
        verdict,
        ours.length === 0,
        `${name}, ${file}: ${JSON.stringify(validate[file]?.errors)} ${JSON.stringify(ours.map(({ key, rule }) => [key, rule]))}`,
      )
      if (!verdict) refused++
    }
  }
  assert.ok(refused > 30, String(refused))
})

test('the schemas accept their examples and refuse unknown keys', () => {
  const validate = validators()
  for (const file of FILES) {
    assert.ok(validate[file]?.(parse(exampleOf(file))), JSON.stringify(validate[file]?.errors))
    assert.ok(!validate[file]?.({ noSuchKey: 1 }))
  }
})
