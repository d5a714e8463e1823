export type Format = 'text' | 'openmetrics' | 'protobuf'

export const contentTypes: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  protobuf:
    'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
}

/** What a wildcard means, the first that is not refused by name: a person who looks wants text. */
const wildcardOrder: readonly Format[] = ['text', 'openmetrics', 'protobuf']

/** Media ranges looked at; Prometheus sends five. */
const rangesMax = 32

type Range = { type: string; parameters: ReadonlyMap<string, string>; quality: number }

/**
 * The format that the Accept header prefers: the highest quality, and of equals the one named first.
 * Where nothing fits it is the classic text, because metrics in a format that was not asked for
 * serve an operator better than an error does.
 */
export function negotiateFormat(accept: string | undefined): Format {
  const ranges = (accept ?? '').split(',').slice(0, rangesMax).map(parseRange)
  const refused = new Set(
    ranges.filter(({ quality }) => quality === 0).map((range) => namedFormat(range)),
  )
  let best: Format | undefined
  let bestQuality = 0
  for (const range of ranges) {
    if (range.quality <= bestQuality) continue
    const format =
      namedFormat(range) ??
      (isWildcard(range) ? wildcardOrder.find((choice) => !refused.has(choice)) : undefined)
    if (format === undefined) continue
    best = format
    bestQuality = range.quality
  }
  return best ?? 'text'
}

function parseRange(text: string): Range {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim())
  const parameters = new Map<string, string>()
  for (const part of rest) {
    const [name = '', value = ''] = part.split('=').map((side) => side.trim())
    parameters.set(name.toLowerCase(), value.replace(/^"(.*)"$/, '$1'))
  }
  const quality = Number(parameters.get('q') ?? '1')
  const valid = quality >= 0 && quality <= 1
  return { type: type.toLowerCase(), parameters, quality: valid ? quality : 0 }
}

/** A parameter that is left out fits; one that is given must name what we serve. */
function namedFormat({ type, parameters }: Range): Format | undefined {
  const fits = (name: string, value: string) => (parameters.get(name) ?? value) === value
  if (type === 'text/plain' && fits('version', '0.0.4')) return 'text'
  if (type === 'application/openmetrics-text' && fits('version', '1.0.0')) return 'openmetrics'
  if (
    type === 'application/vnd.google.protobuf' &&
    fits('encoding', 'delimited') &&
    parameters.get('proto') === 'io.prometheus.client.MetricFamily'
  ) {
    return 'protobuf'
  }
  return undefined
}

function isWildcard({ type }: Range): boolean {
  return type === '*/*' || type === 'text/*'
}
