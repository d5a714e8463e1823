import type { CronSchedule } from './cron.ts'
import type { ProxySettings } from './jvm-options.ts'
import type { Secret } from './secret.ts'

/** Everything that a node is told, frozen, in groups for the parts that use it. */
export type NodeConfig = {
  readonly dataDir: string
  readonly logLevel: LogLevel
  readonly listen: ListenConfig
  readonly databases: { readonly app: DatabaseConfig; readonly participant: DatabaseConfig }
  readonly auth: AuthConfig
  readonly identity: IdentityConfig
  readonly migration: MigrationConfig
  /** Who writes the history: the embedded ledger, or the mirror of a network, joined or not. */
  readonly historyWriter: 'ledger' | 'mirror'
  /** The network that the node joins; undefined for a node on its own. */
  readonly network: NetworkConfig | undefined
  readonly ledger: LedgerConfig
  readonly scan: ScanConfig
  readonly mirror: MirrorConfig
  readonly wallet: WalletConfig
  /** Undefined keeps the full history. */
  readonly pruning: PruningConfig | undefined
  readonly proxy: ProxySettings | undefined
  readonly metrics: MetricsConfig
  /** What only matters in what the node is deployed with: chart and compose. */
  readonly deployment: DeploymentConfig
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'off'

export type ListenConfig = {
  readonly bindAddress: string
  /** 0 picks a free port. */
  readonly ports: {
    readonly ledger: number
    readonly scan: number
    readonly validator: number
    readonly metrics: number
  }
  /** TLS of the ledger API, and of the admin routes where they are told apart. */
  readonly ledgerTls: TlsConfig | undefined
  readonly adminTls: TlsConfig | undefined
}

/** A file whose changes matter, or the PEM text itself. */
export type PemSource = { readonly path: string } | { readonly pem: string }

export type TlsConfig = {
  readonly certChain: PemSource
  readonly privateKey: PemSource
  readonly trustCollection: PemSource | undefined
  readonly clientAuth: 'none' | 'optional' | 'require'
  readonly adminClient:
    | { readonly certChain: PemSource; readonly privateKey: PemSource }
    | undefined
  readonly minimumVersion: 'TLSv1.2' | 'TLSv1.3'
  /** Undefined leaves the choice to the runtime. */
  readonly ciphers: readonly string[] | undefined
  /** Key exchange groups of TLS 1.3. */
  readonly groups: readonly string[] | undefined
}

export type DatabaseConfig = SqliteConfig | PostgresConfig

export type SqliteConfig = { readonly engine: 'sqlite'; readonly file: string }

export type PostgresConfig = {
  readonly engine: 'postgres'
  readonly host: string
  readonly port: number
  readonly user: string
  /** Undefined when none was given: a server that trusts its host asks for none. */
  readonly password: Secret | undefined
  readonly database: string
  readonly schema: string
  readonly tls: DatabaseTlsConfig | undefined
  readonly connectionsMax: number
  /** Refuse to start without the database, or wait for it. */
  readonly failFast: boolean
}

export type DatabaseTlsConfig = {
  readonly mode: 'allow' | 'prefer' | 'require' | 'verify-ca' | 'verify-full'
  readonly rootCertFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

export type AuthConfig = {
  /** Opens the APIs without a token. */
  readonly disabled: boolean
  /** Tokens of the ledger API; undefined without a provider. */
  readonly participant: { readonly jwksUrl: string; readonly targetAudience: string } | undefined
  /** Tokens of the validator API; undefined without a provider. */
  readonly validator: { readonly jwksUrl: string; readonly audience: string } | undefined
  /** Infinity means no limit. */
  readonly jwksConnectTimeoutMs: number
  readonly jwksReadTimeoutMs: number
  /** How the validator gets tokens for the participant. */
  readonly ledgerApi: LedgerApiClientConfig | undefined
  /** The service user that is made an admin at the first start. */
  readonly ledgerApiUser: string | undefined
  readonly walletUi: UiClientConfig | undefined
  readonly nameServiceUi: UiClientConfig | undefined
}

export type LedgerApiClientConfig = {
  readonly user: string
  readonly url: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: Secret | undefined
  readonly audience: string | undefined
  readonly scope: string | undefined
  readonly token: Secret | undefined
}

export type UiClientConfig = { readonly url: string; readonly clientId: string }

export type IdentityConfig = {
  readonly partyHint: string
  readonly nodeIdentifier: string
  readonly contactPoint: string
  /** Whether the operator chose hint and identifier, so that a stored one must agree. */
  readonly given: boolean
}

export type MigrationConfig = {
  readonly id: bigint
  readonly migrating: boolean
  readonly migrateValidatorParty: boolean
  readonly identitiesDump: Secret | undefined
}

export type NetworkConfig = {
  readonly sponsorUrl: string
  /** Undefined once the node is onboarded, or on a development network. */
  readonly onboardingSecret: Secret | undefined
  readonly devNet: boolean
  readonly scan: ScanConnection
  readonly sequencer: SequencerConnection
  readonly extraSynchronizers: readonly { readonly alias: string; readonly url: string }[]
}

export type ScanConnection =
  | { readonly mode: 'bft'; readonly seedUrls: readonly string[] }
  | {
      readonly mode: 'bft-custom'
      readonly seedUrls: readonly string[]
      readonly svNames: readonly string[]
      readonly threshold: number
    }
  | { readonly mode: 'trust-single'; readonly url: string }

export type SequencerConnection =
  | { readonly mode: 'bft' }
  | { readonly mode: 'bft-custom'; readonly svNames: readonly string[]; readonly threshold: number }
  | { readonly mode: 'trust-single'; readonly url: string }

export type LedgerConfig = {
  /** Whether contracts can be reassigned to a second embedded synchronizer. */
  readonly secondSynchronizer: boolean
  /** Written into the rules contract of a network that is founded. */
  readonly traffic: LedgerTrafficConfig
}

export type LedgerTrafficConfig = {
  readonly burstAmount: number
  readonly burstWindowMs: number
  /** USD for a million bytes, as a decimal text. */
  readonly extraTrafficPrice: string
  readonly minTopupAmount: number
  readonly readVsWriteScalingFactor: number
}

export type ScanConfig = {
  /** Undefined accepts every page size. */
  readonly maxPageSize: number | undefined
  readonly cacheBytes: number
  /** Where others reach this scan; undefined lists it nowhere. */
  readonly publicUrl: string | undefined
}

export type MirrorConfig = {
  /** Scans to copy from without joining their network; undefined unless given. */
  readonly from: readonly string[] | undefined
  /** How many scans must say the same before it is stored. */
  readonly agreement: 'f+1' | '2f+1'
}

export type WalletConfig = {
  readonly enabled: boolean
  readonly users: readonly string[]
  readonly sweeps: readonly SweepConfig[]
  readonly autoAccept: readonly AutoAcceptConfig[]
  /** Undefined buys nothing. */
  readonly topUp: TopUpConfig | undefined
  readonly pollingIntervalMs: number
  readonly deduplicationMs: number
  readonly preapprovalLifetimeMs: number
  readonly preapprovalRenewalMs: number
  /** Ledger API of another participant; undefined means this node's own. */
  readonly participantUrl: string | undefined
  /** Another scan; undefined means this node's own. */
  readonly scanUrl: string | undefined
}

export type SweepConfig = {
  readonly sender: string
  readonly receiver: string
  /** Decimal texts, exact. */
  readonly maxBalanceUsd: string
  readonly minBalanceUsd: string
  readonly useTransferPreapproval: boolean
}

export type AutoAcceptConfig = {
  readonly receiver: string
  readonly fromParties: readonly string[]
}

export type TopUpConfig = {
  readonly targetThroughput: number
  readonly minTopupIntervalMs: number
  readonly reservedTraffic: number
  readonly pollingIntervalMs: number
}

export type PruningConfig = {
  readonly cron: CronSchedule
  readonly maxDurationMs: number
  readonly retentionMs: number
}

export type MetricsConfig = {
  readonly nativeHistograms: boolean
  /** Undefined exports no metrics of the topology. */
  readonly topologyIntervalMs: number | undefined
}

export type DeploymentConfig = {
  readonly healthProbes: boolean
  readonly livenessDelaySeconds: { readonly validator: number; readonly participant: number }
  readonly serviceMonitor: {
    readonly validator: ServiceMonitorConfig
    readonly participant: ServiceMonitorConfig
  }
  readonly volume: {
    readonly size: string | undefined
    readonly storageClass: string | undefined
    readonly claimName: string
  }
  readonly databaseServer: {
    readonly maxConnections: number
    readonly maxWalSize: string
    readonly extraArgs: readonly string[]
  }
}

export type ServiceMonitorConfig = {
  readonly enabled: boolean
  readonly release: string
  readonly intervalMs: number
}
