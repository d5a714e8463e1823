import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { migrate, readMigrations } from '../../src/db/migrate.ts'
import { type DbTarget, openDb } from '../../src/db/open.ts'
import { openAuthentication } from '../../src/users/authentication.ts'
import { ensureFirstUsers } from '../../src/users/first-users.ts'
import { buildLedgerApi, PARTICIPANT_ID } from './ledger-api.ts'

export type LedgerProcessOptions = { target: DbTarget; jwksUrl: string; audience: string }

/** The ledger API in a process of its own, on a port of its own; it ends with its parent. */
export async function startLedgerProcess(
  options: LedgerProcessOptions,
): Promise<{ url: string; kill(): Promise<void> }> {
  const child = fork(import.meta.filename, [JSON.stringify(options)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const [url] = (await Promise.race([once(child, 'message'), failOnExit(child)])) as [string]
  return {
    url,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

async function failOnExit(child: ChildProcess): Promise<never> {
  const [code] = await once(child, 'exit')
  throw new Error(`The process ended with ${code} before it listened.`)
}

async function main(options: LedgerProcessOptions): Promise<void> {
  const db = await openDb(options.target)
  await migrate(db, await readMigrations('participant'))
  await ensureFirstUsers(db)
  const authentication = await openAuthentication({
    db,
    participantId: PARTICIPANT_ID,
    defaultProvider: { jwksUrl: options.jwksUrl, audience: options.audience },
  })
  const app = await buildLedgerApi({ db, authentication })
  process.on('disconnect', () => process.exit())
  process.send?.(await app.listen({ port: 0, host: '127.0.0.1' }))
}

if (process.argv[1] === import.meta.filename && process.argv[2] !== undefined) {
  await main(JSON.parse(process.argv[2]) as LedgerProcessOptions)
}
