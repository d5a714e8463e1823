import type { Db } from './db/db.ts'
import { DatabaseUnavailable, SqlError } from './db/db-error.ts'
import type { Health } from './health/checks.ts'
import type { Encoding, PreparedUpdate } from './history/encode.ts'
import type { History } from './history/history.ts'
import type { Version } from './history/versions.ts'
import { countBuckets } from './metrics/histogram.ts'
import type { Registry } from './metrics/registry.ts'
import type { ScanOptions } from './scan/routes.ts'
import type { KeySet } from './users/key-set.ts'
import type { TokenEvents } from './users/token.ts'
import { type Instant, microsOf } from './values/instant.ts'

// The parts tell what they do through callbacks; here they become metrics. docs/metrics.md names them all.

export function measurePages(registry: Registry): NonNullable<ScanOptions['onPage']> {
  const labels = ['version', 'encoding'] as const
  const pages = registry.counter({
    name: 'annals_pages_total',
    help: 'Pages served whole.',
    labels,
  })
  const updates = registry.counter({
    name: 'annals_page_updates_total',
    help: 'Updates sent.',
    labels,
  })
  const bytes = registry.counter({
    name: 'annals_page_bytes_total',
    help: 'Bytes of pages, as sent.',
    labels,
  })
  const handlesOf = (version: Version, encoding: Encoding) => {
    const values = { version: `v${version}`, encoding }
    return {
      pages: pages.labels(values),
      updates: updates.labels(values),
      bytes: bytes.labels(values),
    }
  }
  // Looked up once: a page of one update is quick enough for that to show.
  const handles = ([0, 1, 2] as const).map((version) => ({
    compact_json: handlesOf(version, 'compact_json'),
    protobuf_json: handlesOf(version, 'protobuf_json'),
  }))
  return ({ version, encoding }, sent) => {
    const handle = version === 'export' ? undefined : handles[version]?.[encoding]
    // A client that goes away in the middle has got updates, but no page.
    if (sent.isComplete) handle?.pages.inc()
    handle?.updates.inc(sent.updates)
    handle?.bytes.inc(sent.bytes)
  }
}

export type AppendObserver = (batch: PreparedUpdate[], seconds: number) => void

export function measureAppends(registry: Registry): AppendObserver {
  const store = { store_name: 'UpdateHistory' }
  const transactions = registry.counter({
    name: 'splice_history_updates_transactions_total',
    help: 'Transactions appended to the history.',
  })
  const assignments = registry.counter({
    name: 'splice_history_updates_assignments_total',
    help: 'Assignments appended to the history.',
  })
  const unassignments = registry.counter({
    name: 'splice_history_updates_unassignments_total',
    help: 'Unassignments appended to the history.',
  })
  const events = registry.gauge({
    name: 'splice_history_updates_event_count',
    help: 'Events in the updates appended since the start.',
  })
  const lastIngested = registry.gauge({
    name: 'splice_store_last_ingested_record_time_ms',
    help: 'Record time of the newest update taken in since the start, in milliseconds since 1970.',
    labels: ['store_name', 'synchronizer_id'],
  })
  const bytes = registry.counter({
    name: 'annals_history_bytes_total',
    help: 'Bytes appended to the history, before compression.',
    labels: ['encoding'],
  })
  const batchSize = registry
    .histogram({
      name: 'splice_store_ingestion_batch_size',
      help: 'Updates in a batch.',
      labels: ['store_name'],
      buckets: countBuckets,
    })
    .labels(store)
  const latency = registry
    .histogram({
      name: 'splice_store_batch_ingestion_latency_duration_seconds',
      help: 'Time to take in a batch, to the durable end.',
      labels: ['store_name'],
    })
    .labels(store)
  const completed = registry
    .counter({
      name: 'splice_store_completed_ingestions_total',
      help: 'Updates taken in.',
      labels: ['store_name'],
    })
    .labels(store)
  const lastAppend = registry.gauge({
    name: 'annals_history_last_append_time_seconds',
    help: 'When the last update was appended, in seconds since 1970; 0 before the first.',
  })
  return (batch, seconds) => {
    for (const update of batch) {
      if (update.kind === 'transaction') transactions.inc()
      // Only an assignment has an event: the contract, created anew.
      else (update.eventCount === 1 ? assignments : unassignments).inc()
      events.inc(update.eventCount)
      bytes.labels({ encoding: 'compact_json' }).inc(update.compact.length)
      bytes.labels({ encoding: 'protobuf_json' }).inc(update.protobuf.length)
    }
    for (const [synchronizer_id, recordTime] of newestBySynchronizer(batch)) {
      const millis = Number(microsOf(recordTime) / 1000n)
      lastIngested.labels({ ...store, synchronizer_id }).set(millis)
    }
    batchSize.observe(batch.length)
    latency.observe(seconds)
    completed.inc(batch.length)
    lastAppend.set(Date.now() / 1000)
  }
}

/** A batch is in the order of record times, so the last one of each counts. */
function newestBySynchronizer(batch: PreparedUpdate[]): Map<string, Instant> {
  return new Map(batch.map(({ synchronizerId, recordTime }) => [synchronizerId, recordTime]))
}

export function measureHistory(
  registry: Registry,
  { history, isStalled }: { history: History; isStalled(): boolean },
): void {
  registry.gauge({
    name: 'annals_history_writer_stalled',
    help: '1 while an append makes no progress.',
    collect: (gauge) => gauge.set(isStalled() ? 1 : 0),
  })
  registry.gauge({
    name: 'annals_history_updates',
    help: 'Updates in the history.',
    collect: (gauge) => gauge.set(history.view.updates),
  })
  registry.gauge({
    name: 'splice_history_updates_latest_record_time',
    help: 'Record time of the newest update, in microseconds since 1970.',
    collect: (gauge) => {
      const { last } = history.view
      if (last !== undefined) gauge.set(Number(microsOf(last.recordTime)))
    },
  })
  registry.gauge({
    name: 'annals_frame_cache_bytes',
    help: 'Bytes in the cache of opened frames.',
    collect: (gauge) => gauge.set(history.cache.bytes),
  })
}

export function measureTokens(
  registry: Registry,
): Pick<TokenEvents, 'onTokenCheck' | 'onKeySetFetch'> {
  const checks = registry.counter({
    name: 'annals_token_checks_total',
    help: 'Tokens checked.',
    labels: ['http_service', 'outcome'],
  })
  const fetches = registry.counter({
    name: 'annals_key_set_fetches_total',
    help: 'Fetches of key sets.',
    labels: ['outcome'],
  })
  return {
    onTokenCheck: (outcome) => checks.labels({ http_service: 'json_api', outcome }).inc(),
    onKeySetFetch: (outcome) =>
      fetches.labels({ outcome: outcome === 'ok' ? 'success' : 'failure' }).inc(),
  }
}

export function measureKeySet(registry: Registry, keySet: Pick<KeySet, 'ageMs'>): void {
  registry.gauge({
    name: 'annals_key_set_age_seconds',
    help: 'Time since the keys of the configured provider were fetched; NaN before the first time.',
    collect: (gauge) => gauge.set((keySet.ageMs() ?? Number.NaN) / 1000),
  })
}

/** Our own requests, here those for key sets; hosts are those of configured providers. */
export function measureFetch(
  registry: Registry,
  fetch: typeof globalThis.fetch,
): typeof globalThis.fetch {
  const target = ['http_client', 'operation', 'target_host'] as const
  const durations = registry.histogram({
    name: 'daml_http_client_requests_duration_seconds',
    help: 'Time of our own requests until the head of the answer.',
    labels: [...target, 'status', 'status_code'],
  })
  const inflight = registry.gauge({
    name: 'daml_http_client_requests_inflight',
    help: 'Our own requests under way.',
    labels: target,
  })
  return async (input, init) => {
    const { host } = new URL(input instanceof Request ? input.url : input)
    const labels = { http_client: 'key_set', operation: 'getKeySet', target_host: host }
    const startedAt = performance.now()
    inflight.labels(labels).inc()
    let end: { status: string; status_code: number | string } = {
      status: 'failure',
      status_code: 'none',
    }
    try {
      const response = await fetch(input, init)
      end = { status: 'completed', status_code: response.status }
      return response
    } finally {
      inflight.labels(labels).dec()
      durations.labels({ ...labels, ...end }).observe((performance.now() - startedAt) / 1000)
    }
  }
}

/** The metrics of the synchronizer's topology, as far as this participant sees it. */
export function measureTopology(
  registry: Registry,
  options: { participantId: string; parties(): number },
): void {
  const { participantId, parties } = options
  registry.gauge({
    name: 'splice_synchronizer_topology_num_parties',
    help: 'Parties on the synchronizer that this participant knows.',
    collect: (gauge) => gauge.set(parties()),
  })
  registry.gauge({
    name: 'splice_synchronizer_topology_num_parties_per_participant',
    help: 'Parties that a participant hosts.',
    labels: ['participant_id'],
    collect: (gauge) => gauge.labels({ participant_id: participantId }).set(parties()),
  })
}

export function measureHealth(registry: Registry, health: Health): void {
  registry.gauge({
    name: 'annals_health_check_status',
    help: '1 when a named check passes, 0 when it fails.',
    labels: ['check'],
    collect: (gauge) => {
      const failing = new Set(health.verdict().failures.map(({ name }) => name))
      for (const check of health.names()) gauge.labels({ check }).set(failing.has(check) ? 0 : 1)
    },
  })
  registry.gauge({
    name: 'daml_health_status',
    help: 'Whether the node is ready.',
    labels: ['component'],
    collect: (gauge) => {
      const value = health.verdict().ready ? 1 : 0
      for (const component of ['scan', 'validator', 'participant'])
        gauge.labels({ component }).set(value)
    },
  })
}

/** Texts of statements whose metric is at hand. */
const HANDLES_MAX = 1000

/** A database whose calls are measured by the kind of statement and the table. */
export function measureDb(registry: Registry, db: Db, database: 'app' | 'participant'): Db {
  const durations = registry.histogram({
    name: 'daml_db_exec_duration_seconds',
    help: 'A call as a whole, with the wait for a connection.',
    labels: ['database', 'name'],
  })
  const errors = registry.counter({
    name: 'annals_db_errors_total',
    help: 'Failed calls.',
    labels: ['database', 'kind'],
  })
  const handles = new Map<string, { observe(seconds: number): void }>()

  async function measured<T>(sql: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    try {
      return await work()
    } catch (error) {
      const kind = kindOf(error)
      if (kind !== undefined) errors.labels({ database, kind }).inc()
      throw error
    } finally {
      let handle = handles.get(sql)
      if (handle === undefined) {
        // Statements are constants of our stores but for their numbers of rows.
        if (handles.size >= HANDLES_MAX) handles.clear()
        handle = durations.labels({ database, name: nameOf(sql) })
        handles.set(sql, handle)
      }
      handle.observe((performance.now() - startedAt) / 1000)
    }
  }

  function wrap(inner: Db): Db {
    return {
      ...inner,
      query: (sql, params) => measured(sql, () => inner.query(sql, params)),
      queryBinary: (sql, params) => measured(sql, () => inner.queryBinary(sql, params)),
      execute: (sql, params) => measured(sql, () => inner.execute(sql, params)),
      executeMany: (sql, rows) => measured(sql, () => inner.executeMany(sql, rows)),
      executeAll: (statements) => measured('transaction', () => inner.executeAll(statements)),
      transaction: (work) =>
        measured('transaction', () => inner.transaction((tx) => work(wrap(tx)))),
    }
  }
  const { pool } = db
  if (pool !== undefined) measurePool(registry, database, pool)
  return wrap(db)
}

function measurePool(registry: Registry, name: string, pool: NonNullable<Db['pool']>): void {
  const labels = { pool_name: name }
  registry.gauge({
    name: 'db_client_connections_usage',
    help: 'Connections of a pool.',
    labels: ['pool_name', 'state'],
    collect: (gauge) => {
      const { used, idle } = pool()
      gauge.labels({ ...labels, state: 'used' }).set(used)
      gauge.labels({ ...labels, state: 'idle' }).set(idle)
    },
  })
  registry.gauge({
    name: 'db_client_connections_max',
    help: 'Connections that the pool may open.',
    labels: ['pool_name'],
    collect: (gauge) => gauge.labels(labels).set(pool().max),
  })
  registry.gauge({
    name: 'db_client_connections_pending_requests',
    help: 'Calls that wait for a connection.',
    labels: ['pool_name'],
    collect: (gauge) => gauge.labels(labels).set(pool().waiting),
  })
}

/** `select frame`, `insert update_key`: the verb and the first table. */
function nameOf(sql: string): string {
  const match =
    /^\s*(select|insert|update|delete|with)\b[\s\S]*?\b(?:from|into|update)\s+(\w+)/i.exec(sql)
  const update = /^\s*update\s+(\w+)/i.exec(sql)
  if (update !== null) return `update ${update[1]}`
  return match === null
    ? sql === 'transaction'
      ? sql
      : 'other'
    : `${match[1]?.toLowerCase()} ${match[2]}`
}

/** Undefined for a refusal that is none of the database's business. */
function kindOf(error: unknown): string | undefined {
  if (error instanceof DatabaseUnavailable) return 'unavailable'
  if (!(error instanceof SqlError)) return undefined
  if (/^(23|40)|CONSTRAINT/.test(error.code)) return 'conflict'
  return error.code === '57014' ? 'timeout' : 'other'
}
