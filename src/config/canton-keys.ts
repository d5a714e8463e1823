import { block, freeMap, type Key } from './keys.ts'
import {
  anyText,
  anything,
  boolean,
  count,
  cron,
  decimal,
  duration,
  hostName,
  httpUrl,
  type Kind,
  migrationId,
  nodeIdentifier,
  oneOf,
  partyHint,
  partyId,
  port,
  positiveCount,
  sqlName,
  text,
  tlsVersion,
  wholeSeconds,
} from './kinds.ts'

/**
 * A setting of the reference applications, as `ADDITIONAL_CONFIG` variables write it. `sets` names
 * the key of the values that it overrides; the others are settings of their own.
 */
export type CantonKey = Key & {
  readonly sets?: { readonly file: 'validator' | 'participant'; readonly path: string }
}

export const VALIDATOR_APP = 'canton.validator-apps.validator_backend'
export const PARTICIPANT_APP = 'canton.participants.participant'

/** Blocks in which the reference participant refuses unknown members, and so do we. */
export const CLOSED_BLOCKS: readonly string[] = [
  `${PARTICIPANT_APP}.ledger-api.tls`,
  `${PARTICIPANT_APP}.admin-api.tls`,
]

/** A validator setting that a key of the values has too. */
function validator(
  path: string,
  kind: Kind,
  valuesPath: string,
  extra: Partial<Key> = {},
): CantonKey {
  return {
    path: `${VALIDATOR_APP}.${path}`,
    kind,
    sets: { file: 'validator', path: valuesPath },
    doc: `Overrides \`${valuesPath}\`.`,
    ...extra,
  }
}

/** The properties of a PostgreSQL data source, for one of the two apps. */
function storageKeys(app: string, file: 'validator' | 'participant'): CantonKey[] {
  const sets = (path: string) => ({ sets: { file, path: `persistence.${path}` } })
  const at = (name: string) => `${app}.storage.config.properties.${name}`
  return [
    {
      path: `${app}.storage.type`,
      kind: oneOf('postgres', 'memory'),
      part: 'postgres',
      doc: '`memory` keeps the data in SQLite files.',
    },
    {
      path: `${app}.storage.config.dataSourceClass`,
      kind: text,
      reference: true,
      doc: 'Class of the Java data source.',
    },
    {
      path: `${app}.storage.config.dataSourceClassName`,
      kind: text,
      reference: true,
      doc: 'Class of the Java data source.',
    },
    {
      path: `${app}.storage.config.driver`,
      kind: text,
      reference: true,
      doc: 'Class of the Java driver.',
    },
    {
      path: `${app}.storage.config.connectionPool`,
      kind: text,
      example: 'HikariCP',
      part: 'postgres',
      doc: '`disabled` opens a connection for each use; anything else pools them.',
    },
    {
      path: `${app}.storage.config.numThreads`,
      kind: positiveCount,
      example: '10',
      part: 'postgres',
      doc: 'Most connections, where `max-connections` is not given.',
    },
    {
      path: `${app}.storage.config.maxConnections`,
      kind: positiveCount,
      example: '10',
      part: 'postgres',
      doc: 'Most connections, where `max-connections` is not given.',
    },
    {
      path: `${app}.storage.config.minConnections`,
      kind: count,
      reference: true,
      doc: 'Fewest connections.',
    },
    {
      path: `${app}.storage.config.connectionTimeout`,
      kind: anything,
      reference: true,
      doc: 'Time to wait for a connection.',
    },
    {
      path: `${app}.storage.parameters.max-connections`,
      kind: positiveCount,
      example: '32',
      part: 'postgres',
      doc: 'Most connections of the pool.',
    },
    {
      path: `${app}.storage.parameters.fail-fast-on-startup`,
      kind: boolean,
      default: 'true',
      part: 'postgres',
      doc: 'Refuses to start without the database.',
    },
    {
      path: at('serverName'),
      kind: hostName,
      example: 'postgres',
      part: 'postgres',
      doc: 'Database host.',
      ...sets('host'),
    },
    {
      path: at('databaseName'),
      kind: sqlName,
      example: 'participant_3',
      part: 'postgres',
      doc: 'Database name.',
      ...sets('databaseName'),
    },
    {
      path: at('portNumber'),
      kind: port,
      example: '5432',
      part: 'postgres',
      doc: 'Database port.',
      ...sets('port'),
    },
    {
      path: at('user'),
      kind: text,
      example: 'cnadmin',
      part: 'postgres',
      doc: 'Database user.',
      ...sets('user'),
    },
    {
      path: at('password'),
      kind: text,
      secret: true,
      part: 'postgres',
      doc: 'Database password.',
      ...sets('secretOverrides.postgresPassword'),
    },
    {
      path: at('currentSchema'),
      kind: sqlName,
      example: 'participant',
      part: 'postgres',
      doc: 'Schema.',
      ...sets('schema'),
    },
    {
      path: at('tcpKeepAlive'),
      kind: boolean,
      reference: true,
      doc: 'Keeps idle connections open.',
    },
    {
      path: at('ssl'),
      kind: boolean,
      example: 'true',
      default: 'false',
      part: 'postgres',
      doc: 'Encrypts the connection; without `sslmode` the certificate and the host name are verified.',
    },
    {
      path: at('sslmode'),
      kind: oneOf('disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'),
      example: '"verify-ca"',
      part: 'postgres',
      doc: '`verify-ca` checks the chain against the root certificate, `verify-full` the host name too; wins over `ssl`.',
    },
    {
      path: at('sslrootcert'),
      kind: text,
      example: '"/certs/root.crt"',
      part: 'postgres',
      doc: 'Path of the root certificate.',
    },
    {
      path: at('sslcert'),
      kind: text,
      example: '"/certs/client.crt"',
      part: 'postgres',
      doc: 'Path of the client certificate, for mutual TLS.',
    },
    {
      path: at('sslkey'),
      kind: text,
      example: '"/certs/client.pk8"',
      part: 'postgres',
      doc: 'Path of the key of the client certificate.',
    },
    {
      path: at('ApplicationName'),
      kind: anyText,
      reference: true,
      doc: 'Name shown by the server.',
    },
  ]
}

function tlsKeys(api: string): CantonKey[] {
  const at = (name: string) => `${PARTICIPANT_APP}.${api}.tls.${name}`
  return [
    {
      path: at('cert-chain-file'),
      kind: text,
      required: 'block',
      example: '"tls/ledger-api.crt"',
      part: 'tls',
      doc: 'Path of the certificate chain, or the PEM text itself.',
    },
    {
      path: at('private-key-file'),
      kind: text,
      required: 'block',
      example: '"tls/ledger-api.pem"',
      part: 'tls',
      doc: 'Path of the private key, PKCS#8 PEM without a password.',
    },
    {
      path: at('trust-collection-file'),
      kind: text,
      example: '"tls/root-ca.crt"',
      part: 'tls',
      doc: 'Path of the certificates that verify clients, or the PEM text itself.',
    },
    {
      path: at('client-auth.type'),
      kind: oneOf('none', 'optional', 'require'),
      example: 'require',
      default: 'optional',
      part: 'tls',
      doc: '`require` enables mutual TLS.',
    },
    {
      path: at('client-auth.admin-client.cert-chain-file'),
      kind: text,
      example: '"tls/admin-client.crt"',
      part: 'tls',
      doc: 'Client certificate of the admin client.',
    },
    {
      path: at('client-auth.admin-client.private-key-file'),
      kind: text,
      example: '"tls/admin-client.pem"',
      part: 'tls',
      doc: 'Key of that certificate, PKCS#8 PEM.',
    },
    {
      path: at('minimum-server-protocol-version'),
      kind: tlsVersion,
      example: '"TLSv1.3"',
      default: 'TLSv1.2',
      part: 'tls',
      doc: 'Lowest TLS version that the server speaks.',
    },
    {
      path: at('ciphers[]'),
      kind: text,
      example: '"TLS_AES_256_GCM_SHA384"',
      part: 'tls',
      doc: 'Allowed cipher suites.',
    },
    {
      path: at('enable-cert-revocation-checking'),
      kind: boolean,
      reference: true,
      doc: 'Asks whether certificates were revoked.',
    },
  ]
}

export const CANTON_KEYS: readonly CantonKey[] = [
  // The validator app.
  validator('onboarding.sv-client.admin-api.url', httpUrl, 'svSponsorAddress', {
    part: 'onboarding',
  }),
  {
    path: `${VALIDATOR_APP}.onboarding.secret`,
    kind: text,
    secret: true,
    part: 'onboarding',
    doc: 'The onboarding secret.',
  },
  validator('validator-party-hint', partyHint, 'validatorPartyHint'),
  validator('canton-identifier-config.participant', nodeIdentifier, 'nodeIdentifier'),
  validator('domain-migration-id', migrationId, 'migration.id'),
  {
    path: `${VALIDATOR_APP}.restore-from-migration-dump`,
    kind: text,
    reference: true,
    doc: 'Path of the migration dump.',
  },
  validator('scan-client.type', oneOf('bft', 'bft-custom', 'trust-single'), 'scanClient.scanType'),
  validator('scan-client.url', httpUrl, 'scanClient.scanAddress'),
  validator('scan-client.seed-urls[]', httpUrl, 'scanClient.seedUrls'),
  validator('scan-client.sv-names[]', text, 'scanClient.svNames'),
  validator('scan-client.threshold', positiveCount, 'scanClient.threshold'),
  validator('domains.global.url', httpUrl, 'synchronizer.url'),
  validator('domains.global.trusted-synchronizer-config.sv-names[]', text, 'synchronizer.svNames'),
  validator(
    'domains.global.trusted-synchronizer-config.threshold',
    positiveCount,
    'synchronizer.threshold',
  ),
  validator('domains.global.buy-extra-traffic.target-throughput', count, 'topup.targetThroughput', {
    example: '20000',
  }),
  validator(
    'domains.global.buy-extra-traffic.min-topup-interval',
    duration,
    'topup.minTopupInterval',
    { example: '1m' },
  ),
  validator('domains.global.reserved-traffic', count, 'topup.reservedTraffic'),
  validator('validator-wallet-users[]', text, 'validatorWalletUsers'),
  validator('auth.audience', text, 'auth.audience'),
  validator('auth.jwks-url', httpUrl, 'auth.jwksUrl'),
  {
    path: `${VALIDATOR_APP}.auth.algorithm`,
    kind: anyText,
    reference: true,
    doc: 'Algorithm of the tokens.',
  },
  {
    path: `${VALIDATOR_APP}.auth.secret`,
    kind: anyText,
    secret: true,
    reference: true,
    doc: 'Secret of tokens that are signed with one.',
  },
  validator('auth.connection-timeout', duration, 'auth.jwks.connectionTimeout'),
  validator('auth.read-timeout', duration, 'auth.jwks.readTimeout'),
  validator('contact-point', anyText, 'contactPoint'),
  validator('enable-wallet', boolean, 'enableWallet'),
  validator('deduplication-duration', wholeSeconds, 'deduplicationDuration'),
  validator('participant-pruning-schedule.cron', cron, 'participantPruningSchedule.cron', {
    example: '"0 /10 * * * ?"',
  }),
  validator(
    'participant-pruning-schedule.max-duration',
    wholeSeconds,
    'participantPruningSchedule.maxDuration',
    { example: '5m' },
  ),
  validator(
    'participant-pruning-schedule.retention',
    wholeSeconds,
    'participantPruningSchedule.retention',
    { example: '30d' },
  ),
  validator('wallet-sweep.*', partyId, 'walletSweep.*'),
  validator('wallet-sweep.*.max-balance-usd', decimal, 'walletSweep.*.maxBalanceUSD', {
    example: '1000',
  }),
  validator('wallet-sweep.*.min-balance-usd', decimal, 'walletSweep.*.minBalanceUSD', {
    example: '100',
  }),
  validator('wallet-sweep.*.receiver', partyId, 'walletSweep.*.receiver'),
  validator(
    'wallet-sweep.*.use-transfer-preapproval',
    boolean,
    'walletSweep.*.useTransferPreapproval',
  ),
  validator('auto-accept-transfers.*', partyId, 'autoAcceptTransfers.*'),
  validator('auto-accept-transfers.*.from-parties[]', partyId, 'autoAcceptTransfers.*.fromParties'),
  {
    path: `${VALIDATOR_APP}.automation.polling-interval`,
    kind: duration,
    example: '30s',
    default: '30s',
    part: 'wallet',
    doc: 'How often the automations look for work.',
  },
  {
    path: `${VALIDATOR_APP}.automation.topup-trigger-polling-interval`,
    kind: duration,
    example: '30s',
    default: 'the polling interval',
    part: 'topUp',
    doc: 'How often the top-up automation looks for work.',
  },
  {
    path: `${VALIDATOR_APP}.automation.topology-metrics-polling-interval`,
    kind: duration,
    example: '5m',
    part: 'topologyMetrics',
    doc: 'Exports metrics of the synchronizer topology, this often.',
  },
  {
    path: `${VALIDATOR_APP}.transfer-preapproval.preapproval-lifetime`,
    kind: duration,
    example: '90d',
    default: '90d',
    part: 'wallet',
    doc: 'How long a transfer preapproval lives.',
  },
  {
    path: `${VALIDATOR_APP}.transfer-preapproval.renewal-duration`,
    kind: duration,
    example: '30d',
    default: '30d',
    part: 'wallet',
    doc: 'How long before its end a preapproval is renewed.',
  },
  {
    path: `${VALIDATOR_APP}.disable-sv-validator-bft-sequencer-connection`,
    kind: boolean,
    reference: true,
    doc: 'Only for the validator of a super validator.',
  },
  {
    path: `${VALIDATOR_APP}.app-instances`,
    kind: freeMap,
    reference: true,
    doc: 'Apps that the validator onboards.',
  },
  {
    path: `${VALIDATOR_APP}.max-vetting-delay`,
    kind: anyText,
    reference: true,
    doc: 'Delay of package vetting.',
  },
  ...storageKeys(VALIDATOR_APP, 'validator'),
  // The participant.
  ...storageKeys(PARTICIPANT_APP, 'participant'),
  ...tlsKeys('ledger-api'),
  ...tlsKeys('admin-api'),
  {
    path: `${PARTICIPANT_APP}.ledger-api.auth-services`,
    kind: anything,
    reference: true,
    doc: 'How tokens are checked; use `auth` and `disableAuth`.',
  },
  {
    path: `${PARTICIPANT_APP}.ledger-api.address`,
    kind: hostName,
    reference: true,
    doc: 'Use `annals.bindAddress`.',
  },
  {
    path: `${PARTICIPANT_APP}.ledger-api.port`,
    kind: port,
    reference: true,
    doc: 'Use `annals.ports.ledger`.',
  },
  {
    path: `${PARTICIPANT_APP}.admin-api.address`,
    kind: hostName,
    reference: true,
    doc: 'Use `annals.bindAddress`.',
  },
  {
    path: `${PARTICIPANT_APP}.admin-api.port`,
    kind: port,
    reference: true,
    doc: 'The admin routes are on the port of the ledger API.',
  },
  {
    path: `${PARTICIPANT_APP}.parameters.stores.safe-to-prune-commitment-state`,
    kind: anyText,
    reference: true,
    doc: 'How far pruning may go past silent participants.',
  },
  // Monitoring.
  { path: 'canton.monitoring', kind: block, doc: 'Monitoring of both apps.' },
  { path: 'canton.monitoring.metrics', kind: block, doc: 'Metrics of both apps.' },
  {
    path: 'canton.monitoring.metrics.histograms[]',
    kind: anything,
    example: '[]',
    part: 'metrics',
    doc: 'An empty list falls back from native to regular histograms.',
  },
]
