import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { contentTypes, type Format, negotiateFormat } from './negotiation.ts'

const protobuf =
  'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'

const table: [accept: string | undefined, format: Format, why: string][] = [
  [undefined, 'text', 'no header'],
  ['', 'text', 'an empty header'],
  ['*/*', 'text', 'curl'],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text', 'a browser'],
  ['text/plain', 'text', 'text without a version'],
  ['text/plain;version=0.0.4', 'text', 'text with its version'],
  ['text/plain;version=9', 'text', 'nothing that fits'],
  ['application/json', 'text', 'another type'],
  ['application/openmetrics-text', 'openmetrics', 'OpenMetrics without a version'],
  ['application/openmetrics-text; version=1.0.0; charset=utf-8', 'openmetrics', 'with its version'],
  ['application/openmetrics-text;version="1.0.0"', 'openmetrics', 'a quoted version'],
  ['Application/OpenMetrics-Text;Version=1.0.0', 'openmetrics', 'case'],
  ['application/openmetrics-text;version=0.0.1,text/plain;q=0.5', 'text', 'an old OpenMetrics'],
  [
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'openmetrics',
    'Prometheus 2 without native histograms',
  ],
  [
    `${protobuf},application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`,
    'protobuf',
    'Prometheus 2 with native histograms',
  ],
  [
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
    'openmetrics',
    'Prometheus 3',
  ],
  [
    `${protobuf};escaping=allow-utf-8;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,*/*;q=0.2`,
    'protobuf',
    'Prometheus 3 with native histograms',
  ],
  ['application/vnd.google.protobuf', 'text', 'protobuf of no known message'],
  [
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text',
    'text',
    'protobuf in another encoding',
  ],
  ['application/openmetrics-text;q=0.1,text/plain;q=0.9', 'text', 'the higher quality'],
  ['text/plain;q=0.1,application/openmetrics-text;q=0.9', 'openmetrics', 'the higher quality'],
  ['text/plain,application/openmetrics-text', 'text', 'of equals the first'],
  ['application/openmetrics-text,text/plain', 'openmetrics', 'of equals the first'],
  ['application/openmetrics-text;q=0,*/*', 'text', 'a refused format'],
  ['text/plain;q=0,*/*', 'openmetrics', 'text refused by name'],
  [`text/plain;q=0,application/openmetrics-text;q=0,*/*`, 'protobuf', 'both texts refused'],
  ['application/openmetrics-text;q=2', 'text', 'a quality that is none'],
  ['application/openmetrics-text;q=x', 'text', 'a quality that is none'],
  [' text/plain ; q=0.5 , application/openmetrics-text ; q=0.6 ', 'openmetrics', 'spaces'],
]

for (const [accept, format, why] of table) {
  test(`${why}: ${accept} is answered with ${format}`, () => {
    assert.equal(negotiateFormat(accept), format)
  })
}

test('what we name as our content type asks for the same format', () => {
  for (const [format, type] of Object.entries(contentTypes)) {
    assert.equal(negotiateFormat(type), format)
  }
})

test('any header at all has an answer', () => {
  const parts = fc.constantFrom('text/plain', '*/*', ';', 'q=', '0.5', ',', '=', '"', ' ', '1', 'x')
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(parts).map((list) => list.join('')),
      ),
      (accept) => {
        assert(Object.hasOwn(contentTypes, negotiateFormat(accept)))
      },
    ),
  )
})
