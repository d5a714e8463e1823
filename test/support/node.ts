import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogs } from '../../src/base/log.ts'
import { readConfig } from '../../src/config/config.ts'
import type { NodeConfig } from '../../src/config/node-config.ts'
import { ALL_PARTS } from '../../src/config/parts.ts'
import type { DbTarget } from '../../src/db/open.ts'
import { prepareLine } from '../../src/history/encode.ts'
import { openHistory } from '../../src/history/history.ts'
import { type RunningNode, startNode } from '../../src/node.ts'
import { openDatabase } from '../../src/open-databases.ts'
import type { Cleanup } from './engines.ts'

export type TestNodeOptions = {
  /** Changes to the configuration of a node without any file. */
  config?: Partial<NodeConfig>
  /** Where the history is; a new SQLite file unless given. */
  target?: DbTarget
  dataDirectory?: string
  /** Lines of an import file that the history shall hold; empty unless given. */
  lines?: string[]
  seed?: string
  simTime?: boolean
  /** Whether an empty history stays empty; it does unless told otherwise. */
  empty?: boolean
}

/** A node in this process on free ports, with its own data directory, closed after the test. */
export async function startTestNode(
  t: Cleanup,
  options: TestNodeOptions = {},
): Promise<RunningNode> {
  const config = testConfig(t, options)
  if (options.lines !== undefined) await importLines(config, options.lines)
  const node = await startNode({
    config,
    logs: createLogs({ level: 'error', pretty: false }),
    empty: options.empty ?? true,
    seed: options.seed,
    simTime: options.simTime ?? false,
  })
  t.after(() => node.close())
  return node
}

async function importLines(config: NodeConfig, lines: readonly string[]): Promise<void> {
  const { db } = await openDatabase(config.databases.app, 'app')
  const history = await openHistory({ db, cacheBytes: config.scan.cacheBytes })
  await history.append(lines.map(prepareLine))
  await db.close()
}

/** The configuration of a node without any file, on free ports in its own directory. */
export function testConfig(t: Cleanup, options: TestNodeOptions = {}): NodeConfig {
  const dataDir = options.dataDirectory ?? newDirectory(t)
  const flag = (value: string) => ({ flag: 'test', value })
  const flags = {
    'annals.dataDir': flag(dataDir),
    'annals.ports.ledger': flag('0'),
    'annals.ports.scan': flag('0'),
    'annals.ports.validator': flag('0'),
    'annals.ports.metrics': flag('0'),
    'annals.scan.cacheBytes': flag('16Mi'),
  }
  const { config, problems } = readConfig({ env: {}, cwd: dataDir, flags }, { parts: ALL_PARTS })
  if (config === undefined) throw new Error(JSON.stringify(problems))
  const databases =
    options.target === undefined
      ? config.databases
      : { ...config.databases, app: databaseOf(options.target) }
  return { ...config, databases, ...options.config }
}

function databaseOf(target: DbTarget): NodeConfig['databases']['app'] {
  if (target.engine === 'sqlite') return { engine: 'sqlite', file: target.path }
  const { host, port, user, database, password } = target.connection
  return {
    engine: 'postgres',
    host: host ?? 'localhost',
    port: port ?? 5432,
    user: user ?? 'postgres',
    database: database ?? 'postgres',
    password:
      password === undefined
        ? undefined
        : { reveal: () => String(password), toString: () => '', toJSON: () => '' },
    schema: target.schema,
    tls: undefined,
    connectionsMax: 5,
    failFast: true,
  }
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
