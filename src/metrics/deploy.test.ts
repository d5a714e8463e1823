import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  type Metric,
  metricsOf,
  readDashboard,
  readManual,
  readRules,
  rulesPath,
} from '../../test/support/metrics-manual.ts'
import { hasPromtool } from '../../test/support/prometheus.ts'
import { renderText } from './exposition.ts'
import { startProcessMetrics } from './process.ts'
import { createRegistry } from './registry.ts'
import { createExposer } from './routes.ts'

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
