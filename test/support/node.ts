import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import type { DbTarget } from '../../src/db/open.ts'
import { prepareLine } from '../../src/history/encode.ts'
import { type NodeOptions, type RunningNode, startNode } from '../../src/node.ts'
import type { Cleanup } from './engines.ts'

export type TestNodeOptions = Partial<Omit<NodeOptions, 'log'>> & {
  /** Lines of an import file that the history shall hold; empty unless given. */
  lines?: string[]
  target?: DbTarget
}

/** A node in this process on free ports, with its own data directory, closed after the test. */
export async function startTestNode(
  t: Cleanup,
  options: TestNodeOptions = {},
): Promise<RunningNode> {
  const { lines, target, ...nodeOptions } = options
  const dataDirectory = options.dataDirectory ?? newDirectory(t)
  const node = await startNode({
    log: createLog({ level: 'error', pretty: false }),
    host: '127.0.0.1',
    ports: { ledger: 0, scan: 0, validator: 0, metrics: 0 },
    empty: true,
    scan: {
      pageSizeMax: 2_147_483_647,
      cacheBytes: 16 * 1024 * 1024,
      compressedCacheBytes: 4 * 1024 * 1024,
    },
    ...(target === undefined ? {} : { appDatabase: target }),
    ...nodeOptions,
    dataDirectory,
  })
  t.after(() => node.close())
  if (lines !== undefined) await node.history.append(lines.map(prepareLine))
  return node
}

export function newDirectory(t: Cleanup): string {
  const directory = mkdtempSync(join(tmpdir(), 'annals-node-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** POSTs a JSON value, or text as it is; the answer's body is read as JSON. */
export async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}
