import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { renderText } from './exposition.ts'
import { startProcessMetrics } from './process.ts'
import { createRegistry } from './registry.ts'
import { createExposer } from './routes.ts'

const rootPath = fileURLToPath(new URL('../..', import.meta.url))
const rulesPath = `${rootPath}deploy/prometheus/rules.yaml`
const hasPromtool = spawnSync('promtool', ['--version']).status === 0

type Metric = { type: string; labels: string[] }

/** The tables of the manual: name, type and labels of every metric. */
function readManual(): Map<string, Metric> {
  const text = readFileSync(`${rootPath}docs/metrics.md`, 'utf8')
  const rows = text.matchAll(/^\| `(\w+)` \| (counter|gauge|histogram) \|([^|]*)\|/gm)
  const metrics = new Map<string, Metric>()
  for (const [, name, type, labels] of rows) {
    assert(!metrics.has(name as string), `The manual has ${name} twice.`)
    metrics.set(name as string, {
      type: type as string,
      labels: [...(labels as string).matchAll(/`(\w+)`/g)].map(([, label]) => label as string),
    })
  }
  return metrics
}

function readRules(): { alert: string; expr: string; annotations: Record<string, string> }[] {
  const { groups } = parse(readFileSync(rulesPath, 'utf8'))
  return groups.flatMap(({ rules }: { rules: unknown[] }) => rules)
}

function readDashboard(): string[] {
  const dashboard = JSON.parse(readFileSync(`${rootPath}deploy/grafana/annals.json`, 'utf8'))
  return dashboard.panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) =>
    targets.map(({ expr }) => expr),
  )
}

/** The metrics that an expression selects: what is left without labels, ranges, groupings and functions. */
function metricsOf(expression: string): string[] {
  const bare = expression
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
    .replace(/\b(by|without|on|ignoring)\s*\([^)]*\)/g, ' ')
    .replace(/\b\w+\s*\(/g, ' ')
  const names = bare.match(/\b[a-zA-Z_]\w*\b/g) ?? []
  return names.filter((name) => !['and', 'or', 'unless', 'bool', 'offset'].includes(name))
}

function assertDocumented(expression: string, manual: Map<string, Metric>): void {
  const names = metricsOf(expression)
  assert(names.length > 0, `No metric is in ${expression}.`)
  for (const name of names) {
    const family = name.replace(/_(bucket|sum|count)$/, '')
    const known = manual.has(name) || manual.get(family)?.type === 'histogram'
    assert(known, `${name} is not in docs/metrics.md.`)
  }
}

test('every metric that the alert rules name is in the manual', () => {
  const manual = readManual()
  for (const { expr } of readRules()) assertDocumented(expr, manual)
})

test('every alert says what is wrong and what to do', () => {
  for (const { alert, annotations } of readRules()) {
    assert.match(annotations.summary ?? '', /\.$/, alert)
    assert.match(annotations.description ?? '', /\.$/, alert)
  }
})

test('every metric that the dashboard names is in the manual', () => {
  const manual = readManual()
  for (const expression of readDashboard()) assertDocumented(expression, manual)
})

test('every metric of the manual can be declared as it stands there', () => {
  const registry = createRegistry({ nativeHistograms: true })
  for (const [name, { type, labels }] of readManual()) {
    if (name.startsWith('annals_metrics_')) continue
    const options = { name, help: 'As the manual says.', labels }
    if (type === 'counter') registry.counter(options)
    else if (type === 'gauge') registry.gauge(options)
    else registry.histogram(options)
  }
})

test('what the process exports is in the manual, with type and labels', () => {
  const manual = readManual()
  const registry = createRegistry({ nativeHistograms: true })
  createExposer(registry)
  startProcessMetrics({ registry, build: { version: '1', commit: 'a' } }).close()
  for (const { name, kind, series } of registry.scrape()) {
    const documented = manual.get(name)
    assert.equal(documented?.type, kind, name)
    const [first] = series.values()
    if (first === undefined) continue
    assert.deepEqual(
      first.pairs.map(([label]) => label),
      documented?.labels,
      name,
    )
  }
  assert.match(renderText(registry.scrape(), 'text'), /^# TYPE annals_build_info gauge$/m)
})

if (hasPromtool) {
  test('promtool accepts the alert rules', () => {
    const { status, stderr } = spawnSync('promtool', ['check', 'rules', rulesPath])
    assert.equal(status, 0, String(stderr))
  })

  test('promtool accepts every expression of the dashboard', () => {
    const rules = readDashboard().map((expr, i) => ({
      record: `dashboard:${i}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
    }))
    const directory = mkdtempSync(join(tmpdir(), 'annals-dashboard-'))
    try {
      const path = join(directory, 'rules.json')
      writeFileSync(path, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
      const { status, stderr } = spawnSync('promtool', ['check', 'rules', path])
      assert.equal(status, 0, String(stderr))
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
}
