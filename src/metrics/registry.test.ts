import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { renderText } from './exposition.ts'
import { createRegistry, type Registry, seriesMaxDefault } from './registry.ts'

function samples(registry: Registry): string[] {
  return renderText(registry.scrape(), 'text')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('annals_metrics_'))
}

test('a metric without labels is its own series and begins at zero', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const counter = registry.counter({ name: 'things_total', help: 'Things.' })
  const gauge = registry.gauge({ name: 'level', help: 'Level.' })
  assert.deepEqual(samples(registry), ['level 0', 'things_total 0'])
  counter.inc()
  counter.inc(2.5)
  gauge.set(4)
  gauge.inc()
  gauge.dec(3)
  assert.deepEqual(samples(registry), ['level 2', 'things_total 3.5'])
})

test('the same labels give the same series, numbers and texts alike', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const requests = registry.counter({
    ...{ name: 'requests_total', help: 'Requests.', labels: ['route', 'status'] },
  })
  requests.labels({ route: '/a', status: 200 }).inc()
  requests.labels({ status: '200', route: '/a' }).inc()
  assert.equal(
    requests.labels({ route: '/a', status: 200 }),
    requests.labels({ route: '/a', status: '200' }),
  )
  assert.deepEqual(samples(registry), ['requests_total{route="/a",status="200"} 2'])
})

test('label sets that differ never share a series', () => {
  const texts = fc.string({ unit: fc.constantFrom('a', '"', '\\', ':', '1'), maxLength: 3 })
  const pairsOfTexts = fc.uniqueArray(fc.tuple(texts, texts), {
    ...{ selector: (pair: unknown) => JSON.stringify(pair), maxLength: 100, size: 'max' as const },
  })
  fc.assert(
    fc.property(pairsOfTexts, (pairs) => {
      const registry = createRegistry({ nativeHistograms: true })
      const counter = registry.counter({ name: 'x_total', help: 'X.', labels: ['a', 'b'] })
      for (const [a, b] of pairs) counter.labels({ a, b }).inc()
      const lines = samples(registry)
      assert.equal(lines.length, pairs.length)
      assert(lines.every((line) => line.endsWith(' 1')))
    }),
  )
})

test('a counter refuses to fall, and follows a total that somebody else counts', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const counter = registry.counter({ name: 'seconds_total', help: 'Seconds.' })
  assert.throws(() => counter.inc(-1), /only rises/)
  assert.throws(() => counter.inc(Number.NaN), /only rises/)
  counter.advanceTo(5)
  counter.advanceTo(4)
  assert.deepEqual(samples(registry), ['seconds_total 5'])
})

test('beyond the bound new label sets share the overflow series, and a counter tells', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const counter = registry.counter({
    ...{ name: 'calls_total', help: 'Calls.', labels: ['user'], seriesMax: 3 },
  })
  for (let user = 0; user < 10; user++) counter.labels({ user }).inc()
  for (let user = 0; user < 3; user++) counter.labels({ user }).inc()
  assert.deepEqual(samples(registry), [
    'calls_total{user="0"} 2',
    'calls_total{user="1"} 2',
    'calls_total{user="2"} 2',
    'calls_total{user="overflow"} 7',
  ])
  const text = renderText(registry.scrape(), 'text')
  assert.match(text, /^annals_metrics_overflow_total\{metric="calls_total"\} 7$/m)
})

test('every kind of metric is bounded by default', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const labels = ['id'] as const
  const counter = registry.counter({ name: 'a_total', help: 'A.', labels })
  const gauge = registry.gauge({ name: 'b', help: 'B.', labels })
  const histogram = registry.histogram({ name: 'c_seconds', help: 'C.', labels })
  for (let id = 0; id < seriesMaxDefault + 50; id++) {
    counter.labels({ id }).inc()
    gauge.labels({ id }).set(1)
    histogram.labels({ id }).observe(1)
  }
  const sizes = registry.scrape().map(({ name, series }) => [name, series.size])
  assert.deepEqual(sizes, [
    ['a_total', seriesMaxDefault + 1],
    ['annals_metrics_collect_failures_total', 1],
    ['annals_metrics_overflow_total', 3],
    ['b', seriesMaxDefault + 1],
    ['c_seconds', seriesMaxDefault + 1],
  ])
})

test('even the counter of overflows is bounded', () => {
  const registry = createRegistry({ nativeHistograms: true })
  for (let metric = 0; metric < seriesMaxDefault + 20; metric++) {
    const counter = registry.counter({
      ...{ name: `m${metric}_total`, help: 'M.', labels: ['id'], seriesMax: 0 },
    })
    counter.labels({ id: 1 }).inc()
  }
  const overflows = registry.scrape().find(({ name }) => name === 'annals_metrics_overflow_total')
  assert.equal(overflows?.series.size, seriesMaxDefault + 1)
})

test('a removed series is gone, makes room, and begins anew', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const gauge = registry.gauge({ name: 'lag', help: 'Lag.', labels: ['peer'], seriesMax: 1 })
  gauge.labels({ peer: 'a' }).set(5)
  gauge.remove({ peer: 'a' })
  assert.deepEqual(samples(registry), [])
  gauge.labels({ peer: 'b' }).set(6)
  assert.deepEqual(samples(registry), ['lag{peer="b"} 6'])
})

test('long and broken label values are cut and mended, and do not grow the lookup', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const counter = registry.counter({ name: 'x_total', help: 'X.', labels: ['v'] })
  const long = 'x'.repeat(300)
  for (const end of ['a', 'b', 'c']) counter.labels({ v: long + end }).inc()
  counter.labels({ v: '\ud800' }).inc()
  assert.deepEqual(samples(registry), [`x_total{v="${long}"} 3`, 'x_total{v="\ufffd"} 1'])
})

test('a gauge is collected at every scrape, labels and all', () => {
  const registry = createRegistry({ nativeHistograms: true })
  let size = 1
  registry.gauge({ name: 'pool_size', help: 'Size.', collect: (gauge) => gauge.set(size) })
  registry.gauge({
    name: 'pool_state',
    help: 'State.',
    labels: ['state'],
    collect: (gauge) => gauge.labels({ state: 'idle' }).set(size * 2),
  })
  assert.deepEqual(samples(registry), ['pool_size 1', 'pool_state{state="idle"} 2'])
  size = 7
  assert.deepEqual(samples(registry), ['pool_size 7', 'pool_state{state="idle"} 14'])
})

test('a failing collection costs its own metric alone, is counted and reported', () => {
  const errors: unknown[] = []
  const registry = createRegistry({
    nativeHistograms: true,
    onCollectError: (error) => errors.push(error),
  })
  const failure = new Error('The pool is closed.')
  registry.gauge({
    name: 'broken',
    help: 'Broken.',
    collect: () => {
      throw failure
    },
  })
  registry.gauge({ name: 'fine', help: 'Fine.', collect: (gauge) => gauge.set(3) })
  assert.deepEqual(samples(registry), ['broken 0', 'fine 3'])
  assert.deepEqual(errors, [failure])
  const text = renderText(registry.scrape(), 'text')
  assert.match(text, /^annals_metrics_collect_failures_total 2$/m)
})

test('a function given to onScrape is called until it is taken back', () => {
  const registry = createRegistry({ nativeHistograms: true })
  let calls = 0
  const stop = registry.onScrape(() => {
    calls += 1
  })
  registry.scrape()
  stop()
  registry.scrape()
  assert.equal(calls, 1)
})

test('a view adds its labels, and two views share one family', () => {
  const registry = createRegistry({ nativeHistograms: true })
  for (const app of ['scan', 'validator']) {
    const view = registry.with({ node_type: app })
    view.counter({ name: 'ready_total', help: 'Ready.' }).inc()
    view
      .counter({ name: 'hits_total', help: 'Hits.', labels: ['route'] })
      .labels({ route: '/' })
      .inc()
  }
  registry.with({ a: 1 }).with({ b: 2 }).gauge({ name: 'nested', help: 'Nested.' }).set(9)
  assert.deepEqual(samples(registry), [
    'hits_total{node_type="scan",route="/"} 1',
    'hits_total{node_type="validator",route="/"} 1',
    'nested{a="1",b="2"} 9',
    'ready_total{node_type="scan"} 1',
    'ready_total{node_type="validator"} 1',
  ])
})

test('declaring a metric again gives the same series', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const options = { name: 'x_total', help: 'X.', labels: ['a'] } as const
  registry.counter(options).labels({ a: 1 }).inc()
  registry.counter(options).labels({ a: 1 }).inc()
  assert.deepEqual(samples(registry), ['x_total{a="1"} 2'])
})

test('wrong declarations are refused with a sentence', () => {
  const registry = createRegistry({ nativeHistograms: true })
  registry.counter({ name: 'known_total', help: 'Known.' })
  const refused: [() => void, RegExp][] = [
    [() => registry.gauge({ name: 'a-b', help: '' }), /no metric name/],
    [() => registry.gauge({ name: '1a', help: '' }), /no metric name/],
    [() => registry.counter({ name: 'requests', help: '' }), /end in "_total"/],
    [() => registry.gauge({ name: 'size_total', help: '' }), /end in "_total"/],
    [() => registry.gauge({ name: 'x', help: '', labels: ['a-b'] }), /cannot be a label/],
    [() => registry.gauge({ name: 'x', help: '', labels: ['__name__'] }), /cannot be a label/],
    [() => registry.histogram({ name: 'y', help: '', labels: ['le'] }), /cannot be a label/],
    [() => registry.gauge({ name: 'x', help: '', labels: ['a', 'a'] }), /twice/],
    [() => registry.with({ a: 1 }).gauge({ name: 'x', help: '', labels: ['a'] }), /twice/],
    [() => registry.counter({ name: 'known_total', help: 'Other.' }), /declared twice/],
  ]
  for (const [declare, message] of refused) assert.throws(declare, { message })
})

test('incrementing a resolved counter allocates nothing', () => {
  const registry = createRegistry({ nativeHistograms: true })
  const counter = registry.counter({ name: 'x_total', help: 'X.', labels: ['a'] }).labels({ a: 1 })
  const rounds = 1_000_000
  const run = () => {
    for (let i = 0; i < rounds; i++) counter.inc()
  }
  run()
  const bytes = Array.from({ length: 5 }, () => {
    const before = process.memoryUsage().heapUsed
    run()
    return Math.abs(process.memoryUsage().heapUsed - before) / rounds
  })
  assert(Math.min(...bytes) < 1)
})
