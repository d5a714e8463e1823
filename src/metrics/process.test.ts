import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderText } from './exposition.ts'
import { startProcessMetrics } from './process.ts'
import { createRegistry } from './registry.ts'

const build = { version: '1.2.3', commit: 'abc' }

function readValues(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ')
      return [line.slice(0, space), Number(line.slice(space + 1))]
    }),
  )
}

async function waitUntil(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('the process tells its memory, CPU time, start, descriptors and build', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const metrics = startProcessMetrics({ registry, build })
  try {
    const values = readValues(renderText(registry.scrape(), 'text'))
    const info = `annals_build_info{version="1.2.3",commit="abc",node_version="${process.version}"}`
    assert.equal(values.get(info), 1)
    for (const name of [
      'process_resident_memory_bytes',
      'nodejs_heap_size_total_bytes',
      'nodejs_heap_size_used_bytes',
      'nodejs_external_memory_bytes',
      'process_cpu_seconds_total',
    ]) {
      assert((values.get(name) ?? 0) > 0, name)
    }
    const started = values.get('process_start_time_seconds') ?? 0
    assert(Math.abs(started + process.uptime() - Date.now() / 1000) < 5)
    if (process.platform === 'linux') {
      assert((values.get('process_open_fds') ?? 0) >= 3)
      assert((values.get('process_max_fds') ?? 0) >= (values.get('process_open_fds') ?? 0))
    }
  } finally {
    metrics.close()
  }
})

test('a blocked event loop shows in the lag, the utilization and the CPU time', async () => {
  const registry = createRegistry({ nativeHistograms: true })
  const metrics = startProcessMetrics({ registry, build })
  try {
    const scrape = () => readValues(renderText(registry.scrape(), 'text'))
    const before = scrape().get('process_cpu_seconds_total') ?? 0
    await waitUntil(() => {
      const blockedUntil = performance.now() + 60
      while (performance.now() < blockedUntil);
      return (scrape().get('nodejs_eventloop_lag_max_seconds') ?? 0) >= 0.04
    })
    const values = scrape()
    assert((values.get('nodejs_eventloop_utilization_ratio') ?? 0) > 0)
    assert((values.get('process_cpu_seconds_total') ?? 0) > before)
    assert((values.get('nodejs_eventloop_lag_p99_seconds') ?? 0) > 0.03)
  } finally {
    metrics.close()
  }
})

test('garbage collections are counted by kind', async () => {
  const registry = createRegistry({ nativeHistograms: true })
  const metrics = startProcessMetrics({ registry, build })
  try {
    let kept: unknown[] = []
    await waitUntil(() => {
      kept = Array.from({ length: 200_000 }, (_, i) => ({ i }))
      const values = readValues(renderText(registry.scrape(), 'text'))
      return (values.get('nodejs_gc_duration_seconds_count{kind="minor"}') ?? 0) > 0
    })
    assert.equal(kept.length, 200_000)
  } finally {
    metrics.close()
  }
})

test('after closing nothing is collected any more, and two may run in one process', () => {
  const registries = [1, 2].map(() => createRegistry({ nativeHistograms: false }))
  const [first, second] = registries.map((registry) => startProcessMetrics({ registry, build }))
  first?.close()
  const [closed, running] = registries.map((registry) =>
    readValues(renderText(registry.scrape(), 'text')),
  )
  assert.equal(closed?.get('process_resident_memory_bytes'), 0)
  assert((running?.get('process_resident_memory_bytes') ?? 0) > 0)
  second?.close()
})
