import pg from 'pg'
import { destroy, ignoreBrokenConnection, type PostgresConnection } from './postgres-client.ts'
import { toPostgresError } from './postgres-error.ts'

const CONNECT_TIMEOUT_MS = 10_000
// How often the holder asks whether its connection, and with it the lock, is still there, and how
// long it waits for the answer: a lost lock is noticed within the sum of both.
const HEARTBEAT_MS = 5_000
const HEARTBEAT_TIMEOUT_MS = 5_000
// How soon a lost lock is claimed again; the server may be back at any time.
const RECLAIM_MS = 1_000
// How soon the server gives up a holder that has vanished without closing its connection.
const SERVER_KEEPALIVE_SECONDS = 5
const SERVER_KEEPALIVE_COUNT = 3

// Any number will do that no other program uses for its own lock in the same database.
const ADVISORY_LOCK_CLASS = 0x616e6e62

export type WriterLockOptions = {
  connection: PostgresConnection
  schema: string
  heartbeatMs?: number
  heartbeatTimeoutMs?: number
}

export type WriterLock = {
  /** Aborted when the lock is no longer ours; whoever writes must stop. */
  lost: AbortSignal
  release(): Promise<void>
}

/**
 * Claims the right to write into a schema, across all processes and machines; undefined when another
 * holds it. The claim is an advisory lock of a connection of its own, which the server ends with the
 * connection. (With SQLite the data directory's lock does this.)
 */
export async function tryWriterLock(options: WriterLockOptions): Promise<WriterLock | undefined> {
  const { heartbeatMs = HEARTBEAT_MS, heartbeatTimeoutMs = HEARTBEAT_TIMEOUT_MS } = options
  const client = new pg.Client({
    ...options.connection,
    application_name: 'annals writer lock',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: heartbeatTimeoutMs,
    keepAlive: true,
  })
  const lost = new AbortController()
  client.on('error', ignoreBrokenConnection)
  client.on('end', () => lost.abort())
  try {
    await client.connect()
    if (!(await claim(client, options.schema))) {
      await client.end()
      return undefined
    }
  } catch (error) {
    destroy(client)
    throw toPostgresError(error)
  }

  let heartbeat: NodeJS.Timeout | undefined
  async function beat(): Promise<void> {
    try {
      await client.query('select 1')
      if (!lost.signal.aborted) heartbeat = setTimeout(beat, heartbeatMs)
    } catch {
      destroy(client)
      lost.abort()
    }
  }
  heartbeat = setTimeout(beat, heartbeatMs)
  lost.signal.addEventListener('abort', () => clearTimeout(heartbeat))

  return {
    lost: lost.signal,
    async release() {
      clearTimeout(heartbeat)
      if (lost.signal.aborted) return
      try {
        await client.query('select pg_advisory_unlock_all()')
        await client.end()
      } catch {
        // The server frees the lock with the connection.
        destroy(client)
      }
    },
  }
}

export type HeldWriterLock = {
  /** `lost` while the server cannot be asked, `taken` while another process holds it. */
  state(): 'held' | 'lost' | 'taken'
  release(): Promise<void>
}

/** As `tryWriterLock`, but a lock that is lost with its connection is claimed again until it is held. */
export async function holdWriterLock(
  options: WriterLockOptions & {
    /** Told when the lock is held again; another process may have written meanwhile. */
    onRegained(): void
  },
): Promise<HeldWriterLock | undefined> {
  const first = await tryWriterLock(options)
  if (first === undefined) return undefined
  return claimAlways(options, first, { onHeld: options.onRegained })
}

/**
 * Claims the lock until it is held, and again whenever it was lost: of several processes one holds
 * it, and when that one dies another does within seconds.
 */
export async function contendForWriterLock(
  options: WriterLockOptions & {
    /** Told when the lock is held, also at once, and when it no longer is. */
    onHeld(): void
    onLost(): void
  },
): Promise<HeldWriterLock> {
  const first = await tryWriterLock(options)
  const lock = claimAlways(options, first, options)
  if (first !== undefined) options.onHeld()
  return lock
}

function claimAlways(
  options: WriterLockOptions,
  first: WriterLock | undefined,
  events: { onHeld(): void; onLost?: () => void },
): HeldWriterLock {
  let lock: WriterLock | undefined
  let state: ReturnType<HeldWriterLock['state']> = 'taken'
  let isReleased = false
  let retry: NodeJS.Timeout | undefined
  let claiming: Promise<void> | undefined

  function watch(held: WriterLock): void {
    lock = held
    state = 'held'
    held.lost.addEventListener('abort', () => {
      if (isReleased) return
      state = 'lost'
      events.onLost?.()
      claimSoon()
    })
  }

  function claimSoon(): void {
    retry = setTimeout(() => {
      claiming = claimAgain()
    }, RECLAIM_MS).unref()
  }

  async function claimAgain(): Promise<void> {
    try {
      const held = await tryWriterLock(options)
      if (held === undefined) state = 'taken'
      else {
        watch(held)
        if (!isReleased) events.onHeld()
        return
      }
    } catch {
      // The server does not answer yet, or refuses; the next attempt asks again.
      state = 'lost'
    }
    if (!isReleased) claimSoon()
  }

  if (first === undefined) claimSoon()
  else watch(first)
  return {
    state: () => state,
    async release() {
      isReleased = true
      clearTimeout(retry)
      await claiming
      await lock?.release()
    },
  }
}

async function claim(client: pg.Client, schema: string): Promise<boolean> {
  await client.query(
    `select set_config('tcp_keepalives_idle', $1, false),
      set_config('tcp_keepalives_interval', $1, false),
      set_config('tcp_keepalives_count', $2, false)`,
    [String(SERVER_KEEPALIVE_SECONDS), String(SERVER_KEEPALIVE_COUNT)],
  )
  const { rows } = await client.query('select pg_try_advisory_lock($1, hashtext($2)) as claimed', [
    ADVISORY_LOCK_CLASS,
    schema,
  ])
  return rows[0].claimed === true
}
