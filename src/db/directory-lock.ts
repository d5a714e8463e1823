import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SqlError } from './db-error.ts'
import { toSqlError } from './sqlite-statements.ts'

const LOCK_FILE = 'lock'
const HOLDER_FILE = 'lock.pid'

/** The directory cannot be used; the message is for the operator. */
export class DirectoryLockError extends Error {
  override readonly name = 'DirectoryLockError'
}

/**
 * Claims a data directory, made when it is missing, for this process. The claim is an exclusive
 * transaction on a file of its own: the operating system ends it together with the process, however
 * that ends, so no stale lock is ever left to remove. The process id stands beside it for people.
 */
export function lockDirectory(directory: string): { release(): void } {
  const holderFile = join(directory, HOLDER_FILE)
  const claim = claimDirectory(directory)
  try {
    writeFileSync(holderFile, `${process.pid}\n`)
  } catch (error) {
    claim.close()
    throw unwritable(directory, error)
  }
  function release(): void {
    if (!claim.isOpen) return
    process.off('exit', release)
    rmSync(holderFile, { force: true })
    claim.close()
  }
  // Also keeps the claim from being collected as garbage, and thereby ended, when the caller drops it.
  process.on('exit', release)
  return { release }
}

function claimDirectory(directory: string): DatabaseSync {
  let claim: DatabaseSync | undefined
  try {
    makeDirectory(resolve(directory))
    claim = new DatabaseSync(join(directory, LOCK_FILE), { timeout: 0 })
    claim.exec('begin exclusive')
    return claim
  } catch (error) {
    claim?.close()
    const converted = toSqlError(error, undefined)
    if (converted instanceof SqlError && converted.code === 'SQLITE_BUSY') throw inUse(directory)
    throw unwritable(directory, converted)
  }
}

/** Step by step, because Node's own recursive way never ends where the system says ENOENT, as in /proc. */
function makeDirectory(directory: string): void {
  const found = statSync(directory, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found !== undefined) throw new Error(`${directory} is a file`)
  const parent = dirname(directory)
  if (parent !== directory) makeDirectory(parent)
  try {
    mkdirSync(directory)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function inUse(directory: string): DirectoryLockError {
  const holder = readHolder(directory)
  const by = holder === undefined ? 'another process' : `process ${holder}`
  return new DirectoryLockError(
    `The data directory ${directory} is in use by ${by}; stop that node or choose another directory with --data.`,
  )
}

function unwritable(directory: string, error: unknown): DirectoryLockError {
  const reason = error instanceof Error ? error.message : String(error)
  return new DirectoryLockError(
    `The data directory ${directory} cannot be written (${reason}); make it writable or choose another directory with --data.`,
    { cause: error },
  )
}

// The holder may have claimed the directory without having come to writing its id.
function readHolder(directory: string): number | undefined {
  try {
    const text = readFileSync(join(directory, HOLDER_FILE), 'utf8').trim()
    return /^\d+$/.test(text) ? Number(text) : undefined
  } catch {
    return undefined
  }
}
