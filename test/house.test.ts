import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

/**
 * Holds the plan of docs/architecture.md: who may import whom, and where SQL, the environment and
 * the end of the process belong. A part may always import itself.
 */
const ALLOWED: Record<string, string[]> = {
  cli: [
    'node.ts',
    'open-databases.ts',
    'config',
    'db',
    'deploy',
    'history',
    'users',
    'values',
    'base',
    'mirror',
    'http',
    'rehearsal',
  ],
  rehearsal: ['*'],
  deploy: ['config'],
  'node.ts': ['*'],
  'open-databases.ts': ['config', 'db'],
  'measure.ts': ['*'],
  'measure-ledger.ts': ['*'],
  'open-automations.ts': ['*'],
  'open-history.ts': ['*'],
  'open-ledger.ts': ['*'],
  'open-mirror.ts': ['*'],
  'open-onboarding.ts': ['*'],
  'open-pruning.ts': ['*'],
  'open-wallet.ts': ['*'],
  'synchronizer-migration.ts': ['*'],
  'listen.ts': [
    'mirror',
    'http',
    'users',
    'ledger',
    'health',
    'metrics',
    'onboarding',
    'proxy',
    'scan',
    'wallet',
    'base',
  ],
  proxy: ['mirror', 'scan', 'history', 'values', 'http', 'metrics', 'base'],
  onboarding: ['ledger', 'users', 'db', 'values', 'http', 'metrics', 'base'],
  mirror: ['scan', 'history', 'values', 'db', 'http', 'base', 'metrics'],
  wallet: ['ledger', 'values', 'users', 'db', 'http', 'metrics', 'base'],
  scan: ['history', 'values', 'ledger', 'http', 'base', 'metrics'],
  ledger: ['db', 'values', 'users', 'http', 'base'],
  users: ['db', 'http/ledger-error.ts', 'base', 'health'],
  health: ['http'],
  history: ['db', 'values', 'base'],
  http: ['metrics', 'base'],
  db: [],
  metrics: [],
  values: [],
  base: [],
  config: [],
}

/** Started by their path, or imported by other programs, so nobody here imports them. */
const STARTED_BY_PATH = new Set([
  'cli/main.ts',
  'db/sqlite-writer.ts',
  'history/prepare-worker.ts',
  'mirror/library.ts',
])

const root = fileURLToPath(new URL('../src', import.meta.url))
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
const sources = files.filter((file) => !file.path.endsWith('.test.ts'))

type Import = { from: string; to: string; isType: boolean }

function importsOf({ path, text }: { path: string; text: string }): Import[] {
  const found = text.matchAll(
    /(?:^|\n)\s*(import|export)( type)?[^'"]*?from '(\.[^']+)'|import\('(\.[^']+)'\)/g,
  )
  return [...found].map((match) => ({
    from: path,
    to: relative(root, join(root, dirname(path), (match[3] ?? match[4]) as string)),
    isType: match[2] !== undefined,
  }))
}

function partOf(path: string): string {
  return path.includes('/') ? (path.split('/')[0] as string) : path
}

const imports = sources.flatMap(importsOf)

test('the reader of imports sees them', () => {
  assert.ok(imports.length > 100)
  assert.ok(imports.some(({ from, to }) => from === 'node.ts' && to === 'listen.ts'))
})

test('every part is on the plan', () => {
  for (const { path } of sources)
    assert.ok(ALLOWED[partOf(path)], `${path} stands in a part of the plan`)
})

test('parts import only what the plan allows', () => {
  for (const { from, to } of imports) {
    const part = partOf(from)
    if (partOf(to) === part || to === 'db/db.ts') continue
    const allowed = ALLOWED[part] ?? []
    const isAllowed = allowed.includes('*') || allowed.includes(partOf(to)) || allowed.includes(to)
    assert.ok(isAllowed, `${from} imports ${to}, which ${part} may not`)
  }
})

test('no imports go in a circle, not even of types', () => {
  const targets = new Map<string, string[]>()
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to])
  const done = new Set<string>()
  const visit = (path: string, trail: string[]): void => {
    assert.ok(!trail.includes(path), `a circle: ${[...trail, path].join(' → ')}`)
    if (done.has(path)) return
    for (const next of targets.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const { path } of sources) visit(path, [])
})

test('every file is imported by another', () => {
  const imported = new Set(imports.map(({ to }) => to))
  for (const { path } of sources) {
    assert.ok(imported.has(path) || STARTED_BY_PATH.has(path), `nobody imports ${path}`)
  }
})

test('no file is a barrel or a drawer for odds and ends', () => {
  for (const { path } of sources) {
    assert.doesNotMatch(basename(path), /^(index|utils?|helpers?|common|types|misc)\.ts$/)
  }
})

test('SQL stands in the stores and the database part', () => {
  for (const { path, text } of sources) {
    if (path.startsWith('db/') || path.endsWith('-store.ts')) continue
    const sql =
      /['"`]\s*(select .+ from |insert into |update \w+ set |delete from |create table )/i.exec(
        text,
      )
    assert.equal(sql, null, `${path} holds SQL: ${sql?.[0]}`)
  }
})

test('the environment is read in one place, and only commands end the process', () => {
  for (const { path, text } of sources) {
    if (path !== 'config/sources.ts' && path !== 'cli/program.ts') {
      assert.doesNotMatch(text, /process\.env/, `${path} reads the environment`)
    }
    if (!path.startsWith('cli/'))
      assert.doesNotMatch(text, /process\.exit\b/, `${path} ends the process`)
  }
})

test('no module keeps a variable that changes', () => {
  for (const { path, text } of sources) {
    if (path === 'cli/program.ts' || path === 'db/sqlite-writer.ts') continue
    assert.doesNotMatch(text, /^(export )?(let|var) /m, `${path} has a module-level variable`)
  }
})

test('names are exported, nothing by default', () => {
  for (const { path, text } of sources) assert.doesNotMatch(text, /^export default/m, path)
})
