import pg from 'pg'
import { isAnswer } from './postgres-error.ts'
import { columnTypes } from './postgres-types.ts'

// Enough for the writer and for as many readers as one process keeps busy.
const POOL_MAX = 10
// Also the longest wait for a connection of the pool; a client of ours has given up by then.
const CONNECT_TIMEOUT_MS = 10_000
const IDLE_TIMEOUT_MS = 30_000
// Far above any statement of ours; it ends what a bad plan or a lock would let run for ever.
const STATEMENT_TIMEOUT_MS = 60_000
// A transaction whose work has stopped holds locks and keeps dead rows.
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000
const PROBE_TIMEOUT_MS = 2_000

export type PostgresConnection = Pick<
  pg.ClientConfig,
  'connectionString' | 'host' | 'port' | 'database' | 'user' | 'password' | 'ssl'
>

export type PostgresOptions = {
  connection: PostgresConnection
  /** Created when it is missing. */
  schema: string
  poolMax?: number
  statementTimeoutMs?: number
  /** How long a statement may be silent before the server is asked whether it is there. */
  silenceMs?: number
}

/** A pool whose connections work in the schema, with bounded times and durable commits. */
export function createPool(options: PostgresOptions): pg.Pool {
  const { connection, schema, poolMax = POOL_MAX } = options
  const { statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options
  const pool = new pg.Pool({
    ...connection,
    application_name: 'annals',
    types: columnTypes,
    max: poolMax,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    // Settings of the session, not of the start-up message: connection poolers refuse the latter. The
    // administrator may have switched durable commits off; stronger settings stay as they are.
    onConnect: async (client) => {
      await client.query(
        `select set_config('search_path', $1, false),
          set_config('statement_timeout', $2, false),
          set_config('idle_in_transaction_session_timeout', $3, false),
          set_config('bytea_output', 'hex', false),
          set_config('synchronous_commit', case when current_setting('synchronous_commit')
            in ('off', 'local') then 'on' else current_setting('synchronous_commit') end, false)`,
        [
          pg.escapeIdentifier(schema),
          String(statementTimeoutMs),
          String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
        ],
      )
    },
  })
  // The pool drops an idle connection that broke; whoever asks next gets a new one or its error.
  pool.on('error', ignoreBrokenConnection)
  return pool
}

/** Whether the server answers to a new connection, if only by refusing it. */
export async function probe(connection: PostgresConnection): Promise<boolean> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: PROBE_TIMEOUT_MS })
  client.on('error', ignoreBrokenConnection)
  try {
    await client.connect()
    client.end().catch(ignoreBrokenConnection)
    return true
  } catch (error) {
    destroy(client)
    return isAnswer(error)
  }
}

/** Ends the connection without a word to the server, which may not be there to hear it. */
export function destroy(client: pg.ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

/** A listener for connections that nobody waits on: whoever uses one next gets its error. */
export function ignoreBrokenConnection(): void {}
