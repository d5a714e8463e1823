import { prepareLine } from '../../src/history/encode.ts'
import { exportLines } from '../../src/history/export.ts'
import { type History, type HistoryOptions, openHistory } from '../../src/history/history.ts'
import { importLines } from '../../src/history/import.ts'
import type { PageRequest } from '../../src/history/pages.ts'
import type { Position } from '../../src/history/position.ts'
import { type PreparePool, startPreparePool } from '../../src/history/prepare-pool.ts'
import type { Instant } from '../../src/values/instant.ts'
import type { Cleanup, TestEngine } from './engines.ts'

const CACHE_BYTES = 4 * 1024 * 1024

/** A new history on the engine that holds the lines, closed after the test. */
export async function openTestHistory(
  t: Cleanup,
  engine: TestEngine,
  lines: string[] = [],
  options: Partial<HistoryOptions> = {},
): Promise<History> {
  const db = await engine.open(t, 'app')
  const history = await openHistory({ db, cacheBytes: CACHE_BYTES, ...options })
  await history.append(lines.map(prepareLine))
  return history
}

/** Threads that prepare lines, ended after the test. */
export function newPool(t: Cleanup, threads = 1): PreparePool {
  const pool = startPreparePool({ threads })
  t.after(() => pool.close())
  return pool
}

export function importText(history: History, pool: PreparePool, text: string | Uint8Array) {
  return importLines(history, { pool, source: chunks(text) })
}

async function* chunks(text: string | Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

export async function exportText(
  history: History,
  range: { from?: Position; to?: Position } = {},
): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of exportLines(history, { from: range.from, to: range.to })) {
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** The updates of a page, joined by commas. */
export async function pageText(
  history: History,
  request: Partial<PageRequest> = {},
): Promise<string> {
  const runs: string[] = []
  const whole: PageRequest = {
    version: 1,
    encoding: 'compact_json',
    after: undefined,
    pageSize: 2_147_483_647,
    ...request,
  }
  for await (const step of history.readPage(whole)) {
    for (const run of step) runs.push(run.bytes.toString())
  }
  return runs.join(',')
}

export function position(migrationId: bigint | number, recordTime: string): Position {
  return { migrationId: BigInt(migrationId), recordTime: recordTime as Instant }
}
