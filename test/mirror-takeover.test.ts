import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { prepareLine } from '../src/history/encode.ts'
import type { MirrorStatus } from '../src/mirror/status.ts'
import type { RunningNode } from '../src/node.ts'
import type { Cleanup } from './support/engines.ts'
import { newDirectory, startTestNode } from './support/node.ts'
import { type RunningCommand, startCommand } from './support/node-process.ts'
import { startPrivatePostgres } from './support/postgres-supervised.ts'
import { plainLines } from './support/sample-items.ts'

/** What the mirror promises: how late it is behind the scans, and how soon another takes over. */
const LATENCY_MS = 2_000
const TAKEOVER_MS = 10_000

test('of two mirrors on one database one copies, and the other takes over when it is killed', async (t) => {
  const scans = await Promise.all(
    [0, 1, 2, 3].map(() => startTestNode(t, { lines: plainLines(100) })),
  )
  const files = await writeValues(t, scans)
  const one = await startCommand(t, files.args('one'))
  await until(async () => (await statusOf(one)).phase === 'following')
  const two = await startCommand(t, files.args('two'))
  assert.equal((await statusOf(one)).role, 'copies')
  assert.equal((await statusOf(two)).role, 'follows')

  await grow(scans, 100, 3)
  const seenAfterMs = await timeUntil(async () => (await statusOf(one)).updates === 103)
  assert.ok(seenAfterMs < LATENCY_MS, `copied after ${seenAfterMs} ms`)
  await until(async () => (await statusOf(two)).updates === 103)

  await one.stop('SIGKILL')
  await grow(scans, 103, 30)
  const takenAfterMs = await timeUntil(async () => (await statusOf(two)).updates === 133)
  assert.ok(takenAfterMs < TAKEOVER_MS, `taken over after ${takenAfterMs} ms`)
  assert.equal((await statusOf(two)).role, 'copies')
  assert.deepEqual(await wholeHistory(two.urls.scan), await wholeHistory(firstOf(scans).urls.scan))
  const ready = two.urls.validator.replace('/api/validator', '/readyz')
  await until(async () => (await fetch(ready)).ok)

  const again = await startCommand(t, files.args('one'))
  assert.equal((await statusOf(again)).role, 'follows')
  assert.equal(await two.stop(), 0)
  await until(async () => (await statusOf(again)).role === 'copies')
})

async function writeValues(
  t: Cleanup & { after(clean: () => Promise<void>): void },
  scans: RunningNode[],
) {
  const { connection } = await startPrivatePostgres(t)
  const { host, port, user } = connection
  const admin = new pg.Client(connection)
  await admin.connect()
  await admin.query('create database participant_0')
  await admin.query('create database cantonnet_validator')
  await admin.end()
  const directory = newDirectory(t)
  const persistence = `persistence:\n  host: ${host}\n  port: ${port}\n  user: ${user}\n  secretName: postgres-secrets\n`
  const from = JSON.stringify(scans.map(({ urls }) => urls.scan))
  mkdirSync(join(directory, 'secrets/postgres-secrets'), { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text)
  write('secrets/postgres-secrets/postgresPassword', 'none')
  write(
    'v.yaml',
    `${persistence}  databaseName: cantonnet_validator\n  schema: validator\nannals:\n  mirror:\n    from: ${from}\n`,
  )
  write('p.yaml', `${persistence}  databaseName: participant_0\n  schema: participant\n`)
  const sources = ['-f', join(directory, 'v.yaml'), '-p', join(directory, 'p.yaml')]
  return {
    args: (name: string) => [
      ...sources,
      '--secrets',
      join(directory, 'secrets'),
      '--data',
      join(directory, name),
    ],
  }
}

async function grow(scans: RunningNode[], from: number, count: number): Promise<void> {
  for (const { history } of scans)
    await history.append(plainLines(count, { from }).map(prepareLine))
}

async function wholeHistory(url: string): Promise<string> {
  const response = await fetch(`${url}/v1/updates`, { method: 'POST', body: '{"page_size":1000}' })
  return response.text()
}

async function statusOf({ urls }: RunningCommand): Promise<MirrorStatus> {
  return (await (await fetch(`${urls.scan}/v0/annals/mirror`)).json()) as MirrorStatus
}

function firstOf<T>([first]: T[]): T {
  return first as T
}

async function timeUntil(condition: () => Promise<boolean>): Promise<number> {
  const startedAt = performance.now()
  await until(condition)
  return performance.now() - startedAt
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, 'the condition comes true')
    await wait(20)
  }
}
