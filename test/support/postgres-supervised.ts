import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { PostgresConnection } from '../../src/db/postgres-client.ts'
import type { PostgresServer } from './postgres-server.ts'

const supervisorFile = fileURLToPath(new URL('./postgres-supervisor.ts', import.meta.url))
const START_TIMEOUT_MS = 60_000
const POLL_MS = 25
// Bridges the time between one test file's end and the next one's first connection.
const SHARED_LINGER_MS = 3_000

export type PrivatePostgres = Omit<PostgresServer, 'port' | 'stop'> & {
  connection: PostgresConnection
}

type Membership = {
  control: Socket
  lines: Interface
  port: number
  supervisor: ChildProcess | undefined
}

/**
 * The one server of all test files of this checkout, started by whoever comes first. It runs as long
 * as this process does, which it does not keep from ending.
 */
export async function joinSharedPostgres(): Promise<PostgresConnection> {
  const checkout = createHash('sha256').update(supervisorFile).digest('hex').slice(0, 8)
  const directory = join(tmpdir(), `annals-pg-${userInfo().uid}-${checkout}`)
  mkdirSync(directory, { recursive: true })
  const { control, port } = await joinSupervisor(directory, SHARED_LINGER_MS)
  control.unref()
  return connectionTo(port)
}

/** A server of the test's own, which it may pause, kill and start again. */
export async function startPrivatePostgres(t: {
  after(clean: () => Promise<void>): void
}): Promise<PrivatePostgres> {
  const directory = mkdtempSync(join(tmpdir(), 'annals-pg-'))
  const { control, lines, port, supervisor } = await joinSupervisor(directory, 0)
  t.after(async () => {
    const gone =
      supervisor?.exitCode ?? (supervisor && once(supervisor.ref() ?? supervisor, 'exit'))
    control.destroy()
    await gone
  })
  const command = (name: string) => async () => {
    control.write(`${name}\n`)
    await once(lines, 'line')
  }
  return {
    connection: connectionTo(port),
    start: command('start'),
    pause: command('pause'),
    resume: command('resume'),
    kill: command('kill'),
  }
}

function connectionTo(port: number): PostgresConnection {
  return { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' }
}

async function joinSupervisor(directory: string, lingerMs: number): Promise<Membership> {
  // The server runs as another user when the tests run as root.
  chmodSync(directory, 0o755)
  const deadline = Date.now() + START_TIMEOUT_MS
  let supervisor: ChildProcess | undefined
  while (Date.now() < deadline) {
    const control = await tryConnect(join(directory, 'control.sock'))
    if (control !== undefined) {
      const lines = createInterface({ input: control })
      const [line] = await once(lines, 'line')
      return { control, lines, port: JSON.parse(line).port, supervisor }
    }
    // Ended without a fault: another supervisor is starting, or is just leaving.
    if (supervisor === undefined || supervisor.exitCode === 0) {
      supervisor = startSupervisor(directory, lingerMs)
    } else if (supervisor.exitCode !== null) break
    await delay(POLL_MS)
  }
  const log = readFileSync(join(directory, 'supervisor.log'), 'utf8')
  throw new Error(`The PostgreSQL server for the tests did not start: ${log}`)
}

function startSupervisor(directory: string, lingerMs: number): ChildProcess {
  const log = openSync(join(directory, 'supervisor.log'), 'a')
  const supervisor = spawn(process.execPath, [supervisorFile, directory, String(lingerMs)], {
    detached: true,
    stdio: ['ignore', log, log],
    // The environment of a test run makes every Node in it report as a test file.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: undefined },
  })
  closeSync(log)
  supervisor.unref()
  return supervisor
}

async function tryConnect(path: string): Promise<Socket | undefined> {
  const control = connect(path)
  try {
    await once(control, 'connect')
    return control
  } catch {
    return undefined
  }
}
