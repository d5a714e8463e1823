import assert from 'node:assert/strict'

/** Longer than any party id (185 + 2 + 68 characters). What is longer is cut, since clients can choose it. */
const labelValueLengthMax = 300

const metricNamePattern = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const labelNamePattern = /^[a-zA-Z_][a-zA-Z0-9_]*$/

export type LabelValue = string | number
export type LabelPair = readonly [name: string, value: string]

export function checkMetricName(name: string): void {
  assert(metricNamePattern.test(name), `"${name}" is no metric name. Use letters, digits and "_".`)
}

/** `le` belongs to the buckets of a histogram, and names with two underscores to Prometheus itself. */
export function checkLabelNames(metric: string, names: readonly string[]): void {
  for (const name of names) {
    assert(
      labelNamePattern.test(name) && !name.startsWith('__') && name !== 'le',
      `"${name}" cannot be a label of ${metric}. Use letters, digits and "_", and not "le".`,
    )
  }
  assert(new Set(names).size === names.length, `${metric} names a label twice.`)
}

/** A label's value as it is shown: text that is valid in UTF-8, of bounded length. */
export function labelText(value: LabelValue): string {
  const text = typeof value === 'string' ? value : String(value)
  const bounded = text.length > labelValueLengthMax ? text.slice(0, labelValueLengthMax) : text
  return bounded.isWellFormed() ? bounded : bounded.toWellFormed()
}

/** The pairs as they stand between the braces; unambiguous, so it is also a series' identity. */
export function renderLabels(pairs: readonly LabelPair[]): string {
  return pairs.map(([name, value]) => `${name}="${escapeQuoted(value)}"`).join(',')
}

export function escapeQuoted(text: string): string {
  return escapeLine(text).replaceAll('"', '\\"')
}

export function escapeLine(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
