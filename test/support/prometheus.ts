import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

// A Prometheus server that scrapes one target many times a second, where it is on the machine.

/** Milliseconds for Prometheus to start and to scrape; it takes about one second. */
const patienceMs = 30_000

export type Result = {
  metric: Record<string, string>
  value?: [number, string]
  histogram?: [number, { count: string; sum: string; buckets?: [number, string, string, string][] }]
}
export type Prometheus = { query(expression: string): Promise<Result[]>; close(): Promise<void> }

export const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0
export const hasPromtool = spawnSync('promtool', ['--version']).status === 0
export const NATIVE_HISTOGRAMS = '--enable-feature=native-histograms'

export async function startPrometheus(target: string, flags: string[]): Promise<Prometheus> {
  const directory = mkdtempSync(join(tmpdir(), 'annals-prometheus-'))
  const config = join(directory, 'prometheus.yml')
  writeFileSync(
    config,
    `global: { scrape_interval: 200ms, scrape_timeout: 200ms }
scrape_configs: [{ job_name: annals, static_configs: [{ targets: ['${target}'] }] }]
`,
  )
  const child = spawn('prometheus', [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    '--web.listen-address=127.0.0.1:0',
    ...flags,
  ])
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    const address = await readListeningAddress(child)
    return { close, query: (expression) => query(address, expression) }
  } catch (error) {
    await close()
    throw error
  }
}

async function readListeningAddress(child: ChildProcess): Promise<string> {
  assert(child.stderr !== null)
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line)
    const [, address] = /msg="Listening on".*\baddress=(127\.0\.0\.1:\d+)/.exec(line) ?? []
    if (address === undefined) continue
    // The rest of its log must flow away, or the server would block on it.
    child.stderr.resume()
    return address
  }
  assert.fail(`Prometheus did not start:\n${lines.join('\n')}`)
}

async function query(address: string, expression: string): Promise<Result[]> {
  const parameters = new URLSearchParams({ query: expression })
  const response = await fetch(`http://${address}/api/v1/query?${parameters}`)
  // Until it is ready the server answers in plain text.
  if (response.status === 503) {
    await response.text()
    return []
  }
  const body = (await response.json()) as { status: string; data: { result: Result[] } }
  assert.equal(body.status, 'success', JSON.stringify(body))
  return body.data.result
}

export async function queryUntilFound(
  prometheus: Prometheus,
  expression: string,
): Promise<Result[]> {
  const deadline = performance.now() + patienceMs
  while (performance.now() < deadline) {
    const results = await prometheus.query(expression)
    if (results.length > 0) return results
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail(`Prometheus knows nothing of ${expression}.`)
}
