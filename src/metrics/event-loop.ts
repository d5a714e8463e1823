import {
  type EventLoopUtilization,
  constants as gcConstants,
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks'
import type { Registry } from './registry.ts'

/**
 * How often the event loop's delay is sampled. At 20 ms the timer takes a third of a percent of a
 * core in an idle process, at 10 ms half a percent; delays that matter are longer than either.
 */
const delayResolutionMs = 20

/**
 * The delay's gauges tell of the time since they were last begun anew. That is at a scrape, but not
 * oftener than this, so that somebody who looks does not take the peak away from the scraper.
 */
const delayWindowMinMs = 10_000

const gcKinds: ReadonlyMap<number, string> = new Map([
  [gcConstants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [gcConstants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [gcConstants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [gcConstants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])

/** Seconds; most collections take less than a millisecond. */
const gcBuckets = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1]

/** How late the event loop is and how busy. Returns what ends it. */
export function startEventLoopMetrics(registry: Registry): () => void {
  const gauge = (name: string, what: string) =>
    registry.gauge({ name, help: `${what} delay of the event loop since the last scrapes.` })
  const mean = gauge('nodejs_eventloop_lag_mean_seconds', 'Mean')
  const max = gauge('nodejs_eventloop_lag_max_seconds', 'Largest')
  const percentiles = [50, 90, 99].map(
    (percentile) =>
      [
        percentile,
        gauge(`nodejs_eventloop_lag_p${percentile}_seconds`, `${percentile}th percentile of the`),
      ] as const,
  )
  const utilization = registry.gauge({
    name: 'nodejs_eventloop_utilization_ratio',
    help: 'Part of the time since the last scrapes that the event loop was busy.',
  })

  const delay = monitorEventLoopDelay({ resolution: delayResolutionMs })
  delay.enable()
  let windowStartMs = performance.now()
  let windowUtilization: EventLoopUtilization = performance.eventLoopUtilization()
  const stopCollecting = registry.onScrape(() => {
    if (delay.count > 0) {
      mean.set(delaySeconds(delay.mean))
      max.set(delaySeconds(delay.max))
      for (const [percentile, lag] of percentiles) {
        lag.set(delaySeconds(delay.percentile(percentile)))
      }
    }
    utilization.set(performance.eventLoopUtilization(windowUtilization).utilization)
    if (performance.now() - windowStartMs < delayWindowMinMs) return
    delay.reset()
    windowStartMs = performance.now()
    windowUtilization = performance.eventLoopUtilization()
  })
  return () => {
    stopCollecting()
    delay.disable()
  }
}

/** Node reports the time between two samples; what is above the intended time is the delay. */
function delaySeconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e9 - delayResolutionMs / 1000)
}

/** What garbage collections take, by kind. Returns what ends it. */
export function startGcMetrics(registry: Registry): () => void {
  const duration = registry.histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Time that garbage collections took, by their kind.',
    labels: ['kind'],
    buckets: gcBuckets,
  })
  const byKind = new Map(
    [...gcKinds].map(([kind, name]) => [kind, duration.labels({ kind: name })] as const),
  )
  const count = (entry: PerformanceEntry) => {
    const { kind } = (entry as PerformanceEntry & { detail: { kind: number } }).detail
    byKind.get(kind)?.observe(entry.duration / 1000)
  }
  const observer = new PerformanceObserver((list) => list.getEntries().forEach(count))
  observer.observe({ entryTypes: ['gc'] })
  return () => {
    observer.takeRecords().forEach(count)
    observer.disconnect()
  }
}
