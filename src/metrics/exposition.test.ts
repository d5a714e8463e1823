import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { renderText } from './exposition.ts'
import { createRegistry } from './registry.ts'

type Sample = { name: string; labels: Record<string, string>; value: number }

/** A small reader of both text formats, strict about what a line may hold. */
function parse(text: string): { samples: Sample[]; types: Map<string, string>; helps: string[] } {
  const samples: Sample[] = []
  const types = new Map<string, string>()
  const helps: string[] = []
  assert(text.endsWith('\n'))
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '# EOF') continue
    const [, keyword, about, rest] = /^# (HELP|TYPE) (\S+) (.*)$/s.exec(line) ?? []
    if (keyword === 'TYPE') types.set(about as string, rest as string)
    else if (keyword === 'HELP') helps.push(unescapeText(rest as string))
    else samples.push(parseSample(line))
  }
  return { samples, types, helps }
}

function parseSample(line: string): Sample {
  const [, name, braces = '', value] =
    /^([a-zA-Z_:][\w:]*)(\{(?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$/.exec(line) ?? []
  assert(name !== undefined && value !== undefined, `Not a sample: ${line}`)
  const labels = [...braces.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/gs)].map(
    ([, label, escaped]) => [label as string, unescapeText(escaped as string)] as const,
  )
  const number = value.replace(/^([+-])Inf$/, '$1Infinity')
  assert(number === 'NaN' || !Number.isNaN(Number(number)), `Not a number: ${value}`)
  return { name, labels: Object.fromEntries(labels), value: Number(number) }
}

function unescapeText(text: string): string {
  return text.replace(/\\(.)/gs, (_, character) => (character === 'n' ? '\n' : character))
}

const texts = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'n', '{', '}', ',', ' ', '#') }),
)

for (const format of ['text', 'openmetrics'] as const) {
  test(`${format}: what is written is read back, whatever the labels, helps and values`, () => {
    const values = fc.double()
    const entries = fc.uniqueArray(fc.tuple(texts, texts, values), {
      selector: ([a, b]) => JSON.stringify([a, b]),
    })
    fc.assert(
      fc.property(entries, texts, (list, help) => {
        const registry = createRegistry({ nativeHistograms: true })
        const gauge = registry.gauge({ name: 'level', help, labels: ['a', 'b'] })
        for (const [a, b, value] of list) gauge.labels({ a, b }).set(value)
        const { samples, helps } = parse(renderText(registry.scrape(), format))
        assert(helps.includes(help))
        assert.deepEqual(
          samples.filter(({ name }) => name === 'level'),
          list.map(([a, b, value]) => ({ name: 'level', labels: { a, b }, value: value + 0 })),
        )
      }),
    )
  })

  test(`${format}: buckets are cumulative and end in the count`, () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 100 })), (values) => {
        const registry = createRegistry({ nativeHistograms: true })
        const histogram = registry.histogram({
          ...{ name: 'took_seconds', help: 'Took.', labels: ['a'], buckets: [0.5, 1, 10] },
        })
        const { observe } = histogram.labels({ a: 'x' })
        values.forEach(observe)
        const { samples, types } = parse(renderText(registry.scrape(), format))
        assert.equal(types.get('took_seconds'), 'histogram')
        const count = values.length
        const upTo = (bound: number) => values.filter((value) => value <= bound).length
        const [one, ten] = format === 'text' ? ['1', '10'] : ['1.0', '10.0']
        assert.deepEqual(
          samples.filter(({ name }) => name.startsWith('took_')),
          [
            { name: 'took_seconds_bucket', labels: { a: 'x', le: '0.5' }, value: upTo(0.5) },
            { name: 'took_seconds_bucket', labels: { a: 'x', le: one }, value: upTo(1) },
            { name: 'took_seconds_bucket', labels: { a: 'x', le: ten }, value: upTo(10) },
            { name: 'took_seconds_bucket', labels: { a: 'x', le: '+Inf' }, value: count },
            {
              name: 'took_seconds_sum',
              labels: { a: 'x' },
              value: values.reduce((sum, value) => sum + value, 0),
            },
            { name: 'took_seconds_count', labels: { a: 'x' }, value: count },
          ],
        )
      }),
    )
  })
}

test('the classic text is what Prometheus documents', () => {
  const registry = createRegistry({ nativeHistograms: true })
  registry
    .counter({ name: 'b_total', help: 'A "b" \\ in\ntwo lines.', labels: ['p'] })
    .labels({ p: 'x\n"\\' })
    .inc(1e21)
  registry.gauge({ name: 'c', help: 'C.' }).set(-Infinity)
  registry.gauge({ name: 'd', help: 'D.', labels: ['unused'] })
  const text = renderText(registry.scrape(), 'text')
  const lines = text.split('\n').filter((line) => !line.includes('annals_metrics_'))
  assert.deepEqual(lines, [
    '# HELP b_total A "b" \\\\ in\\ntwo lines.',
    '# TYPE b_total counter',
    'b_total{p="x\\n\\"\\\\"} 1e+21',
    '# HELP c C.',
    '# TYPE c gauge',
    'c -Inf',
    '# HELP d D.',
    '# TYPE d gauge',
    '',
  ])
})

test('OpenMetrics names a counter without its suffix, escapes quotes in helps, and ends', () => {
  const registry = createRegistry({ nativeHistograms: true })
  registry.counter({ name: 'b_total', help: 'A "b".' }).inc()
  const text = renderText(registry.scrape(), 'openmetrics')
  assert.match(text, /^# HELP b A \\"b\\"\.\n# TYPE b counter\nb_total 1$/m)
  assert(text.endsWith('\n# EOF\n'))
})
