import { join, resolve } from 'node:path'
import { PARTICIPANT_APP, VALIDATOR_APP } from './canton-keys.ts'
import type { CronSchedule } from './cron.ts'
import type * as Config from './node-config.ts'
import { type RuleContext, usesPostgres } from './rule-context.ts'
import { scanMode, sequencerMode } from './rules-network.ts'
import { proxyReading } from './rules-proxy.ts'
import { namedGroups, resolvePath } from './rules-tls.ts'
import {
  DEDUPLICATION_MS,
  POLLING_INTERVAL_MS,
  PREAPPROVAL_LIFETIME_MS,
  PREAPPROVAL_RENEWAL_MS,
  topUpOf,
} from './rules-wallet.ts'
import { type Secret, secretOf } from './secret.ts'
import { printPath } from './tree.ts'
import { LEDGER_API_SECRET, NAME_SERVICE_UI_SECRET, WALLET_UI_SECRET } from './variables.ts'

const DEFAULT_PARTY_HINT = 'annals-validator-1'
const DEFAULT_CACHE_BYTES = 64 * 1024 * 1024
const DEFAULT_CONNECTIONS = 10
const JWKS_TIMEOUT_MS = 10_000
const SERVICE_MONITOR_INTERVAL_MS = 30_000

/** The settings as the options of the parts. Called only when no rule was broken. */
export function assembleConfig(context: RuleContext): Config.NodeConfig {
  const { settings } = context
  const value = <T>(path: string, otherwise: T): T =>
    settings.value<T>('validator', path) ?? otherwise
  const dataDir = resolve(context.sources.request.cwd, value('annals.dataDir', './annals-data'))
  return deepFreeze({
    dataDir,
    logLevel:
      settings.value<Config.LogLevel>('validator', 'annals.logLevel') ??
      settings.value<Config.LogLevel>('validator', 'logLevel') ??
      settings.value<Config.LogLevel>('participant', 'logLevel') ??
      'info',
    listen: {
      bindAddress: value('annals.bindAddress', '127.0.0.1'),
      ports: {
        ledger: value('annals.ports.ledger', 7575),
        scan: value('annals.ports.scan', 5012),
        validator: value('annals.ports.validator', 5003),
        metrics: value('annals.ports.metrics', 10013),
      },
      ledgerTls: tlsOf(context, 'ledger-api'),
      adminTls: tlsOf(context, 'admin-api'),
    },
    databases: {
      app: databaseOf(context, 'validator', dataDir),
      participant: databaseOf(context, 'participant', dataDir),
    },
    auth: authOf(context),
    identity: identityOf(context),
    migration: {
      id: value('migration.id', 0n),
      migrating: value('migration.migrating', false),
      migrateValidatorParty: value('migrateValidatorParty', false),
      identitiesDump: dumpOf(context),
    },
    historyWriter:
      context.joining || settings.get('validator', 'annals.mirror.from') !== undefined
        ? 'mirror'
        : 'ledger',
    network: context.joining ? networkOf(context) : undefined,
    ledger: {
      secondSynchronizer: value('annals.ledger.secondSynchronizer', false),
      traffic: {
        burstAmount: value('annals.ledger.traffic.burstAmount', 40_000_000_000),
        burstWindowMs: value('annals.ledger.traffic.burstWindow', 1_200_000),
        extraTrafficPrice: value('annals.ledger.traffic.extraTrafficPrice', '16.67'),
        minTopupAmount: value('annals.ledger.traffic.minTopupAmount', 200_000),
        readVsWriteScalingFactor: value('annals.ledger.traffic.readVsWriteScalingFactor', 4),
      },
    },
    scan: {
      maxPageSize: settings.value<number>('validator', 'annals.scan.maxPageSize'),
      cacheBytes: value('annals.scan.cacheBytes', DEFAULT_CACHE_BYTES),
      publicUrl: settings.value<string>('validator', 'annals.scan.publicUrl'),
    },
    mirror: {
      from: settings.value<string[]>('validator', 'annals.mirror.from'),
      agreement: value('annals.mirror.agreement', 'f+1'),
    },
    wallet: walletOf(context),
    pruning: pruningOf(context),
    proxy: proxyOptions(context),
    metrics: {
      nativeHistograms:
        settings.value<unknown[]>('canton', 'canton.monitoring.metrics.histograms')?.length !== 0,
      topologyIntervalMs: settings.value<number>(
        'canton',
        `${VALIDATOR_APP}.automation.topology-metrics-polling-interval`,
      ),
    },
    deployment: deploymentOf(context),
  })
}

function tlsOf({ settings, sources }: RuleContext, api: string): Config.TlsConfig | undefined {
  const at = `${PARTICIPANT_APP}.${api}.tls`
  const pem = (name: string): Config.PemSource | undefined => {
    const text = settings.value<string>('canton', `${at}.${name}`)
    if (text === undefined) return undefined
    return text.includes('-----BEGIN ')
      ? { pem: text }
      : { path: resolvePath(sources.request, text) }
  }
  const certChain = pem('cert-chain-file')
  const privateKey = pem('private-key-file')
  if (certChain === undefined || privateKey === undefined) return undefined
  const adminChain = pem('client-auth.admin-client.cert-chain-file')
  const adminKey = pem('client-auth.admin-client.private-key-file')
  return {
    certChain,
    privateKey,
    trustCollection: pem('trust-collection-file'),
    clientAuth:
      settings.value<Config.TlsConfig['clientAuth']>('canton', `${at}.client-auth.type`) ??
      'optional',
    adminClient:
      adminChain === undefined || adminKey === undefined
        ? undefined
        : { certChain: adminChain, privateKey: adminKey },
    minimumVersion:
      settings.value<Config.TlsConfig['minimumVersion']>(
        'canton',
        `${at}.minimum-server-protocol-version`,
      ) ?? 'TLSv1.2',
    ciphers: settings.value<string[]>('canton', `${at}.ciphers`),
    groups: namedGroups({ settings }),
  }
}

function databaseOf(
  context: RuleContext,
  file: 'validator' | 'participant',
  dataDir: string,
): Config.DatabaseConfig {
  const { settings } = context
  const app = file === 'validator' ? VALIDATOR_APP : PARTICIPANT_APP
  const migration = settings.value<bigint>('validator', 'migration.id') ?? 0n
  const inMemory = settings.value('canton', `${app}.storage.type`) === 'memory'
  if (!usesPostgres(context, file) || inMemory) {
    return {
      engine: 'sqlite',
      file: join(dataDir, file === 'validator' ? 'app.sqlite' : `participant_${migration}.sqlite`),
    }
  }
  const value = <T>(name: string, otherwise: T): T =>
    settings.value<T>(file, `persistence.${name}`) ?? otherwise
  const setting = <T>(name: string) => settings.value<T>('canton', `${app}.storage.${name}`)
  const database = value(
    'databaseName',
    file === 'validator' ? 'cantonnet_validator' : `participant_${migration}`,
  )
  const shared =
    file === 'validator' && database === settings.value('participant', 'persistence.databaseName')
  const schema = value('schema', file === 'validator' ? 'validator' : 'participant')
  return {
    engine: 'postgres',
    host: value('host', 'postgres'),
    port: value('port', 5432),
    user: value('user', 'cnadmin'),
    password: passwordOf(context, file),
    database,
    schema: shared && schema === 'participant' ? 'validator' : schema,
    tls: databaseTlsOf(context, app),
    connectionsMax:
      setting<number>('parameters.max-connections') ??
      setting<number>('config.maxConnections') ??
      setting<number>('config.numThreads') ??
      (setting('config.connectionPool') === 'disabled' ? 1 : undefined) ??
      settings.value<number>('validator', 'annals.database.connections') ??
      DEFAULT_CONNECTIONS,
    failFast: setting<boolean>('parameters.fail-fast-on-startup') ?? true,
  }
}

function passwordOf(
  { settings }: RuleContext,
  file: 'validator' | 'participant',
): Secret | undefined {
  const name = settings.value<string>(file, 'persistence.secretName') ?? 'postgres-secrets'
  const found =
    settings.secret(`${name}/postgresPassword`) ??
    settings.get(file, 'persistence.secretOverrides.postgresPassword')
  return found === undefined ? undefined : secretOf(String(found.value))
}

function databaseTlsOf(
  { settings, sources }: RuleContext,
  app: string,
): Config.DatabaseTlsConfig | undefined {
  const property = <T>(name: string) =>
    settings.value<T>('canton', `${app}.storage.config.properties.${name}`)
  const mode = property<string>('sslmode') ?? (property('ssl') === true ? 'verify-full' : 'disable')
  if (mode === 'disable') return undefined
  const file = (name: string) => {
    const path = property<string>(name)
    return path === undefined ? undefined : resolvePath(sources.request, path)
  }
  return {
    mode: mode as Config.DatabaseTlsConfig['mode'],
    rootCertFile: file('sslrootcert'),
    certFile: file('sslcert'),
    keyFile: file('sslkey'),
  }
}

function authOf({ settings }: RuleContext): Config.AuthConfig {
  const participant = {
    jwksUrl: settings.value<string>('participant', 'auth.jwksUrl'),
    targetAudience: settings.value<string>('participant', 'auth.targetAudience'),
  }
  const validator = {
    jwksUrl: settings.value<string>('validator', 'auth.jwksUrl'),
    audience: settings.value<string>('validator', 'auth.audience'),
  }
  const disabled = settings.value('validator', 'disableAuth') === true
  const secretName = settings.value<string>('validator', 'auth.secretName') ?? LEDGER_API_SECRET
  const entry = (name: string, override: string): string | undefined =>
    settings.value<string>('validator', `auth.secretOverrides.${override}`) ??
    ((settings.secret(`${secretName}/${name}`) ?? settings.secret(`${LEDGER_API_SECRET}/${name}`))
      ?.value as string | undefined)
  const hidden = (text: string | undefined) => (text === undefined ? undefined : secretOf(text))
  const user = entry('ledger-api-user', 'ledgerApiUser')
  const reference = 'participantAdminUserNameFrom.secretKeyRef'
  const adminSecret = `${settings.value('participant', `${reference}.name`)}/${settings.value('participant', `${reference}.key`)}`
  const ui = (secret: string): Config.UiClientConfig | undefined => {
    const url = settings.secret(`${secret}/url`)?.value
    const clientId = settings.secret(`${secret}/client-id`)?.value
    return url === undefined || clientId === undefined
      ? undefined
      : { url: String(url), clientId: String(clientId) }
  }
  return {
    disabled,
    participant:
      disabled || participant.jwksUrl === undefined
        ? undefined
        : (participant as Config.AuthConfig['participant']),
    validator:
      disabled || validator.jwksUrl === undefined
        ? undefined
        : (validator as Config.AuthConfig['validator']),
    jwksConnectTimeoutMs:
      settings.value<number>('validator', 'auth.jwks.connectionTimeout') ?? JWKS_TIMEOUT_MS,
    jwksReadTimeoutMs:
      settings.value<number>('validator', 'auth.jwks.readTimeout') ?? JWKS_TIMEOUT_MS,
    ledgerApi:
      user === undefined
        ? undefined
        : {
            user,
            url: entry('url', 'url'),
            clientId: entry('client-id', 'clientId'),
            clientSecret: hidden(entry('client-secret', 'clientSecret')),
            audience: entry('audience', 'audience'),
            scope: entry('scope', 'scope'),
            token: hidden(entry('token', 'token')),
          },
    ledgerApiUser:
      settings.value<string>('participant', 'auth.secretOverrides.ledgerApiUser') ??
      (settings.secret(adminSecret)?.value as string | undefined) ??
      user,
    walletUi: ui(WALLET_UI_SECRET),
    nameServiceUi: ui(NAME_SERVICE_UI_SECRET),
  }
}

export function identityOf({ settings }: RuleContext): Config.IdentityConfig {
  const hint = settings.value<string>('validator', 'validatorPartyHint')
  const partyHint = hint ?? DEFAULT_PARTY_HINT
  return {
    partyHint,
    nodeIdentifier: settings.value<string>('validator', 'nodeIdentifier') ?? partyHint,
    contactPoint: settings.value<string>('validator', 'contactPoint') ?? '',
    given: hint !== undefined,
  }
}

function dumpOf({ settings }: RuleContext): Secret | undefined {
  if (settings.placeOf('validator', 'participantIdentitiesDumpImport') === undefined)
    return undefined
  const name =
    settings.value<string>('validator', 'participantIdentitiesDumpImport.secretName') ??
    'participant-bootstrap-dump'
  const content = settings.secret(`${name}/content`)
  return content === undefined ? undefined : secretOf(String(content.value))
}

function networkOf(context: RuleContext): Config.NetworkConfig {
  const { settings } = context
  const reference = 'onboardingSecretFrom.secretKeyRef'
  const path = `${settings.value('validator', `${reference}.name`)}/${settings.value('validator', `${reference}.key`)}`
  const secret = String(
    (
      settings.secret(path) ??
      settings.get('canton', `${VALIDATOR_APP}.onboarding.secret`) ??
      settings.secret('onboarding/secret')
    )?.value ?? '',
  )
  const extra = settings.value<unknown[]>('validator', 'extraDomains') ?? []
  return {
    sponsorUrl: settings.value<string>('validator', 'svSponsorAddress') ?? '',
    onboardingSecret: secret === '' ? undefined : secretOf(secret),
    devNet: settings.secret('onboarding/devnet') !== undefined,
    scan: scanConnectionOf(context),
    sequencer: sequencerConnectionOf(context),
    extraSynchronizers: extra.map((_, index) => ({
      alias:
        settings.value<string>('validator', `extraDomains[${index}].alias`) ?? `extra-${index}`,
      url: settings.value<string>('validator', `extraDomains[${index}].url`) ?? '',
    })),
  }
}

function scanConnectionOf({ settings }: RuleContext): Config.ScanConnection {
  const value = <T>(path: string) => settings.value<T>('validator', path)
  const address = settings.get('validator', 'scanAddress')
  if (settings.placeOf('validator', 'scanClient') === undefined) {
    const url = String(address?.value)
    return value('nonSvValidatorTrustSingleScan') === true
      ? { mode: 'trust-single', url }
      : { mode: 'bft', seedUrls: [url] }
  }
  const mode = scanMode({ settings })
  // Beside scanClient in the values only a variable can give an address. It wins over them, and HOCON over it.
  const given = (path: string) => {
    const setting = settings.get('validator', path)
    return setting?.name.startsWith('canton.') === true ? setting : undefined
  }
  const seeds = given('scanClient.seedUrls')?.value ?? (address && [String(address.value)])
  const seedUrls = (seeds as string[] | undefined) ?? value<string[]>('scanClient.seedUrls') ?? []
  if (mode === 'trust-single') {
    const single = given('scanClient.scanAddress') ?? address
    return { mode, url: String(single?.value ?? value('scanClient.scanAddress')) }
  }
  if (mode === 'bft') return { mode, seedUrls }
  return {
    mode,
    seedUrls,
    svNames: value<string[]>('scanClient.svNames') ?? [],
    threshold: value<number>('scanClient.threshold') ?? 1,
  }
}

function sequencerConnectionOf(context: RuleContext): Config.SequencerConnection {
  const value = <T>(path: string) => context.settings.value<T>('validator', path)
  const mode = sequencerMode(context)
  if (mode === 'trust-single') return { mode, url: String(value('synchronizer.url')) }
  if (mode === 'bft-custom') {
    return {
      mode,
      svNames: value<string[]>('synchronizer.svNames') ?? [],
      threshold: value<number>('synchronizer.threshold') ?? 1,
    }
  }
  if (mode === undefined && value('useSequencerConnectionsFromScan') === false) {
    return { mode: 'trust-single', url: String(value('decentralizedSynchronizerUrl')) }
  }
  return { mode: 'bft' }
}

export function walletOf(context: RuleContext): Config.WalletConfig {
  const { settings } = context
  const value = <T>(path: string) => settings.value<T>('validator', path)
  const automation = (name: string) =>
    settings.value<number>('canton', `${VALIDATOR_APP}.automation.${name}`)
  const user = value<string>('validatorWalletUser')
  const pollingIntervalMs = automation('polling-interval') ?? POLLING_INTERVAL_MS
  const topUp = topUpOf(context)
  const preapproval = (name: string) =>
    settings.value<number>('canton', `${VALIDATOR_APP}.transfer-preapproval.${name}`)
  return {
    enabled: value<boolean>('enableWallet') ?? true,
    users: [
      ...new Set([
        ...(value<string[]>('validatorWalletUsers') ?? []),
        ...(user === undefined ? [] : [user]),
      ]),
    ],
    sweeps: settings.membersOf('validator', 'walletSweep').map((sender) => {
      const at = printPath(['walletSweep', sender])
      return {
        sender,
        receiver: value<string>(`${at}.receiver`) ?? '',
        maxBalanceUsd: value<string>(`${at}.maxBalanceUSD`) ?? '0',
        minBalanceUsd: value<string>(`${at}.minBalanceUSD`) ?? '0',
        useTransferPreapproval: value<boolean>(`${at}.useTransferPreapproval`) ?? false,
      }
    }),
    autoAccept: settings.membersOf('validator', 'autoAcceptTransfers').map((receiver) => ({
      receiver,
      fromParties:
        value<string[]>(`${printPath(['autoAcceptTransfers', receiver])}.fromParties`) ?? [],
    })),
    topUp: topUp.active
      ? {
          targetThroughput: topUp.throughput,
          minTopupIntervalMs: topUp.intervalMs,
          reservedTraffic: topUp.reservedBytes,
          pollingIntervalMs: automation('topup-trigger-polling-interval') ?? pollingIntervalMs,
        }
      : undefined,
    pollingIntervalMs,
    deduplicationMs: value<number>('deduplicationDuration') ?? DEDUPLICATION_MS,
    preapprovalLifetimeMs: preapproval('preapproval-lifetime') ?? PREAPPROVAL_LIFETIME_MS,
    preapprovalRenewalMs: preapproval('renewal-duration') ?? PREAPPROVAL_RENEWAL_MS,
    participantUrl: value<string>('annals.wallet.participantUrl'),
    scanUrl: value<string>('annals.wallet.scanUrl'),
  }
}

function pruningOf({ settings }: RuleContext): Config.PruningConfig | undefined {
  const at = 'participantPruningSchedule'
  const cron = settings.value<CronSchedule>('validator', `${at}.cron`)
  if (cron === undefined) return undefined
  return {
    cron,
    maxDurationMs: settings.value<number>('validator', `${at}.maxDuration`) ?? 0,
    retentionMs: settings.value<number>('validator', `${at}.retention`) ?? 0,
  }
}

function proxyOptions(context: RuleContext): Config.NodeConfig['proxy'] {
  const reading = proxyReading(context, 'validator')
  return 'proxy' in reading ? reading.proxy : undefined
}

function deploymentOf({ settings }: RuleContext): Config.DeploymentConfig {
  const database = <T>(name: string): T | undefined =>
    settings.value<T>('postgres', `db.${name}`) ??
    settings.value<T>('participant', `db.${name}`) ??
    settings.value<T>('validator', `db.${name}`)
  const monitor = (file: 'validator' | 'participant'): Config.ServiceMonitorConfig => ({
    enabled: settings.value<boolean>(file, 'metrics.enable') ?? false,
    release: settings.value<string>(file, 'metrics.release') ?? 'prometheus-grafana-monitoring',
    intervalMs: settings.value<number>(file, 'metrics.interval') ?? SERVICE_MONITOR_INTERVAL_MS,
  })
  const delay = (file: 'validator' | 'participant', otherwise: number) =>
    settings.value<number>(file, 'livenessProbeInitialDelaySeconds') ?? otherwise
  return {
    healthProbes: settings.value<boolean>('participant', 'enableHealthProbes') ?? true,
    livenessDelaySeconds: {
      validator: delay('validator', 60),
      participant: delay('participant', 600),
    },
    serviceMonitor: { validator: monitor('validator'), participant: monitor('participant') },
    volume: {
      size: database('volumeSize'),
      storageClass: database('volumeStorageClass'),
      claimName: database('pvcTemplateName') ?? 'pg-data',
    },
    databaseServer: {
      maxConnections: database('maxConnections') ?? 300,
      maxWalSize: database('maxWalSize') ?? '2GB',
      extraArgs: settings.value<string[]>('postgres', 'extraArgs') ?? [],
    },
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}
