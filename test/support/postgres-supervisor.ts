import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DirectoryLockError, lockDirectory } from '../../src/db/directory-lock.ts'
import { createPostgresServer, type PostgresServer } from './postgres-server.ts'

// A process that runs one PostgreSQL server as long as someone is connected to its control socket,
// and for a short time longer. Test files are processes of their own that come and go, are killed
// and interrupted; the operating system closes their connections in every case.
//
//   node postgres-supervisor.ts DIRECTORY LINGER_MS

// Whoever started the supervisor connects at once; after this it is taken for gone.
const FIRST_USER_TIMEOUT_MS = 10_000

const [, , directory = '', lingerMs = ''] = process.argv
const lock = claim()
const socketPath = join(directory, 'control.sock')
rmSync(socketPath, { force: true })
const postgres = await createPostgresServer(directory)
const users = new Set<Socket>()
let leaving = setTimeout(leave, FIRST_USER_TIMEOUT_MS)
const control = createServer(serve).listen(socketPath)

/** Another supervisor that holds the directory does the work as well. */
function claim(): { release(): void } {
  try {
    return lockDirectory(directory)
  } catch (error) {
    if (error instanceof DirectoryLockError) process.exit(0)
    throw error
  }
}

function serve(user: Socket): void {
  clearTimeout(leaving)
  users.add(user)
  user.on('error', () => user.destroy())
  user.on('close', () => {
    users.delete(user)
    if (users.size === 0) leaving = setTimeout(leave, Number(lingerMs))
  })
  user.write(`${JSON.stringify({ port: postgres.port })}\n`)
  createInterface({ input: user }).on('line', async (line) => {
    const command = line as Exclude<keyof PostgresServer, 'port'>
    await postgres[command]()
    user.write(`${JSON.stringify({ done: command })}\n`)
  })
}

async function leave(): Promise<void> {
  control.close()
  await postgres.stop()
  for (const part of ['data', 'native']) {
    rmSync(join(directory, part), { recursive: true, force: true })
  }
  lock.release()
  // Without lingering it is the server of one test, which may have been killed before its clean-up.
  if (Number(lingerMs) === 0) rmSync(directory, { recursive: true, force: true })
  process.exit(0)
}
