import { readdirSync, readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { startEventLoopMetrics, startGcMetrics } from './event-loop.ts'
import type { Registry } from './registry.ts'

/*
 * The process, under the names that Prometheus clients share, so that dashboards made for Node
 * processes fit.
 */

export type BuildInfo = { version: string; commit: string }

/** Begins to measure the process; `close` ends it and leaves nothing open. */
export function startProcessMetrics(options: { registry: Registry; build: BuildInfo }): {
  close(): void
} {
  const { registry, build } = options
  declareConstants(registry, build)
  const parts = [
    startMemory(registry),
    startCpu(registry),
    startEventLoopMetrics(registry),
    startGcMetrics(registry),
  ]
  return {
    close() {
      for (const close of parts) close()
    },
  }
}

function declareConstants(registry: Registry, build: BuildInfo): void {
  registry
    .gauge({
      name: 'annals_build_info',
      help: 'The software that runs; always 1.',
      labels: ['version', 'commit', 'node_version'],
    })
    .labels({ ...build, node_version: process.version })
    .set(1)
  registry
    .gauge({
      name: 'process_start_time_seconds',
      help: 'When the process started, in seconds since 1970.',
    })
    .set(performance.timeOrigin / 1000)
  const maxFds = readMaxFds()
  if (maxFds !== undefined) {
    registry
      .gauge({ name: 'process_max_fds', help: 'File descriptors that the process may open.' })
      .set(maxFds)
  }
}

function startMemory(registry: Registry): () => void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help })
  const resident = gauge('process_resident_memory_bytes', 'Memory of the process that is resident.')
  const heapTotal = gauge('nodejs_heap_size_total_bytes', 'Size of the JavaScript heap.')
  const heapUsed = gauge('nodejs_heap_size_used_bytes', 'Part of the JavaScript heap in use.')
  const external = gauge('nodejs_external_memory_bytes', 'Memory of buffers outside the heap.')
  const openFds =
    countOpenFds() === undefined
      ? undefined
      : gauge('process_open_fds', 'File descriptors that are open.')
  return registry.onScrape(() => {
    const usage = process.memoryUsage()
    resident.set(usage.rss)
    heapTotal.set(usage.heapTotal)
    heapUsed.set(usage.heapUsed)
    external.set(usage.external)
    openFds?.set(countOpenFds() ?? Number.NaN)
  })
}

function startCpu(registry: Registry): () => void {
  const total = registry.counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process, user and system.',
  })
  const user = registry.counter({
    name: 'process_cpu_user_seconds_total',
    help: 'CPU time of the process in user mode.',
  })
  const system = registry.counter({
    name: 'process_cpu_system_seconds_total',
    help: 'CPU time of the process in system mode.',
  })
  return registry.onScrape(() => {
    const usage = process.cpuUsage()
    user.advanceTo(usage.user / 1e6)
    system.advanceTo(usage.system / 1e6)
    total.advanceTo((usage.user + usage.system) / 1e6)
  })
}

/** Linux tells; elsewhere these metrics are left out. */
function countOpenFds(): number | undefined {
  try {
    // The listing itself takes one.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return undefined
  }
}

function readMaxFds(): number | undefined {
  try {
    const [, soft] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return undefined
  }
}
