import { escapeLine, escapeQuoted } from './labels.ts'
import type { Family, HistogramSeries } from './series.ts'

/** The text formats: the classic one of Prometheus, and OpenMetrics 1.0. Neither can carry native buckets. */
export type TextFormat = 'text' | 'openmetrics'

/** A family that has no series yet shows its help and type, so that a reader can find it. */
export function renderText(families: readonly Family[], format: TextFormat): string {
  const openMetrics = format === 'openmetrics'
  let text = ''
  for (const family of families) {
    // In OpenMetrics "_total" belongs to the sample, not to the name of the counter.
    const name =
      openMetrics && family.kind === 'counter' ? family.name.replace(/_total$/, '') : family.name
    const help = openMetrics ? escapeQuoted(family.help) : escapeLine(family.help)
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${family.kind}\n`
    if (family.kind === 'histogram') {
      const formatBound = openMetrics ? formatOpenMetricsBound : formatNumber
      for (const series of family.series.values()) {
        text += renderHistogram(family.name, series, formatBound)
      }
    } else {
      for (const { labels, state } of family.series.values()) {
        const braces = labels === '' ? '' : `{${labels}}`
        text += `${family.name}${braces} ${formatNumber(state[0] as number)}\n`
      }
    }
  }
  return openMetrics ? `${text}# EOF\n` : text
}

function renderHistogram(
  name: string,
  series: HistogramSeries,
  formatBound: (bound: number) => string,
): string {
  const { bounds, counts, totals } = series.state
  const prefix =
    series.labels === '' ? `${name}_bucket{le="` : `${name}_bucket{${series.labels},le="`
  let text = ''
  let cumulative = 0
  for (let i = 0; i < bounds.length; i++) {
    cumulative += counts[i] as number
    text += `${prefix}${formatBound(bounds[i] as number)}"} ${cumulative}\n`
  }
  const braces = series.labels === '' ? '' : `{${series.labels}}`
  const [count, sum] = totals as unknown as [number, number]
  text += `${prefix}+Inf"} ${count}\n`
  return `${text}${name}_sum${braces} ${formatNumber(sum)}\n${name}_count${braces} ${count}\n`
}

function formatNumber(value: number): string {
  if (value === Infinity) return '+Inf'
  if (value === -Infinity) return '-Inf'
  return String(value)
}

/** OpenMetrics asks for one spelling of a bound, with a fraction, because it is part of the series' identity. */
function formatOpenMetricsBound(bound: number): string {
  const text = formatNumber(bound)
  return /^-?\d+$/.test(text) ? `${text}.0` : text
}
