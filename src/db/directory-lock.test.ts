import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { lockDirectory } from './directory-lock.ts'

const holder = `
  const { lockDirectory } = await import(process.argv[1])
  lockDirectory(process.argv[2])
  // A lock that nobody keeps is held all the same.
  globalThis.gc()
  console.log('locked')
  setInterval(() => {}, 1000)
`

test('a directory is made, locked, refused to a second, and free after release', (t) => {
  const directory = join(temporaryDirectory(t), 'new', 'data')
  const lock = lockDirectory(directory)
  const message = `The data directory ${directory} is in use by process ${process.pid}; stop that node or choose another directory with --data.`
  assert.throws(() => lockDirectory(directory), { name: 'DirectoryLockError', message })
  assert.throws(() => lockDirectory(directory), { message }, 'a refusal leaves the lock in place')
  lock.release()
  lock.release()
  const again = lockDirectory(directory)
  lock.release()
  assert.throws(() => lockDirectory(directory), { message }, 'an old release frees nothing')
  again.release()
})

test('another process is refused by name, and a killed one leaves no lock', async (t) => {
  const directory = temporaryDirectory(t)
  const child = await startHolder(t, directory)
  assert.throws(() => lockDirectory(directory), {
    message: new RegExp(`in use by process ${child.pid};`),
  })
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
  lockDirectory(directory).release()
})

test('a directory that cannot be made is one clear sentence', (t) => {
  const file = join(temporaryDirectory(t), 'file')
  writeFileSync(file, '')
  assert.throws(() => lockDirectory(join(file, 'data')), {
    name: 'DirectoryLockError',
    message: /The data directory .*file\/data cannot be written \(.*\); make it writable or choose/,
  })
})

test('a directory where the system makes none is refused, not tried for ever', {
  timeout: 10_000,
}, () => {
  const directory = process.platform === 'linux' ? '/proc/annals/data' : '/dev/null/annals'
  assert.throws(() => lockDirectory(directory), /cannot be written/)
})

test('missing parents are made too', (t) => {
  lockDirectory(join(temporaryDirectory(t), 'a', 'b', 'c')).release()
})

async function startHolder(t: TestContext, directory: string): Promise<ChildProcess> {
  const program = import.meta.resolve('./directory-lock.ts')
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--input-type=module', '-e', holder, program, directory],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'annals-lock-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}
