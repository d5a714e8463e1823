// A node in a process of its own, by the real command line; also one whose caches are so small that
// nearly every page comes from the store.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Child, startProgram } from './child.ts'

export type NodeProcess = {
  pid: number
  scanUrl: string
  ledgerUrl: string
  metricsUrl: string
  port: number
  /** What it logged last, for when something goes wrong. */
  readLog(): string
  stop(): Promise<void>
}

/** A few frames: those that pages under way read, and no more. */
const SMALL_CACHE_BYTES = 4 * 1024 * 1024
const FREE_PORTS = ['ledger', 'scan', 'validator', 'metrics'].flatMap((name) => [
  `--${name}-port`,
  '0',
])

export function startByCommand(dataDirectory: string, more: string[] = []): Promise<NodeProcess> {
  const args = ['start', '--json', '--data', dataDirectory, ...FREE_PORTS, ...more]
  return waitUntilReady(startProgram('../src/cli/main.ts', args))
}

export async function startWithSmallCache(dataDirectory: string): Promise<NodeProcess> {
  const values = join(dataDirectory, 'small-cache.yaml')
  await writeFile(values, `annals:\n  scan:\n    cacheBytes: ${SMALL_CACHE_BYTES}\n`)
  return startByCommand(dataDirectory, ['-f', values])
}

export async function waitUntilReady(child: Child): Promise<NodeProcess> {
  const { scanUrl, ledgerUrl, metricsUrl } = JSON.parse(await child.nextLine())
  const port = Number(new URL(scanUrl).port)
  return {
    pid: child.pid,
    scanUrl,
    ledgerUrl,
    metricsUrl,
    port,
    readLog: () => child.errors,
    stop: () => child.stop(),
  }
}
