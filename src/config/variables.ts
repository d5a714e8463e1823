import type { ValuesFile } from './keys.ts'
import {
  anyText,
  boolean,
  count,
  duration,
  hostName,
  httpUrl,
  type Kind,
  logLevel,
  migrationId,
  nodeIdentifier,
  partyHint,
  port,
  sqlName,
  text,
  timeLimit,
} from './kinds.ts'

/** A variable of the environment, and the keys of the values that it overrides. */
export type Variable = {
  readonly name: string
  readonly kind: Kind
  readonly sets: readonly `${ValuesFile | 'secret'}:${string}`[]
  readonly doc: string
  readonly example: string
  readonly secret?: true
  /** Empty means absent, as compose hands over what is not set; the onboarding secret may be empty. */
  readonly emptyCounts?: true
  /** Many programs read a variable of this name: a text that is none of ours is passed over with a warning. */
  readonly common?: true
}

/** Every variable with this prefix is read as HOCON. */
export const HOCON_PREFIX = 'ADDITIONAL_CONFIG'

export const LEDGER_API_SECRET = 'splice-app-validator-ledger-api-auth'
export const WALLET_UI_SECRET = 'splice-app-wallet-ui-auth'
export const NAME_SERVICE_UI_SECRET = 'splice-app-cns-ui-auth'
/** Where the onboarding secret of a variable is kept among the settings. */
const ONBOARDING_SECRET_PATH = 'onboarding/secret'

const PASSWORDS = [
  'validator:persistence.secretOverrides.postgresPassword',
  'participant:persistence.secretOverrides.postgresPassword',
] as const

export const VARIABLES: readonly Variable[] = [
  // Required network parameters, under the names of the manual, of compose and of the container.
  {
    name: 'MIGRATION_ID',
    kind: migrationId,
    sets: ['validator:migration.id'],
    example: '3',
    doc: 'Current migration id of the target network.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_SV_SPONSOR_ADDRESS',
    kind: httpUrl,
    sets: ['validator:svSponsorAddress'],
    example: 'https://sv.sv-1.testnet.example.net',
    doc: 'URL of the sponsoring super validator.',
  },
  {
    name: 'SPONSOR_SV_ADDRESS',
    kind: httpUrl,
    sets: ['validator:svSponsorAddress'],
    example: 'https://sv.sv-1.testnet.example.net',
    doc: 'URL of the sponsoring super validator.',
  },
  {
    name: 'SPONSOR_SV_URL',
    kind: httpUrl,
    sets: ['validator:svSponsorAddress'],
    example: 'https://sv.sv-1.testnet.example.net',
    doc: 'URL of the sponsoring super validator.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_SCAN_ADDRESS',
    kind: httpUrl,
    sets: ['validator:scanAddress'],
    example: 'https://scan.sv-1.testnet.example.net',
    doc: 'Scan URL of a trusted super validator.',
  },
  {
    name: 'SCAN_ADDRESS',
    kind: httpUrl,
    sets: ['validator:scanAddress'],
    example: 'https://scan.sv-1.testnet.example.net',
    doc: 'Scan URL of a trusted super validator.',
  },
  {
    name: 'TRUSTED_SCAN_URL',
    kind: httpUrl,
    sets: ['validator:scanAddress'],
    example: 'https://scan.sv-1.testnet.example.net',
    doc: 'Scan URL of a trusted super validator; further scans are discovered from it.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_ONBOARDING_SECRET',
    kind: anyText,
    sets: [`secret:${ONBOARDING_SECRET_PATH}`],
    secret: true,
    emptyCounts: true,
    example: '<secret of the sponsor>',
    doc: 'One-time secret of the sponsor.',
  },
  {
    name: 'ONBOARDING_SECRET',
    kind: anyText,
    sets: [`secret:${ONBOARDING_SECRET_PATH}`],
    secret: true,
    emptyCounts: true,
    example: '<secret of the sponsor>',
    doc: 'One-time secret of the sponsor; it expires after 48 hours. Empty once the node is onboarded.',
  },
  {
    name: 'SPLICE_APP_DEVNET',
    kind: anyText,
    sets: ['secret:onboarding/devnet'],
    example: '1',
    doc: 'On a development network the sponsor hands out the onboarding secret itself.',
  },
  // Identity.
  {
    name: 'SPLICE_APP_VALIDATOR_PARTY_HINT',
    kind: partyHint,
    sets: ['validator:validatorPartyHint'],
    example: 'acme-validator-1',
    doc: 'Hint of the operator party.',
  },
  {
    name: 'PARTY_HINT',
    kind: partyHint,
    sets: ['validator:validatorPartyHint'],
    example: 'acme-validator-1',
    doc: 'Hint of the operator party.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_PARTICIPANT_IDENTIFIER',
    kind: nodeIdentifier,
    sets: ['validator:nodeIdentifier'],
    example: 'acme-validator-1',
    doc: 'Name of the participant.',
  },
  {
    name: 'PARTICIPANT_IDENTIFIER',
    kind: nodeIdentifier,
    sets: ['validator:nodeIdentifier'],
    example: 'acme-validator-1',
    doc: 'Name of the participant.',
  },
  {
    name: 'SPLICE_APP_CONTACT_POINT',
    kind: anyText,
    sets: ['validator:contactPoint'],
    example: 'ops@acme.example',
    doc: 'Contact that other operators see.',
  },
  {
    name: 'CONTACT_POINT',
    kind: anyText,
    sets: ['validator:contactPoint'],
    example: 'ops@acme.example',
    doc: 'Contact that other operators see.',
  },
  {
    name: 'SEQUENCER_ADDRESS',
    kind: httpUrl,
    sets: ['validator:decentralizedSynchronizerUrl'],
    example: 'https://sequencer.sv-1.testnet.example.net',
    doc: 'The one trusted sequencer.',
  },
  // Traffic.
  {
    name: 'TARGET_TRAFFIC_THROUGHPUT',
    kind: count,
    sets: ['validator:topup.targetThroughput'],
    example: '20000',
    doc: 'Bytes per second of sequenced traffic; 0 disables top-ups.',
  },
  {
    name: 'MIN_TRAFFIC_TOPUP_INTERVAL',
    kind: duration,
    sets: ['validator:topup.minTopupInterval'],
    example: '1m',
    doc: 'Least time between two purchases.',
  },
  // Database.
  {
    name: 'SPLICE_DB_SERVER',
    kind: hostName,
    sets: ['validator:persistence.host', 'participant:persistence.host'],
    example: 'postgres-splice',
    doc: 'Database host of both apps.',
  },
  {
    name: 'SPLICE_DB_PORT',
    kind: port,
    sets: ['validator:persistence.port', 'participant:persistence.port'],
    example: '5432',
    doc: 'Database port of both apps.',
  },
  {
    name: 'SPLICE_DB_USER',
    kind: text,
    sets: ['validator:persistence.user', 'participant:persistence.user'],
    example: 'cnadmin',
    doc: 'Database user of both apps.',
  },
  {
    name: 'SPLICE_DB_PASSWORD',
    kind: text,
    sets: PASSWORDS,
    secret: true,
    example: '<password>',
    doc: 'Database password of both apps.',
  },
  {
    name: 'SPLICE_APP_POSTGRES_PASSWORD',
    kind: text,
    sets: [PASSWORDS[0]],
    secret: true,
    example: '<password>',
    doc: 'Database password of the validator.',
  },
  {
    name: 'CANTON_PARTICIPANT_POSTGRES_SERVER',
    kind: hostName,
    sets: ['participant:persistence.host'],
    example: 'postgres',
    doc: 'Database host of the participant.',
  },
  {
    name: 'CANTON_PARTICIPANT_POSTGRES_PORT',
    kind: port,
    sets: ['participant:persistence.port'],
    example: '5432',
    doc: 'Database port of the participant.',
  },
  {
    name: 'CANTON_PARTICIPANT_POSTGRES_DB',
    kind: sqlName,
    sets: ['participant:persistence.databaseName'],
    example: 'participant_3',
    doc: 'Database of the participant.',
  },
  {
    name: 'CANTON_PARTICIPANT_POSTGRES_SCHEMA',
    kind: sqlName,
    sets: ['participant:persistence.schema'],
    example: 'participant',
    doc: 'Schema of the participant.',
  },
  {
    name: 'CANTON_PARTICIPANT_POSTGRES_USER',
    kind: text,
    sets: ['participant:persistence.user'],
    example: 'cnadmin',
    doc: 'Database user of the participant.',
  },
  {
    name: 'CANTON_PARTICIPANT_POSTGRES_PASSWORD',
    kind: text,
    sets: [PASSWORDS[1]],
    secret: true,
    example: '<password>',
    doc: 'Database password of the participant.',
  },
  // Authentication.
  {
    name: 'AUTH_JWKS_URL',
    kind: httpUrl,
    sets: ['validator:auth.jwksUrl', 'participant:auth.jwksUrl'],
    example: 'https://acme.eu.auth0.example/.well-known/jwks.json',
    doc: 'Key set of the identity provider, for both apps.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_AUTH_JWKS_URL',
    kind: httpUrl,
    sets: ['validator:auth.jwksUrl'],
    example: 'https://acme.eu.auth0.example/.well-known/jwks.json',
    doc: 'Key set for the validator.',
  },
  {
    name: 'VALIDATOR_AUTH_AUDIENCE',
    kind: text,
    sets: ['validator:auth.audience'],
    example: 'https://validator.acme.example/api',
    doc: 'Token audience of the validator.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_AUTH_AUDIENCE',
    kind: text,
    sets: ['validator:auth.audience'],
    example: 'https://validator.acme.example/api',
    doc: 'Token audience of the validator.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_AUTH_JWKS_CONNECTION_TIMEOUT',
    kind: timeLimit,
    sets: ['validator:auth.jwks.connectionTimeout'],
    example: '10s',
    doc: 'Time to connect to the provider.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_AUTH_JWKS_READ_TIMEOUT',
    kind: timeLimit,
    sets: ['validator:auth.jwks.readTimeout'],
    example: '10s',
    doc: 'Time to read the key set.',
  },
  {
    name: 'LEDGER_API_AUTH_AUDIENCE',
    kind: text,
    sets: ['participant:auth.targetAudience', `secret:${LEDGER_API_SECRET}/audience`],
    example: 'https://ledger-api.acme.example',
    doc: 'Token audience of the ledger API.',
  },
  {
    name: 'AUTH_TARGET_AUDIENCE',
    kind: text,
    sets: ['participant:auth.targetAudience'],
    example: 'https://ledger-api.acme.example',
    doc: 'Token audience of the ledger API.',
  },
  {
    name: 'LEDGER_API_AUTH_SCOPE',
    kind: text,
    sets: [`secret:${LEDGER_API_SECRET}/scope`],
    example: 'daml_ledger_api',
    doc: 'Scope that the validator asks for.',
  },
  {
    name: 'LEDGER_API_ADMIN_USER',
    kind: text,
    sets: [`secret:${LEDGER_API_SECRET}/ledger-api-user`],
    example: 'm2mClientId@clients',
    doc: 'Admin user of the ledger API.',
  },
  {
    name: 'AUTH_WELLKNOWN_URL',
    kind: httpUrl,
    sets: [`secret:${LEDGER_API_SECRET}/url`],
    example: 'https://acme.eu.auth0.example/.well-known/openid-configuration',
    doc: 'Discovery document of the identity provider.',
  },
  {
    name: 'VALIDATOR_AUTH_CLIENT_ID',
    kind: text,
    sets: [`secret:${LEDGER_API_SECRET}/client-id`],
    example: 'm2mClientId',
    doc: 'Client id of the validator.',
  },
  {
    name: 'VALIDATOR_AUTH_CLIENT_SECRET',
    kind: text,
    sets: [`secret:${LEDGER_API_SECRET}/client-secret`],
    secret: true,
    example: '<client secret>',
    doc: 'Client secret of the validator.',
  },
  ...ledgerApiVariables(),
  {
    name: 'CANTON_PARTICIPANT_ADMIN_USER_NAME',
    kind: text,
    sets: ['participant:auth.secretOverrides.ledgerApiUser'],
    example: 'm2mClientId@clients',
    doc: 'Admin user of the ledger API, for the participant.',
  },
  {
    name: 'AUTH_URL',
    kind: httpUrl,
    sets: [`secret:${WALLET_UI_SECRET}/url`, `secret:${NAME_SERVICE_UI_SECRET}/url`],
    example: 'https://acme.eu.auth0.example',
    doc: 'Identity provider of the user interfaces.',
  },
  {
    name: 'WALLET_UI_CLIENT_ID',
    kind: text,
    sets: [`secret:${WALLET_UI_SECRET}/client-id`],
    example: 'walletUiClientId',
    doc: 'Client id of the wallet user interface.',
  },
  {
    name: 'ANS_UI_CLIENT_ID',
    kind: text,
    sets: [`secret:${NAME_SERVICE_UI_SECRET}/client-id`],
    example: 'cnsUiClientId',
    doc: 'Client id of the name-service user interface.',
  },
  // Wallet, proxy, log.
  {
    name: 'WALLET_ADMIN_USER',
    kind: text,
    sets: ['validator:validatorWalletUser'],
    example: 'auth0|64b1f0c2d9e8a7f6b5c4d3e2',
    doc: 'The wallet admin user.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_WALLET_USER_NAME',
    kind: text,
    sets: ['validator:validatorWalletUser'],
    example: 'auth0|64b1f0c2d9e8a7f6b5c4d3e2',
    doc: 'The wallet admin user.',
  },
  {
    name: 'SPLICE_APP_VALIDATOR_SV_VALIDATOR',
    kind: boolean,
    sets: ['validator:svValidator'],
    example: 'false',
    doc: 'Whether the validator belongs to a super validator.',
  },
  {
    name: 'JAVA_TOOL_OPTIONS',
    kind: anyText,
    sets: ['validator:additionalJvmOptions', 'participant:additionalJvmOptions'],
    example: '-Dhttps.proxyHost=proxy.acme.example -Dhttps.proxyPort=3128',
    doc: 'Proxy options of both apps.',
  },
  {
    name: 'LOG_LEVEL',
    kind: logLevel,
    common: true,
    sets: ['validator:logLevel'],
    example: 'INFO',
    doc: 'Log level of the node.',
  },
]

/** The entries of the ledger API secret, as a chart hands them to the container of the validator. */
function ledgerApiVariables(): Variable[] {
  return (
    [
      ['USER_NAME', 'ledger-api-user', text, 'm2mClientId@clients'],
      ['URL', 'url', httpUrl, 'https://acme.eu.auth0.example/.well-known/openid-configuration'],
      ['CLIENT_ID', 'client-id', text, 'm2mClientId'],
      ['CLIENT_SECRET', 'client-secret', text, '<client secret>'],
      ['AUDIENCE', 'audience', text, 'https://ledger-api.acme.example'],
      ['SCOPE', 'scope', text, 'daml_ledger_api'],
      ['TOKEN', 'token', text, '<token>'],
    ] as const
  ).map(([name, entry, kind, example]) => ({
    name: `SPLICE_APP_VALIDATOR_LEDGER_API_AUTH_${name}`,
    kind,
    sets: [`secret:${LEDGER_API_SECRET}/${entry}`],
    example,
    doc: `Entry \`${entry}\` of the secret \`${LEDGER_API_SECRET}\`.`,
    ...(/SECRET|TOKEN/.test(name) ? { secret: true as const } : {}),
  }))
}

export type SecretEntry = {
  readonly secret: string
  readonly entry: string
  readonly kind: Kind
  readonly doc: string
  readonly optional?: true
}

/** The secrets of the reference deployment whose names are fixed; others are named by the values. */
export const SECRET_ENTRIES: readonly SecretEntry[] = [
  {
    secret: LEDGER_API_SECRET,
    entry: 'ledger-api-user',
    kind: text,
    doc: 'Admin user of the ledger API, usually `<client id>@clients`.',
  },
  {
    secret: LEDGER_API_SECRET,
    entry: 'url',
    kind: httpUrl,
    doc: 'Discovery document of the identity provider.',
  },
  { secret: LEDGER_API_SECRET, entry: 'client-id', kind: text, doc: 'Client id of the validator.' },
  {
    secret: LEDGER_API_SECRET,
    entry: 'client-secret',
    kind: text,
    doc: 'Client secret of the validator.',
  },
  {
    secret: LEDGER_API_SECRET,
    entry: 'audience',
    kind: text,
    doc: 'Audience of the ledger API; must equal `auth.targetAudience` of the participant.',
  },
  {
    secret: LEDGER_API_SECRET,
    entry: 'scope',
    kind: text,
    optional: true,
    doc: 'Scope that the validator asks for.',
  },
  {
    secret: LEDGER_API_SECRET,
    entry: 'token',
    kind: text,
    optional: true,
    doc: 'A fixed token, instead of a provider.',
  },
  {
    secret: WALLET_UI_SECRET,
    entry: 'url',
    kind: httpUrl,
    doc: 'Identity provider of the wallet user interface.',
  },
  {
    secret: WALLET_UI_SECRET,
    entry: 'client-id',
    kind: text,
    doc: 'Client id of the wallet user interface.',
  },
  {
    secret: NAME_SERVICE_UI_SECRET,
    entry: 'url',
    kind: httpUrl,
    doc: 'Identity provider of the name-service user interface.',
  },
  {
    secret: NAME_SERVICE_UI_SECRET,
    entry: 'client-id',
    kind: text,
    doc: 'Client id of the name-service user interface.',
  },
]
