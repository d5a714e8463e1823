import assert from 'node:assert/strict'
import { durationBuckets } from './histogram.ts'
import { createLabelled, type Labelled } from './labelled.ts'
import { checkMetricName, type LabelPair, type LabelValue, labelText } from './labels.ts'
import { type NativeOptions, zeroThresholdDefault } from './native-buckets.ts'
import {
  type Counter,
  createCounterSeries,
  createGaugeSeries,
  createHistogramSeries,
  type Family,
  type Gauge,
  type Histogram,
} from './series.ts'

/**
 * Label sets of one metric before new ones share the overflow series. Routes times statuses times
 * apps stay below 500; beyond this somebody has put an id into a label.
 */
export const seriesMaxDefault = 1000

const overflowName = 'annals_metrics_overflow_total'

/**
 * Buckets grow by 4.4 % (schema 4), so a quantile is at most that far off, and 160 of them, as in
 * deployed nodes, span ten powers of two before the schema falls to the next one.
 */
const nativeOptions: NativeOptions = {
  schema: 4,
  bucketsMax: 160,
  zeroThreshold: zeroThresholdDefault,
}

export type MetricOptions<Name extends string> = {
  name: string
  help: string
  labels?: readonly Name[]
  seriesMax?: number
}

export type GaugeOptions<Name extends string> = MetricOptions<Name> & {
  /** Called at every scrape, to set the gauge. It must not wait for anything. */
  collect?: (gauge: Labelled<Gauge, Name>) => void
}

export type HistogramOptions<Name extends string> = MetricOptions<Name> & {
  /** Bounds of the regular buckets; those of a duration in seconds when not told. */
  buckets?: readonly number[]
  native?: Partial<NativeOptions>
}

export type Registry = {
  counter<const Name extends string = never>(options: MetricOptions<Name>): Labelled<Counter, Name>
  gauge<const Name extends string = never>(options: GaugeOptions<Name>): Labelled<Gauge, Name>
  histogram<const Name extends string = never>(
    options: HistogramOptions<Name>,
  ): Labelled<Histogram, Name>
  /** The same registry, whose metrics declared from here on carry these labels, such as the app's name. */
  with(labels: Readonly<Record<string, LabelValue>>): Registry
  /** Calls the function at every scrape, until the function it returns is called. */
  onScrape(collect: () => void): () => void
  /** Collects, and returns every family in the order of names. */
  scrape(): Family[]
}

export type RegistryOptions = {
  /** Whether histograms also keep native buckets; regular ones they always keep. */
  nativeHistograms: boolean
  /** Told when a function that collects throws; the scrape goes on without it. */
  onCollectError?: (error: unknown) => void
  now?: () => number
}

export function createRegistry(options: RegistryOptions): Registry {
  const { nativeHistograms, onCollectError, now = Date.now } = options
  const families = new Map<string, Family>()
  const collectors = new Set<() => void>()
  const root = createView([])

  const overflows = root.counter({
    name: overflowName,
    help: 'Lookups of label sets that a metric had no room for and that went to its overflow series.',
    labels: ['metric'],
  })
  const collectFailures = root.counter({
    name: 'annals_metrics_collect_failures_total',
    help: 'Times that a value could not be collected for a scrape.',
  })
  return root

  function createView(constants: readonly LabelPair[]): Registry {
    return {
      counter(metric) {
        const family = declare('counter', metric)
        return createLabelled({
          ...labelling(metric, constants),
          series: family.series,
          create: (pairs) => createCounterSeries(pairs, now()),
        })
      },
      gauge(metric) {
        const family = declare('gauge', metric)
        const gauge = createLabelled({
          ...labelling(metric, constants),
          series: family.series,
          create: (pairs) => createGaugeSeries(pairs, now()),
        })
        const { collect } = metric
        if (collect !== undefined) collectors.add(() => collect(gauge))
        return gauge
      },
      histogram(metric) {
        const family = declare('histogram', metric)
        const buckets = metric.buckets ?? durationBuckets
        const native = nativeHistograms ? { ...nativeOptions, ...metric.native } : undefined
        return createLabelled({
          ...labelling(metric, constants),
          series: family.series,
          create: (pairs) => createHistogramSeries({ pairs, createdMs: now(), buckets, native }),
        })
      },
      with(labels) {
        const more = Object.entries(labels).map(
          ([name, value]): LabelPair => [name, labelText(value)],
        )
        return createView([...constants, ...more])
      },
      onScrape(collect) {
        collectors.add(collect)
        return () => void collectors.delete(collect)
      },
      scrape() {
        for (const collect of collectors) {
          try {
            collect()
          } catch (error) {
            collectFailures.inc()
            onCollectError?.(error)
          }
        }
        return [...families.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
      },
    }
  }

  function labelling<Name extends string>(
    metric: MetricOptions<Name>,
    constants: readonly LabelPair[],
  ) {
    const { name, labels: names = [], seriesMax = seriesMaxDefault } = metric
    // The counter of overflows does not count its own, or it would never come to an end.
    const onOverflow = () =>
      name === overflowName ? undefined : overflows.labels({ metric: name }).inc()
    return { name, names, constants, seriesMax, onOverflow }
  }

  /** Two parts may declare one metric, such as the duration of requests, if they mean the same. */
  function declare<Kind extends Family['kind']>(
    kind: Kind,
    metric: { name: string; help: string },
  ): Extract<Family, { kind: Kind }> {
    const { name, help } = metric
    checkMetricName(name)
    assert.equal(
      name.endsWith('_total'),
      kind === 'counter',
      `Counters, and only they, end in "_total"; see ${name}.`,
    )
    const known = families.get(name)
    if (known === undefined) {
      const family = { kind, name, help, series: new Map() } as Extract<Family, { kind: Kind }>
      families.set(name, family)
      return family
    }
    assert(
      known.kind === kind && known.help === help,
      `${name} is declared twice, as a ${known.kind} and as a ${kind} or with another help text.`,
    )
    return known as Extract<Family, { kind: Kind }>
  }
}
