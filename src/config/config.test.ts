import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  caseNamed,
  configCases,
  errorsOf,
  names,
  readFiles,
  withFiles,
} from '../../test/support/config-files.ts'
import { readConfig } from './config.ts'
import type { Severity } from './problem.ts'

for (const { name, files, env, expect, error_key, why } of configCases()) {
  test(`${name}: ${why}`, () => {
    const reading = readFiles(files, env)
    const errors = errorsOf(reading)
    if (expect === 'ok') {
      assert.deepEqual(errors, [])
      assert.ok(reading.config !== undefined)
    } else {
      assert.ok(
        errors.some((problem) => names(problem, String(error_key))),
        JSON.stringify(errors),
      )
      assert.equal(reading.config, undefined)
    }
  })
}

const ALICE = `alice::1220${'a1b2c3d4'.repeat(8)}`
const BOB = `bob::1220${'0f1e2d3c'.repeat(8)}`

type Change = {
  /** Lines added to the validator values. */
  add?: string
  /** Lines added to the participant values. */
  participant?: string
  /** Top-level keys left out of the validator values. */
  without?: string[]
  withoutParticipant?: string[]
  files?: Record<string, string>
  drop?: string[]
  env?: Record<string, string>
  unset?: string[]
}

/** A case that is known to be sound, with a change. */
function changed({
  add = '',
  participant = '',
  without = [],
  withoutParticipant = [],
  files = {},
  drop = [],
  env = {},
  unset = [],
}: Change) {
  const base = caseNamed('valid-legacy-keys-defaults')
  const leaveOut = (text: string, keys: string[]) =>
    keys.reduce((rest, key) => rest.replace(new RegExp(`^${key}:.*\n(?:[ ].*\n)*`, 'm'), ''), text)
  const all: Record<string, string> = {
    'validator-values.yaml': `${leaveOut(base.files['validator-values.yaml'] as string, without)}${add}\n`,
    'participant-values.yaml': `${leaveOut(base.files['participant-values.yaml'] as string, withoutParticipant)}${participant}\n`,
    ...files,
  }
  for (const name of drop) delete all[name]
  const variables = { ...base.env, ...env }
  for (const name of unset) delete variables[name]
  return readFiles(all, variables)
}

type RuleRow = [fact: string, change: Change, key: string | null, severity?: Severity]

const sweep = (body: string) => `walletSweep:\n  "${ALICE}":\n${body.replace(/^/gm, '    ')}`
const hocon = (text: string) => ({ ADDITIONAL_CONFIG_TEST: text })
const V = 'canton.validator-apps.validator_backend'
const P = 'canton.participants.participant'

const RULES: RuleRow[] = [
  // Identity and network parameters.
  ['a hint is needed to join', { without: ['validatorPartyHint'] }, 'validatorPartyHint'],
  ['an identifier is needed to join', { without: ['nodeIdentifier'] }, 'nodeIdentifier'],
  ['the sponsor may come from the environment alone', { without: ['svSponsorAddress'] }, null],
  [
    'the sponsor may come from the values alone',
    { unset: ['SPONSOR_SV_URL', 'TRUSTED_SCAN_URL', 'MIGRATION_ID', 'ONBOARDING_SECRET'] },
    null,
  ],
  [
    'a scan is needed to join',
    { without: ['scanAddress'], unset: ['TRUSTED_SCAN_URL'] },
    'TRUSTED_SCAN_URL',
  ],
  [
    'a sponsor is needed to join',
    { without: ['svSponsorAddress'], unset: ['SPONSOR_SV_URL'] },
    'SPONSOR_SV_URL',
  ],
  [
    'an onboarding secret is needed to join',
    { without: ['onboardingSecretFrom'], unset: ['ONBOARDING_SECRET'] },
    'ONBOARDING_SECRET',
  ],
  [
    'an empty onboarding secret says that the node is onboarded',
    { without: ['onboardingSecretFrom'], env: { ONBOARDING_SECRET: '' } },
    null,
  ],
  [
    'a development network needs no onboarding secret',
    {
      without: ['onboardingSecretFrom'],
      unset: ['ONBOARDING_SECRET'],
      env: { SPLICE_APP_DEVNET: '1' },
    },
    null,
  ],
  ['two migration ids must agree', { env: { MIGRATION_ID: '4' } }, 'migration.id'],
  ['a migration id may be a number', { without: ['migration'], add: 'migration: { id: 3 }' }, null],
  [
    'a migration id is not negative',
    { without: ['migration'], unset: ['MIGRATION_ID'], add: 'migration: { id: -1 }' },
    'migration.id',
  ],
  [
    'a migration id of the database name with leading zeros is the same',
    {
      withoutParticipant: ['persistence'],
      participant: 'persistence: { host: h, schema: participant, databaseName: participant_03 }',
    },
    null,
  ],
  [
    'a scan URL as sponsor is a warning',
    { without: ['svSponsorAddress'], env: { SPONSOR_SV_URL: 'https://scan.example.net' } },
    'SPONSOR_SV_URL',
    'warning',
  ],
  [
    'a sponsor URL as scan is a warning',
    { without: ['scanAddress'], env: { TRUSTED_SCAN_URL: 'https://sv.example.net' } },
    'TRUSTED_SCAN_URL',
    'warning',
  ],
  [
    'the validator of a super validator has no hint',
    { add: 'svValidator: true' },
    'validatorPartyHint',
  ],
  [
    'an identifier other than the hint is noted',
    { without: ['nodeIdentifier'], add: 'nodeIdentifier: other' },
    'nodeIdentifier',
    'notice',
  ],
  // Scan and sequencer connections.
  [
    'scanClient excludes scanAddress',
    { add: 'scanClient: { scanType: bft, seedUrls: ["https://scan.x.net"] }' },
    'scanAddress',
  ],
  [
    'scanClient excludes nonSvValidatorTrustSingleScan',
    {
      without: ['scanAddress'],
      add: 'nonSvValidatorTrustSingleScan: false\nscanClient: { scanType: bft, seedUrls: ["https://scan.x.net"] }',
    },
    'nonSvValidatorTrustSingleScan',
  ],
  [
    'scanClient without a type reads from many scans',
    { without: ['scanAddress'], add: 'scanClient: { seedUrls: ["https://scan.x.net"] }' },
    null,
  ],
  [
    'a list of seeds is not empty, whatever the type',
    {
      without: ['scanAddress'],
      add: 'scanClient: { scanType: trust-single, scanAddress: "https://scan.x.net", seedUrls: [] }',
    },
    'scanClient.seedUrls',
  ],
  [
    'bft-custom scans need names',
    {
      without: ['scanAddress'],
      add: 'scanClient: { scanType: bft-custom, seedUrls: ["https://scan.x.net"], threshold: 1 }',
    },
    'scanClient.svNames',
  ],
  [
    'bft-custom scans need a threshold',
    {
      without: ['scanAddress'],
      add: 'scanClient: { scanType: bft-custom, seedUrls: ["https://scan.x.net"], svNames: [A] }',
    },
    'scanClient.threshold',
  ],
  [
    'a threshold of scans is reachable',
    {
      without: ['scanAddress'],
      add: 'scanClient: { scanType: bft-custom, seedUrls: ["https://scan.x.net"], svNames: [A], threshold: 2 }',
    },
    'scanClient.threshold',
  ],
  [
    'a trusted scan needs its address',
    { without: ['scanAddress'], add: 'scanClient: { scanType: trust-single }' },
    'scanClient.scanAddress',
  ],
  [
    'a trusted scan is a warning',
    {
      without: ['scanAddress'],
      add: 'scanClient: { scanType: trust-single, scanAddress: "https://scan.x.net" }',
    },
    'scanClient.scanType',
    'warning',
  ],
  [
    'an unknown scan type is refused',
    {
      without: ['scanAddress'],
      add: 'scanClient: { scanType: many, seedUrls: ["https://scan.x.net"] }',
    },
    'scanClient.scanType',
  ],
  [
    'trusting one scan is a warning',
    { add: 'nonSvValidatorTrustSingleScan: true' },
    'nonSvValidatorTrustSingleScan',
    'warning',
  ],
  [
    'trusting one sequencer is a warning',
    {
      add: 'useSequencerConnectionsFromScan: false\ndecentralizedSynchronizerUrl: "https://seq.x.net"',
    },
    'useSequencerConnectionsFromScan',
    'warning',
  ],
  [
    'a sequencer URL without its flag is a warning',
    { add: 'decentralizedSynchronizerUrl: "https://seq.x.net"' },
    'decentralizedSynchronizerUrl',
    'warning',
  ],
  [
    'a sequencer URL is http or https',
    { add: 'synchronizer: { connectionType: trust-single, url: "grpc://seq.x.net" }' },
    'synchronizer.url',
  ],
  [
    'a trusted sequencer needs its URL',
    { add: 'synchronizer: { connectionType: trust-single }' },
    'synchronizer.url',
  ],
  [
    'a trusted sequencer has no names',
    {
      add: 'synchronizer: { connectionType: trust-single, url: "https://seq.x.net", svNames: [A] }',
    },
    'synchronizer.svNames',
  ],
  [
    'bft-custom sequencers have no URL',
    {
      add: 'synchronizer: { connectionType: bft-custom, url: "https://seq.x.net", svNames: [A], threshold: 1 }',
    },
    'synchronizer.url',
  ],
  [
    'bft-custom sequencers need names',
    { add: 'synchronizer: { connectionType: bft-custom, svNames: [], threshold: 1 }' },
    'synchronizer.svNames',
  ],
  [
    'a useless URL of bft is a warning',
    { add: 'synchronizer: { connectionType: bft, url: "https://seq.x.net" }' },
    'synchronizer.url',
    'warning',
  ],
  [
    'bft with everything else is refused',
    {
      add: 'synchronizer: { connectionType: bft, url: "https://seq.x.net", svNames: [A], threshold: 1 }',
    },
    'synchronizer.url',
  ],
  ['an empty synchronizer block counts as absent', { add: 'synchronizer: {}' }, null],
  [
    'a synchronizer block needs a type',
    { add: 'synchronizer: { threshold: 1 }' },
    'synchronizer.connectionType',
  ],
  [
    'old sequencer keys beside synchronizer are a warning',
    { add: 'useSequencerConnectionsFromScan: true\nsynchronizer: { connectionType: bft }' },
    'useSequencerConnectionsFromScan',
    'warning',
  ],
  // Authentication and secrets.
  ['auth of the participant is needed', { withoutParticipant: ['auth'] }, 'auth'],
  [
    'an audience is needed',
    { without: ['auth'], add: 'auth: { jwksUrl: "https://p/jwks" }' },
    'auth.audience',
  ],
  [
    'an empty audience is refused',
    { without: ['auth'], add: 'auth: { jwksUrl: "https://p/jwks", audience: "" }' },
    'auth.audience',
  ],
  [
    'a key set URL is needed',
    { withoutParticipant: ['auth'], participant: 'auth: { targetAudience: x }' },
    'auth.jwksUrl',
  ],
  [
    'disableAuth in both files is a warning',
    { add: 'disableAuth: true', participant: 'disableAuth: true' },
    'disableAuth',
    'warning',
  ],
  [
    'disableAuth makes auth unnecessary',
    {
      without: ['auth'],
      withoutParticipant: ['auth'],
      add: 'disableAuth: true',
      participant: 'disableAuth: true',
    },
    null,
  ],
  [
    'disableAuth without participant values is refused',
    { add: 'disableAuth: true', drop: ['participant-values.yaml'] },
    'disableAuth',
  ],
  [
    'another provider of the validator is a warning',
    { without: ['auth'], add: 'auth: { jwksUrl: "https://other/jwks", audience: x }' },
    'auth.jwksUrl',
    'warning',
  ],
  [
    'an entry of the ledger API secret is needed',
    {
      files: {
        'secrets/splice-app-validator-ledger-api-auth/audience': 'https://ledger-api.acme.example',
        'secrets/postgres-secrets/postgresPassword': 'x',
        'secrets/splice-app-validator-onboarding-validator/secret': 'x',
      },
    },
    'splice-app-validator-ledger-api-auth/client-secret',
  ],
  [
    'a database password is needed when secrets are given',
    { files: { 'secrets/splice-app-validator-onboarding-validator/secret': 'x' } },
    'postgres-secrets/postgresPassword',
  ],
  [
    'a missing secrets directory is told',
    { files: { 'secrets/x': '' } },
    'postgres-secrets/postgresPassword',
  ],
  // Databases.
  [
    'the database name fits the migration',
    { env: { CANTON_PARTICIPANT_POSTGRES_DB: 'participant_9' } },
    'CANTON_PARTICIPANT_POSTGRES_DB',
  ],
  [
    'compose writes the database name with a dash',
    { env: { CANTON_PARTICIPANT_POSTGRES_DB: 'participant-3' } },
    null,
  ],
  [
    'a dash in the values is refused',
    {
      withoutParticipant: ['persistence'],
      participant: 'persistence: { host: h, schema: participant, databaseName: participant-3 }',
    },
    'persistence.databaseName',
  ],
  [
    'a foreign database name is refused',
    {
      withoutParticipant: ['persistence'],
      participant:
        'persistence: { host: h, schema: participant, databaseName: cantonnet_participant }',
    },
    'persistence.databaseName',
  ],
  [
    'a database name may be left out',
    {
      withoutParticipant: ['persistence'],
      participant: 'persistence: { host: h, schema: participant }',
    },
    null,
  ],
  [
    'a database of another migration in the validator values is refused',
    {
      without: ['persistence'],
      add: 'persistence: { host: h, databaseName: participant_2, schema: participant }',
    },
    'persistence.databaseName',
  ],
  [
    'sharing the database of the participant is a warning',
    {
      without: ['persistence'],
      add: 'persistence: { host: h, databaseName: participant_3, schema: participant }',
    },
    'persistence.databaseName',
    'warning',
  ],
  [
    'all apps share one secret',
    { without: ['persistence'], add: 'persistence: { host: h, secretName: other-secrets }' },
    'persistence.secretName',
  ],
  [
    'an app that names no secret reads the default one',
    {
      without: ['persistence'],
      add: 'persistence: { host: h }',
      withoutParticipant: ['persistence'],
      participant: 'persistence: { host: h, schema: participant, secretName: other-secrets }',
    },
    'persistence.secretName is other-secrets here and postgres-secrets by default in the validator values',
  ],
  [
    'the server reads the secret of the apps',
    {
      without: ['persistence'],
      add: 'persistence: { host: h }',
      withoutParticipant: ['persistence'],
      participant: 'persistence: { host: h, schema: participant }',
      files: { 'postgres-values.yaml': 'persistence: { secretName: other-secrets }' },
    },
    'persistence.secretName is other-secrets here and postgres-secrets by default in the participant values',
  ],
  [
    'the same password in two secrets is one password',
    {
      without: ['persistence'],
      add: 'persistence: { host: h, secretName: other-secrets }',
      files: {
        'secrets/postgres-secrets/postgresPassword': 'same',
        'secrets/other-secrets/postgresPassword': 'same',
      },
    },
    null,
  ],
  [
    'an empty database password is none',
    { files: { 'secrets/postgres-secrets/postgresPassword': '\n' } },
    'postgres-secrets/postgresPassword',
  ],
  [
    'the participant of a node with a database has one',
    { withoutParticipant: ['persistence'] },
    'persistence is missing in the participant values',
  ],
  [
    'a port in quotes is refused',
    {
      withoutParticipant: ['persistence'],
      participant: 'persistence: { host: h, schema: participant, port: "5432" }',
    },
    'persistence.port',
  ],
  [
    'a client key needs its certificate',
    { env: hocon(`${P}.storage.config.properties { ssl = true, sslkey = k }`) },
    'sslcert',
  ],
  [
    'an unknown sslmode is refused',
    { env: hocon(`${P}.storage.config.properties.sslmode = verify`) },
    'sslmode',
  ],
  [
    'a root certificate without TLS is a warning',
    { env: hocon(`${P}.storage.config.properties.sslrootcert = "/r"`) },
    'sslrootcert',
    'warning',
  ],
  [
    'a mistyped property is refused',
    { env: hocon(`${P}.storage.config.properties.sslrootcrt = "/r"`) },
    'sslrootcrt',
  ],
  [
    'a volume size is a quantity',
    { files: { 'postgres-values.yaml': 'db: { volumeSize: 50, volumeStorageClass: x }' } },
    'db.volumeSize',
  ],
  [
    'storage keys may stand in the validator values',
    { add: 'db: { volumeSize: 50Gi, volumeStorageClass: standard-rwo }' },
    null,
  ],
  // Proxy.
  [
    'a proxy host needs a port',
    {
      add: 'additionalJvmOptions: -Dhttps.proxyHost=p',
      participant: 'additionalJvmOptions: -Dhttps.proxyHost=p',
    },
    'additionalJvmOptions',
  ],
  [
    'proxy authentication is unsupported',
    {
      add: 'additionalJvmOptions: -Dhttps.proxyHost=p -Dhttps.proxyPort=1 -Dhttps.proxyUser=u',
      participant: 'additionalJvmOptions: -Dhttps.proxyHost=p -Dhttps.proxyPort=1',
    },
    'additionalJvmOptions',
  ],
  [
    'a proxy stands in both files',
    { participant: 'additionalJvmOptions: -Dhttps.proxyHost=p -Dhttps.proxyPort=1' },
    'additionalJvmOptions',
  ],
  [
    'a proxy without participant values is refused',
    {
      add: 'additionalJvmOptions: -Dhttps.proxyHost=p -Dhttps.proxyPort=1',
      drop: ['participant-values.yaml'],
    },
    'additionalJvmOptions',
  ],
  [
    'different proxies are a warning',
    {
      add: 'additionalJvmOptions: -Dhttps.proxyHost=p -Dhttps.proxyPort=1',
      participant: 'additionalJvmOptions: -Dhttps.proxyHost=q -Dhttps.proxyPort=1',
    },
    'additionalJvmOptions',
    'warning',
  ],
  [
    'a proxy port has a range',
    { env: { JAVA_TOOL_OPTIONS: '-Dhttps.proxyHost=p -Dhttps.proxyPort=70000' } },
    'additionalJvmOptions',
  ],
  [
    'a block of lines is one option string',
    {
      add: 'additionalJvmOptions: |\n  -Dhttps.proxyHost=p\n  -Dhttps.proxyPort=3128',
      participant: 'additionalJvmOptions: "-Dhttps.proxyHost=p -Dhttps.proxyPort=3128"',
    },
    null,
  ],
  // Wallet, sweeps, auto-accept.
  [
    'wallet users are needed to join',
    { without: ['validatorWalletUsers'] },
    'validatorWalletUsers',
  ],
  [
    'one wallet user is enough',
    { without: ['validatorWalletUsers'], add: 'validatorWalletUser: "ops@example.com"' },
    null,
  ],
  [
    'the two forms of wallet users exclude each other',
    { add: 'validatorWalletUser: x' },
    'validatorWalletUser',
  ],
  [
    'an empty list of wallet users is noted',
    { without: ['validatorWalletUsers'], add: 'validatorWalletUsers: []' },
    'validatorWalletUsers',
    'notice',
  ],
  [
    'wallet users are a list',
    { without: ['validatorWalletUsers'], add: 'validatorWalletUsers: x' },
    'validatorWalletUsers',
  ],
  [
    'a sweep keeps min below max',
    { add: sweep(`maxBalanceUSD: 10\nminBalanceUSD: 11\nreceiver: "${BOB}"`) },
    'walletSweep.minBalanceUSD',
  ],
  [
    'a sweep with min equal to max is a warning',
    { add: sweep(`maxBalanceUSD: 10\nminBalanceUSD: 10.0\nreceiver: "${BOB}"`) },
    'walletSweep.minBalanceUSD',
    'warning',
  ],
  [
    'a sweep needs a maximum',
    { add: sweep(`minBalanceUSD: 10\nreceiver: "${BOB}"`) },
    'walletSweep.maxBalanceUSD',
  ],
  [
    'a sweep has no unknown member',
    { add: sweep(`maxBalanceUSD: 10\nminBalanceUSD: 1\nreciever: "${BOB}"\nreceiver: "${BOB}"`) },
    'walletSweep.reciever',
  ],
  [
    'a sender is a party id',
    { add: `walletSweep: { alice: { maxBalanceUSD: 2, minBalanceUSD: 1, receiver: "${BOB}" } }` },
    'walletSweep',
  ],
  [
    'sweeps may come from HOCON',
    {
      env: hocon(
        `${V}.wallet-sweep."${ALICE}" { max-balance-usd = 2, min-balance-usd = 3, receiver = "${BOB}" }`,
      ),
    },
    'wallet-sweep.min-balance-usd',
  ],
  [
    'a sweep of HOCON is complete',
    { env: hocon(`${V}.wallet-sweep."${ALICE}" { max-balance-usd = 2, min-balance-usd = 1 }`) },
    'walletSweep.receiver',
  ],
  [
    'a sender of transfers is a party id',
    { add: `autoAcceptTransfers: { "${ALICE}": { fromParties: [bob] } }` },
    'autoAcceptTransfers.fromParties',
  ],
  [
    'a sender of sweeps without settings is told',
    { add: `walletSweep:\n  "${ALICE}":` },
    'walletSweep',
  ],
  [
    'a receiver without senders is told',
    { add: `autoAcceptTransfers:\n  "${ALICE}":` },
    'autoAcceptTransfers',
  ],
  [
    'senders are needed',
    { add: `autoAcceptTransfers: { "${ALICE}": {} }` },
    'autoAcceptTransfers.fromParties',
  ],
  [
    'automations without a wallet are a warning',
    {
      without: ['enableWallet', 'topup'],
      add: `enableWallet: false\n${sweep(`maxBalanceUSD: 2\nminBalanceUSD: 1\nreceiver: "${BOB}"`)}`,
    },
    'walletSweep',
    'warning',
  ],
  [
    'a top-up without a wallet is a warning',
    { without: ['enableWallet'], add: 'enableWallet: false' },
    'topup',
    'warning',
  ],
  [
    'a preapproval is renewed within its lifetime',
    {
      env: hocon(
        `${V}.transfer-preapproval { preapproval-lifetime = 10d, renewal-duration = 10d }`,
      ),
    },
    'renewal-duration',
  ],
  // Top-up.
  ['top-ups may be left out', { without: ['topup'] }, null],
  [
    'an empty top-up block is enabled and incomplete',
    { without: ['topup'], add: 'topup: {}' },
    'topup',
  ],
  [
    '3333 bytes a second for a minute are too few',
    { without: ['topup'], add: 'topup: { targetThroughput: 3333, minTopupInterval: 1m }' },
    'topup.targetThroughput',
  ],
  [
    '3334 bytes a second for a minute are enough',
    { without: ['topup'], add: 'topup: { targetThroughput: 3334, minTopupInterval: 1m }' },
    null,
  ],
  [
    'days are no unit of the charts',
    { without: ['topup'], add: 'topup: { targetThroughput: 20000, minTopupInterval: 1d }' },
    'topup.minTopupInterval',
  ],
  [
    'days are a unit of compose',
    {
      without: ['topup'],
      env: { TARGET_TRAFFIC_THROUGHPUT: '20000', MIN_TRAFFIC_TOPUP_INTERVAL: '1d' },
    },
    null,
  ],
  [
    'an interval is a text',
    { without: ['topup'], add: 'topup: { targetThroughput: 20000, minTopupInterval: 60 }' },
    'topup.minTopupInterval',
  ],
  [
    'the polling interval can be lowered',
    {
      without: ['topup'],
      add: 'topup: { targetThroughput: 20000, minTopupInterval: 20s }',
      env: hocon(`${V}.automation.polling-interval = 10s`),
    },
    null,
  ],
  // Pruning.
  [
    'retention is longer than 24 hours',
    { add: 'participantPruningSchedule: { cron: "0 0 1 * * ?", maxDuration: 5m, retention: 1d }' },
    'participantPruningSchedule.retention',
  ],
  [
    '25 hours are long enough, and noted',
    { add: 'participantPruningSchedule: { cron: "0 0 1 * * ?", maxDuration: 5m, retention: 25h }' },
    'participantPruningSchedule.retention',
    'notice',
  ],
  [
    'a shorter deduplication allows a shorter retention',
    {
      add: 'deduplicationDuration: 1h\nparticipantPruningSchedule: { cron: "0 0 1 * * ?", maxDuration: 5m, retention: 2h }',
    },
    null,
  ],
  [
    'retention is whole seconds',
    {
      add: 'participantPruningSchedule: { cron: "0 0 1 * * ?", maxDuration: 5m, retention: 172800500ms }',
    },
    'participantPruningSchedule.retention',
  ],
  [
    'a schedule is a map',
    { add: 'participantPruningSchedule: "0 0 1 * * ?"' },
    'participantPruningSchedule',
  ],
  // Identity restore.
  [
    'a restored identity keeps its name',
    { add: 'participantIdentitiesDumpImport: { newParticipantIdentifier: other }' },
    'newParticipantIdentifier',
  ],
  [
    'a migrated party needs a dump',
    { add: 'migrateValidatorParty: true' },
    'migrateValidatorParty',
  ],
  // HOCON.
  [
    'a wrong node name is refused',
    { env: hocon('canton.participants.participant1.ledger-api.tls {}') },
    'canton.participants.participant1',
  ],
  [
    'an unknown setting is a warning',
    { env: hocon(`${P}.parameters.batching.max-items = 3`) },
    'parameters.batching',
    'warning',
  ],
  [
    'a substitution finds something',
    { env: hocon(`${V}.contact-point = \${NOBODY}`) },
    'ADDITIONAL_CONFIG_TEST',
  ],
  ['a broken variable names itself', { env: hocon('a {') }, 'ADDITIONAL_CONFIG_TEST'],
  [
    'a variable of the values is read',
    {
      add: `additionalEnvVars:\n  - name: ADDITIONAL_CONFIG_X\n    value: ${V}.automation.topology-metrics-polling-interval = never`,
    },
    'ADDITIONAL_CONFIG_X',
  ],
  [
    'inline certificates are certificates',
    {
      env: hocon(
        `${P}.ledger-api.tls { cert-chain-file = "-----BEGIN CERTIFICATE-----x", private-key-file = k }`,
      ),
    },
    'tls.cert-chain-file',
  ],
  // YAML.
  ['unknown keys are refused', { add: 'validatorPartyHints: x' }, 'validatorPartyHints'],
  [
    'an older boolean is a warning',
    { without: ['enableWallet'], add: 'enableWallet: yes' },
    'enableWallet',
    'warning',
  ],
  ['null means absent', { add: 'walletSweep: null\nautoAcceptTransfers:\nsynchronizer: ~' }, null],
  [
    'metrics.enabled is not metrics.enable',
    { add: 'metrics: { enabled: true }' },
    'metrics.enabled',
  ],
  [
    'our own ports have a range',
    { add: 'annals: { ports: { ledger: 70000 } }' },
    'annals.ports.ledger',
  ],
  [
    'our own page maximum is positive',
    { add: 'annals: { scan: { maxPageSize: 0 } }' },
    'annals.scan.maxPageSize',
  ],
]

for (const [fact, change, key, severity = 'error'] of RULES) {
  test(`${fact}${key === null ? '' : ` (${key})`}`, () => {
    const { problems } = changed(change)
    const errors = problems.filter((problem) => problem.severity === 'error')
    const found = problems.filter(
      (problem) => problem.severity === severity && key !== null && names(problem, key),
    )
    if (key === null || severity !== 'error')
      assert.deepEqual(
        errors.map(({ message }) => message),
        [],
      )
    if (key !== null)
      assert.ok(
        found.length > 0,
        JSON.stringify(problems.map(({ severity, key, message }) => [severity, key, message])),
      )
  })
}

test('a node without any file or parameter runs on its own, on defaults', () => {
  const { problems, config } = readFiles({})
  assert.deepEqual(problems, [])
  assert.equal(config?.network, undefined)
  assert.equal(config?.historyWriter, 'ledger')
  assert.deepEqual(config?.listen.ports, {
    ledger: 7575,
    scan: 5012,
    validator: 5003,
    metrics: 10013,
  })
  assert.equal(config?.listen.bindAddress, '127.0.0.1')
  assert.match(config?.dataDir ?? '', /annals-data$/)
  assert.equal(config?.databases.app.engine, 'sqlite')
  assert.equal(config?.metrics.nativeHistograms, true)
})

test('a file with our own settings alone asks for nothing else', () => {
  const { problems, config } = readFiles({
    'validator-values.yaml':
      'annals:\n  scan: { maxPageSize: 100, cacheBytes: 8Mi, publicUrl: https://scan.acme.example }\n  logLevel: DEBUG\n',
  })
  assert.deepEqual(problems, [])
  assert.deepEqual(config?.scan, {
    maxPageSize: 100,
    cacheBytes: 8 * 1024 * 1024,
    publicUrl: 'https://scan.acme.example',
  })
  assert.equal(config?.logLevel, 'debug')
})

test('a network of one may have a migration id', () => {
  const { problems, config } = readFiles({
    'validator-values.yaml': 'migration: { id: 2, migrating: true }\n',
  })
  assert.deepEqual(
    problems.map(({ severity }) => severity),
    ['notice'],
  )
  assert.equal(config?.migration.id, 2n)
  assert.match(
    config?.databases.participant.engine === 'sqlite' ? config.databases.participant.file : '',
    /participant_2/,
  )
})

test('the variable of a migration id alone asks for the other parameters', () => {
  const missing = errorsOf(readFiles({}, { MIGRATION_ID: '3' })).map(({ key }) => key)
  assert.deepEqual(missing.sort(), ['ONBOARDING_SECRET', 'SPONSOR_SV_URL', 'TRUSTED_SCAN_URL'])
})

test('everything that is set becomes typed options', () => {
  const { files, env } = caseNamed('valid-everything-set')
  const { config } = readFiles(files, env)
  assert.ok(
    config !== undefined && Object.isFrozen(config) && Object.isFrozen(config.wallet.sweeps),
  )
  assert.equal(config.identity.partyHint, 'acme-validator-1')
  assert.equal(config.migration.id, 3n)
  assert.deepEqual(config.network?.scan, {
    mode: 'bft',
    seedUrls: ['https://scan.sv-1.testnet.example.net'],
  })
  assert.deepEqual(config.network?.sequencer, { mode: 'bft' })
  assert.equal(config.network?.onboardingSecret?.reveal(), env.ONBOARDING_SECRET)
  assert.equal(config.historyWriter, 'mirror')
  assert.equal(config.wallet.sweeps[0]?.maxBalanceUsd, '1000')
  assert.equal(config.wallet.autoAccept[0]?.fromParties.length, 2)
  assert.deepEqual(config.wallet.topUp, {
    targetThroughput: 20000,
    minTopupIntervalMs: 60_000,
    reservedTraffic: 200_000,
    pollingIntervalMs: 30_000,
  })
  assert.equal(config.pruning?.retentionMs, 30 * 86_400_000)
  assert.equal(
    config.pruning?.cron.next(new Date('2026-01-01T00:00:00Z'))?.toISOString(),
    '2026-01-01T00:10:00.000Z',
  )
  assert.deepEqual(config.proxy, {
    host: 'proxy.acme.example',
    port: 3128,
    bypass: ['localhost', '127.0.0.1', '*.svc.cluster.local', '10.*'],
  })
  assert.deepEqual(config.metrics, { nativeHistograms: false, topologyIntervalMs: 300_000 })
  assert.equal(config.deployment.volume.size, '50Gi')
  assert.equal(config.deployment.serviceMonitor.validator.enabled, true)
  const { participant } = config.databases
  assert.ok(
    participant.engine === 'postgres' &&
      participant.database === 'participant_3' &&
      participant.user === 'cnadmin',
  )
  assert.deepEqual(config.auth.participant, {
    jwksUrl: 'https://acme.eu.auth0.example/.well-known/jwks.json',
    targetAudience: 'https://ledger-api.acme.example',
  })
})

test('TLS files are resolved, and the options of TLS handed over', () => {
  const { files, env } = caseNamed('valid-tls-mutual-restricted')
  const { config } = readFiles(files, {
    ...env,
    JAVA_TOOL_OPTIONS: '-Djdk.tls.namedGroups=x25519,secp256r1',
  })
  const tls = config?.listen.ledgerTls
  assert.ok(
    tls !== undefined &&
      'path' in tls.certChain &&
      tls.certChain.path.endsWith('/tls/ledger-api.crt'),
  )
  assert.equal(tls.clientAuth, 'require')
  assert.equal(tls.minimumVersion, 'TLSv1.3')
  assert.deepEqual(tls.groups, ['x25519', 'secp256r1'])
  assert.equal(tls.ciphers?.length, 3)
})

test('database TLS, pool and password come from HOCON and secrets', () => {
  const { files, env } = caseNamed('valid-with-secrets')
  const { config } = readFiles(files, {
    ...env,
    ADDITIONAL_CONFIG_DB: `${P}.storage { config.properties { ssl = true, sslrootcert = "/certs/root.crt" }, parameters.max-connections = 7 }`,
  })
  const database = config?.databases.participant
  assert.ok(database?.engine === 'postgres')
  assert.equal(database.password?.reveal(), 'change-me')
  assert.deepEqual(database.tls, {
    mode: 'verify-full',
    rootCertFile: '/certs/root.crt',
    certFile: undefined,
    keyFile: undefined,
  })
  assert.equal(database.connectionsMax, 7)
  assert.equal(config?.auth.ledgerApi?.clientSecret?.reveal(), 'not-a-real-secret')
  assert.equal(config?.auth.ledgerApiUser, 'm2mClientId@clients')
  assert.deepEqual(config?.auth.walletUi, {
    url: 'https://acme.eu.auth0.example',
    clientId: 'walletUiClientId',
  })
})

test('the environment alone configures a node, as compose does', () => {
  const { config, problems } = readFiles(
    {},
    {
      MIGRATION_ID: '0',
      SPONSOR_SV_ADDRESS: 'https://sv.x.net',
      SCAN_ADDRESS: 'https://scan.x.net',
      ONBOARDING_SECRET: 'secret-of-the-sponsor',
      PARTY_HINT: 'acme-node-1',
      SPLICE_DB_SERVER: 'db',
      SPLICE_DB_PASSWORD: 'supersafe',
      TARGET_TRAFFIC_THROUGHPUT: '20000',
      MIN_TRAFFIC_TOPUP_INTERVAL: '1m',
      AUTH_JWKS_URL: 'https://p/jwks',
      VALIDATOR_AUTH_AUDIENCE: 'v',
      LEDGER_API_AUTH_AUDIENCE: 'l',
      CONTACT_POINT: '',
    },
  )
  assert.deepEqual(
    problems.filter(({ severity }) => severity !== 'notice'),
    [],
  )
  assert.equal(config?.identity.nodeIdentifier, 'acme-node-1')
  assert.ok(config?.databases.app.engine === 'postgres' && config.databases.app.host === 'db')
  assert.equal(config?.wallet.topUp?.minTopupIntervalMs, 60_000)
})

test('settings of parts that this version lacks are said to have no effect, once for each block', () => {
  const { files, env } = caseNamed('valid-everything-set')
  const { problems } = readFiles(files, env, {
    parts: ['listen', 'scan', 'users', 'postgres', 'metrics'],
  })
  const told = problems.filter(({ rule }) => rule === 'no-effect')
  assert.ok(told.some(({ message }) => message.startsWith('walletSweep has no effect')))
  assert.ok(
    told.some(({ message }) => message.startsWith('participantPruningSchedule has no effect')),
  )
  assert.equal(told.filter(({ message }) => message.startsWith('topup ')).length, 1)
  assert.ok(
    !told.some(
      ({ key, place }) =>
        key === 'persistence.host' && place?.source.name !== 'postgres-values.yaml',
    ),
  )
  assert.ok(told.every(({ severity }) => severity === 'notice'))
})

test('lenient reading turns unknown and reference keys into warnings', () => {
  const files = { 'validator-values.yaml': 'validatorPartyHnt: x\nparticipantAddress: p\n' }
  const strict = readFiles(files).problems
  const lenient = readFiles(files, {}, { lenient: true }).problems
  assert.deepEqual(
    strict.map(({ rule, severity }) => [rule, severity]),
    [
      ['unknown-key', 'error'],
      ['reference-key', 'notice'],
    ],
  )
  assert.deepEqual(
    lenient.map(({ severity }) => severity),
    ['warning', 'warning'],
  )
  assert.equal(strict[0]?.hint, 'Did you mean validatorPartyHint?')
})

test('a key of the other file is told where it belongs', () => {
  const [problem] = readFiles({ 'participant-values.yaml': 'walletSweep: {}\n' }).problems
  assert.match(problem?.hint ?? '', /validator values/)
})

test('later files win over earlier ones, and flags over everything', async () => {
  const { readConfig } = await import('./config.ts')
  const { withFiles } = await import('../../test/support/config-files.ts')
  using directory = withFiles({
    'a.yaml':
      'annals: { ports: { ledger: 1, scan: 2, metrics: 4 }, dataDir: a }\ncontactPoint: a\n',
    'b.yaml': 'annals: { ports: { ledger: 3, scan: null } }\n',
  })
  const { config, settings } = readConfig(
    {
      cwd: directory.dir,
      env: {},
      validatorValues: ['a.yaml', 'b.yaml'],
      flags: { 'annals.ports.metrics': { flag: '--metrics-port', value: '0' } },
    },
    { parts: [] },
  )
  assert.deepEqual(config?.listen.ports, { ledger: 3, scan: 5012, validator: 5003, metrics: 0 })
  assert.equal(settings.get('validator', 'annals.ports.ledger')?.place.source.name, 'b.yaml')
  assert.equal(settings.get('validator', 'contactPoint')?.place.source.name, 'a.yaml')
})

test('one mistake is told once', () => {
  const base = caseNamed('valid-legacy-keys-defaults')
  const validator = base.files['validator-values.yaml'] as string
  const rows: [from: string, to: string, key: string][] = [
    ['svSponsorAddress:', 'svSponsorAdress:', 'svSponsorAdress'],
    ['validatorPartyHint:', 'validatorPartyHnt:', 'validatorPartyHnt'],
    ['validatorWalletUsers:', 'validatorWalletUser_s:', 'validatorWalletUser_s'],
    ['auth:', 'auht:', 'auht'],
    ['id: "3"', 'id: "x"', 'migration.id'],
    ['enableWallet: true', 'disableAuth: "true"', 'disableAuth'],
    ['minTopupInterval: "1m"', 'minTopupInterval: 1', 'topup.minTopupInterval'],
  ]
  for (const [from, to, key] of rows) {
    assert.ok(validator.includes(from))
    const files = { ...base.files, 'validator-values.yaml': validator.replace(from, to) }
    const errors = errorsOf(readFiles(files, { ONBOARDING_SECRET: 'x' }))
    assert.deepEqual(
      errors.map((problem) => problem.key),
      [key],
    )
  }
})

test('what is malformed is not told to be empty, and what is missing not to be wrong', () => {
  const seeds = changed({
    without: ['scanAddress'],
    add: 'scanClient: { scanType: bft-custom, seedUrls: [x], svNames: [1], threshold: 1 }',
  })
  assert.deepEqual(
    errorsOf(seeds).map(({ path }) => path),
    ['scanClient.seedUrls[0]', 'scanClient.svNames[0]'],
  )
  const migration = changed({ without: ['migration'], unset: ['MIGRATION_ID'] })
  assert.deepEqual(
    errorsOf(migration).map(({ key }) => key),
    ['migration.id'],
  )
})

test('a proxy that a variable sets wrongly is told once, with all that is wrong', () => {
  const { problems } = changed({
    env: { JAVA_TOOL_OPTIONS: '-Dhttps.proxyHost=http://p -Dhttps.proxyPort=1 -Dhttp.proxyUser=u' },
  })
  assert.deepEqual(
    problems.filter(({ rule }) => rule === 'proxy').map(({ message }) => message),
    [
      'JAVA_TOOL_OPTIONS (additionalJvmOptions) sets a proxy wrongly at http.proxyUser: proxy authentication is unsupported.',
      'JAVA_TOOL_OPTIONS (additionalJvmOptions) sets a proxy wrongly at https.proxyHost: the host must have no scheme and no port.',
    ],
  )
})

test('null in a later file takes out what an earlier one says', () => {
  using directory = withFiles({
    'a.yaml': `contactPoint: x\nautoAcceptTransfers:\n  "${ALICE}": { fromParties: ["${BOB}"] }\n`,
    'b.yaml': `contactPoint:\nautoAcceptTransfers:\n  "${ALICE}":\n`,
  })
  const { config } = readConfig(
    { cwd: directory.dir, env: {}, validatorValues: ['a.yaml', 'b.yaml'] },
    { parts: [] },
  )
  assert.equal(config?.identity.contactPoint, '')
  assert.deepEqual(config?.wallet.autoAccept, [])
})

test('HOCON in a values file is placed in that file', () => {
  const text = [
    'additionalEnvVars:',
    '  - name: ADDITIONAL_CONFIG_A',
    '    value: |',
    `      ${V} {`,
    '        automation.polling-interval = 5',
    '      }',
    `  - { name: ADDITIONAL_CONFIG_B, value: "${V}.enable-wallet = maybe" }`,
    '  - name: ADDITIONAL_CONFIG_C',
    '    value: >-',
    `      ${V}.contact-point =`,
    '      [x]',
  ].join('\n')
  const { problems } = readFiles({ 'validator-values.yaml': text })
  assert.deepEqual(
    problems
      .filter(({ severity }) => severity === 'error')
      .map(({ key, place }) => [key.replace(`${V}.`, ''), place?.line, place?.column]),
    [
      ['automation.polling-interval', 5, 39],
      ['enable-wallet', 7, 98],
      ['contact-point', 9, 12],
    ],
  )
})

test('the variables of a deployed container are taken as they are', () => {
  const scan = `${V}.scan-client`
  const read = (text: string) =>
    changed({ env: { ADDITIONAL_CONFIG_BFT_SCAN: text, TRUSTED_SCAN_URL: 'https://scan.y.net' } })
  const many = read(
    `${scan}.type = "bft"\n${scan}.seed-urls = [ \${_scan.admin-api.address}, "https://scan.z.net" ]`,
  )
  assert.deepEqual(errorsOf(many), [])
  assert.deepEqual(many.config?.network?.scan, {
    mode: 'bft',
    seedUrls: ['https://scan.y.net', 'https://scan.z.net'],
  })
  const one = read(`${scan} { type = trust-single, url = "https://scan.z.net" }`)
  assert.deepEqual(one.config?.network?.scan, { mode: 'trust-single', url: 'https://scan.z.net' })
})

test('the variables of compose without a provider are no error', () => {
  const { config, problems } = readFiles(
    {},
    {
      LEDGER_API_AUTH_AUDIENCE: 'https://ledger_api.example.com',
      VALIDATOR_AUTH_AUDIENCE: 'https://validator.example.com',
      AUTH_JWKS_URL: '',
    },
  )
  assert.deepEqual(
    problems.map(({ severity, rule }) => [severity, rule]),
    [
      ['warning', 'no-key-set'],
      ['warning', 'no-key-set'],
    ],
  )
  assert.equal(config?.auth.participant, undefined)
  const half = readFiles({}, { AUTH_JWKS_URL: 'https://a.example/jwks' })
  assert.ok(errorsOf(half).every(({ rule }) => rule === 'required'))
  assert.equal(errorsOf(half).length, 2)
})

test('a list in one variable is added to by the next', () => {
  const users = `${V}.validator-wallet-users`
  const { config } = readFiles(
    {},
    { ADDITIONAL_CONFIG_A: `${users} = [a]`, ADDITIONAL_CONFIG_B: `${users} += b` },
  )
  assert.deepEqual(config?.wallet.users, ['a', 'b'])
})

test('a reference to a secret wins over a text beside it', () => {
  const item =
    'name: CONTACT_POINT, value: text, valueFrom: { secretKeyRef: { name: s, key: contact } }'
  const values = `additionalEnvVars: [{ ${item} }]\n`
  const { config } = readFiles({ 'validator-values.yaml': values, 'secrets/s/contact': 'secret' })
  assert.equal(config?.identity.contactPoint, 'secret')
})

test('the log level of the participant values holds where no other is given', () => {
  const level = (validator: string) =>
    readFiles({ 'participant-values.yaml': 'logLevel: ERROR', 'validator-values.yaml': validator })
      .config?.logLevel
  assert.equal(level('{}'), 'error')
  assert.equal(level('logLevel: WARN'), 'warn')
  assert.equal(level('{ logLevel: WARN, annals: { logLevel: debug } }'), 'debug')
})

test('all problems come at once, by file and line', () => {
  const base = caseNamed('valid-legacy-keys-defaults')
  const files = {
    'validator-values.yaml': `${base.files['validator-values.yaml']}disableAuth: "no"\nunknownKey: 1\nwalletSweep: []\n`,
    'participant-values.yaml': 'persistence: { port: 99999 }\nauth: 3\n',
  }
  const errors = errorsOf(readFiles(files, { ...base.env, MIGRATION_ID: 'x' }))
  const order = errors.map(({ place }) => [place?.source.name ?? '', place?.line ?? 0] as const)
  assert.ok(errors.length >= 7, String(errors.length))
  const files1 = order.filter(([name]) => name.endsWith('.yaml'))
  assert.deepEqual(
    files1,
    files1.toSorted((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1])),
  )
})
