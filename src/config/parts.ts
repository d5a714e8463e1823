/**
 * The parts of the node that settings belong to, and what each makes of them. A setting whose
 * part is not in this version is checked all the same, and said to have no effect.
 */
export const PARTS = {
  listen: 'the servers of the node',
  log: 'the log',
  scan: 'the scan service',
  users: 'user administration and tokens',
  postgres: 'the PostgreSQL store',
  tls: 'TLS of the ledger API',
  proxy: 'outgoing calls through a proxy',
  health: 'the health checks',
  metrics: 'the metrics service',
  topologyMetrics: 'the metrics of the synchronizer topology',
  ledger: 'the embedded ledger',
  migration: 'synchronizer migration',
  mirror: 'the mirror of a network',
  onboarding: 'onboarding with a sponsor',
  wallet: 'the wallet',
  sweep: 'the wallet sweep automation',
  autoAccept: 'the automation that accepts transfers',
  topUp: 'the traffic top-up automation',
  pruning: 'participant pruning',
  deployment: 'the deployment files (chart and compose)',
} as const

export type Part = keyof typeof PARTS

export const ALL_PARTS = Object.keys(PARTS) as Part[]
