import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

// What docs/metrics.md, the alert rules and the dashboard say of our metrics.

const rootPath = fileURLToPath(new URL('../..', import.meta.url))
export const rulesPath = `${rootPath}deploy/prometheus/rules.yaml`

export type Metric = { type: string; labels: string[] }

/** The tables of the manual: name, type and labels of every metric. */
export function readManual(): Map<string, Metric> {
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

export function readRules(): {
  alert: string
  expr: string
  annotations: Record<string, string>
}[] {
  const { groups } = parse(readFileSync(rulesPath, 'utf8'))
  return groups.flatMap(({ rules }: { rules: unknown[] }) => rules)
}

export function readDashboard(): string[] {
  const dashboard = JSON.parse(readFileSync(`${rootPath}deploy/grafana/annals.json`, 'utf8'))
  return dashboard.panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) =>
    targets.map(({ expr }) => expr),
  )
}

/** The metrics that an expression selects: what is left without labels, ranges, groupings and functions. */
export function metricsOf(expression: string): string[] {
  const bare = expression
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
    .replace(/\b(by|without|on|ignoring)\s*\([^)]*\)/g, ' ')
    .replace(/\b\w+\s*\(/g, ' ')
  const names = bare.match(/\b[a-zA-Z_]\w*\b/g) ?? []
  return names.filter((name) => !['and', 'or', 'unless', 'bool', 'offset'].includes(name))
}
