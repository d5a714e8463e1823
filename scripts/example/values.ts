// Ledger values as JSON text, each in the three shapes a history can hold: lossless with field labels, lossless
// without them (as deployed scans send it), and compact. Text, not objects: a JavaScript object would move keys
// that look like integers to the front.

export type Value = {
  labelled: string
  bare: string
  compact: string
  kind: 'plain' | 'none' | 'some-optional' | 'some'
}

export type Fields = { readonly [label: string]: Value }
export type TypeName = { packageId: string; moduleName: string; entityName: string }

export const unit = plain('{"unit":{}}', '{}')
export const bool = (value: boolean) => plain(`{"bool":${value}}`, `${value}`)
export const int64 = (value: bigint | number) => quoted('int64', `${value}`)
export const text = (value: string) => quoted('text', value)
export const party = (id: string) => quoted('party', id)
export const contractId = (id: string) => quoted('contractId', id)
export const numeric = (decimal: string) =>
  plain(`{"numeric":${quote(decimal)}}`, quote(shortestDecimal(decimal)))
export const date = (daysSince1970: number) =>
  plain(
    `{"date":${daysSince1970}}`,
    quote(new Date(daysSince1970 * 86_400_000).toISOString().slice(0, 10)),
  )
export const timestamp = (micros: number) =>
  plain(`{"timestamp":"${micros}"}`, quote(formatInstant(micros)))
export const enumeration = (name: string) =>
  plain(`{"enum":{"constructor":${quote(name)}}}`, quote(name))

export const none: Value = { ...plain('{"optional":{}}', 'null'), kind: 'none' }

export function some(value: Value): Value {
  const nested = value.kind !== 'plain'
  const inner = value.kind === 'none' ? '[]' : `[${value.compact}]`
  return {
    ...wrap(value, (inside) => `{"optional":{"value":${inside}}}`),
    compact: nested ? inner : value.compact,
    kind: nested ? 'some-optional' : 'some',
  }
}

export function list(...elements: Value[]): Value {
  return {
    ...join('list', 'elements', elements, (element) => element),
    compact: `[${elements.map(({ compact }) => compact).join()}]`,
  }
}

/** Entries keep the order given. An empty key is left out of its entry, as protobuf leaves out every empty text. */
export function textMap(entries: [key: string, value: Value][]): Value {
  const values = entries.map(([, value]) => value)
  return {
    ...join('textMap', 'entries', values, (value, index) => {
      const key = entries[index]?.[0] ?? ''
      return key === '' ? `{"value":${value}}` : `{"key":${quote(key)},"value":${value}}`
    }),
    compact: `{${entries.map(([key, value]) => `${quote(key)}:${value.compact}`).join()}}`,
  }
}

export function genMap(entries: [key: Value, value: Value][]): Value {
  const side = (shape: 'labelled' | 'bare') =>
    entries.map(([key, value]) => `{"key":${key[shape]},"value":${value[shape]}}`)
  const print = (items: string[]) =>
    items.length === 0 ? '{"genMap":{}}' : `{"genMap":{"entries":[${items.join()}]}}`
  return {
    labelled: print(side('labelled')),
    bare: print(side('bare')),
    compact: `[${entries.map(([key, value]) => `[${key.compact},${value.compact}]`).join()}]`,
    kind: 'plain',
  }
}

/** Without labels, the ledger also drops trailing fields that hold nothing; the compact form still shows them. */
export function record(fields: Fields, type?: TypeName): Value {
  const entries = Object.entries(fields)
  const id = type === undefined ? '' : `"recordId":${JSON.stringify(type)}`
  const labelled = entries.map(
    ([label, value]) => `{"label":${quote(label)},"value":${value.labelled}}`,
  )
  const lastHeld = entries.findLastIndex(([, value]) => value.kind !== 'none')
  const bare = entries.slice(0, lastHeld + 1).map(([, value]) => `{"value":${value.bare}}`)
  const print = (items: string[], typeId: string) => {
    const held = items.length === 0 ? '' : `"fields":[${items.join()}]`
    return `{"record":{${[typeId, held].filter((part) => part !== '').join()}}}`
  }
  return {
    labelled: print(labelled, id),
    bare: print(bare, ''),
    compact: `{${entries.map(([label, value]) => `${quote(label)}:${value.compact}`).join()}}`,
    kind: 'plain',
  }
}

export function variant(name: string, value: Value): Value {
  return {
    ...wrap(value, (inside) => `{"variant":{"constructor":${quote(name)},"value":${inside}}}`),
    compact: `{"tag":${quote(name)},"value":${value.compact}}`,
    kind: 'plain',
  }
}

/** ISO-8601 with 0, 3 or 6 fraction digits, whichever is the least that loses nothing. */
export function formatInstant(micros: number): string {
  const full = formatMicros(micros)
  if (full.endsWith('.000000Z')) return full.replace('.000000Z', 'Z')
  return full.endsWith('000Z') ? full.replace('000Z', 'Z') : full
}

/** ISO-8601 with exactly six fraction digits. */
export function formatMicros(micros: number): string {
  const millis = Math.floor(micros / 1000)
  const rest = `${micros - millis * 1000}`.padStart(3, '0')
  return new Date(millis).toISOString().replace('Z', `${rest}Z`)
}

export function quote(value: string): string {
  return JSON.stringify(value)
}

function plain(labelled: string, compact: string): Value {
  return { labelled, bare: labelled, compact, kind: 'plain' }
}

function quoted(kind: string, value: string): Value {
  return plain(`{"${kind}":${quote(value)}}`, quote(value))
}

function wrap(value: Value, print: (inside: string) => string): { labelled: string; bare: string } {
  return { labelled: print(value.labelled), bare: print(value.bare) }
}

function join(
  kind: string,
  member: string,
  values: Value[],
  print: (value: string, index: number) => string,
): { labelled: string; bare: string; kind: 'plain' } {
  const side = (shape: 'labelled' | 'bare') =>
    values.length === 0
      ? `{"${kind}":{}}`
      : `{"${kind}":{"${member}":[${values.map((value, index) => print(value[shape], index)).join()}]}}`
  return { labelled: side('labelled'), bare: side('bare'), kind: 'plain' }
}

/** Compact numerics turn scientific when the first significant digit stands seventh or later after the point. */
function shortestDecimal(decimal: string): string {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(decimal) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+(?=\d)/, '')
  const exponent = digits.length - 1 - fraction.length
  if (exponent >= -6) return decimal
  const coefficient = digits.length === 1 ? digits : `${digits[0]}.${digits.slice(1)}`
  return `${sign}${coefficient}E${exponent}`
}
