import { instantFromMicros, printDate, printInThrees } from './instant.ts'
import { describeJson, isObject, quote } from './json.ts'

/**
 * A ledger value has two JSON forms. The lossless one (`protobuf_json`) names the kind of every
 * value; the compact one (`compact_json`) is what people read. One walk over the lossless form
 * checks it and prints both in canonical shape: fixed key order, no spaces, empty members left out.
 */
export type EncodedValue = {
  lossless: string
  /** Undefined where a record has fields without labels: then only its source knows the compact form. */
  compact: string | undefined
}

export class ValueError extends Error {
  override name = 'ValueError'
}

/** An integer that JSON.parse rounded: the text must be read again with exact numbers. */
export class RoundedNumberError extends Error {
  override name = 'RoundedNumberError'
}

export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n

/** The ledger's own language refuses values that are nested deeper than 100. */
const DEPTH_MAX = 120
/** Numeric has at most 38 digits; a little more keeps us from refusing what a ledger accepted. */
const NUMERIC_DIGITS_MAX = 80

type Walk = {
  lossless: string
  compact: string
  labelled: boolean
  path: (string | number)[]
  depth: number
}

export function encodeValue(value: unknown): EncodedValue {
  const walk: Walk = { lossless: '', compact: '', labelled: true, path: [], depth: 0 }
  writeValue(walk, value)
  return { lossless: walk.lossless, compact: walk.labelled ? walk.compact : undefined }
}

function writeValue(walk: Walk, value: unknown): void {
  walk.depth += 1
  if (walk.depth > DEPTH_MAX) refuse(walk, `is nested deeper than ${DEPTH_MAX} values`)
  const kind = soleKey(walk, value)
  const content = (value as Record<string, unknown>)[kind]
  walk.path.push(kind)
  switch (kind) {
    case 'record':
      writeRecord(walk, asObject(walk, content))
      break
    case 'party':
    case 'contractId':
    case 'text':
      writeSame(walk, kind, quote(asString(walk, content)))
      break
    case 'numeric':
      writeNumeric(walk, asString(walk, content))
      break
    case 'int64':
      writeSame(walk, kind, `"${asInt64(walk, content)}"`)
      break
    case 'optional':
      writeOptional(walk, asObject(walk, content))
      break
    case 'list':
      writeList(walk, asObject(walk, content))
      break
    case 'timestamp':
      writeTimestamp(walk, asInt64(walk, content))
      break
    case 'variant':
      writeVariant(walk, asObject(walk, content))
      break
    case 'enum':
      writeEnum(walk, asObject(walk, content))
      break
    case 'bool':
      if (typeof content !== 'boolean')
        refuse(walk, `must be true or false, not ${describeJson(content)}`)
      writeSame(walk, kind, String(content))
      break
    case 'unit':
      allowOnly(walk, asObject(walk, content), [])
      writeSame(walk, kind, '{}')
      break
    case 'date':
      writeDate(walk, content)
      break
    case 'textMap':
      writeTextMap(walk, asObject(walk, content))
      break
    case 'genMap':
      writeGenMap(walk, asObject(walk, content))
      break
    default:
      walk.path.pop()
      refuse(walk, `has the unknown kind ${JSON.stringify(kind)}; the kinds are ${KINDS}`)
  }
  walk.path.pop()
  walk.depth -= 1
}

const KINDS =
  'unit, bool, int64, numeric, text, party, contractId, date, timestamp, optional, list, textMap, genMap, record, variant and enum'

function writeSame(walk: Walk, kind: string, json: string): void {
  walk.lossless += `{"${kind}":${json}}`
  walk.compact += json
}

const NUMERIC = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?$/

function writeNumeric(walk: Walk, text: string): void {
  const match = NUMERIC.exec(text)
  if (match === null || text.length > NUMERIC_DIGITS_MAX) {
    refuse(walk, `must be a decimal number in plain notation, not ${excerpt(text)}`)
  }
  walk.lossless += `{"numeric":"${text}"}`
  walk.compact += `"${printBigDecimal(text, match)}"`
}

/**
 * The compact form prints numbers as Java's BigDecimal does: scientific when the first digit that
 * counts stands behind the sixth decimal place, with the zeros behind it kept.
 */
function printBigDecimal(text: string, [, sign, whole, fraction = '']: RegExpExecArray): string {
  if (whole !== '0') return text
  const leadingZeros = /^0*/.exec(fraction)?.[0].length ?? 0
  const isZero = leadingZeros === fraction.length
  const digits = isZero ? '0' : fraction.slice(leadingZeros)
  const exponent = isZero ? fraction.length : leadingZeros + 1
  if (exponent <= 6) return isZero ? text.replace('-', '') : text
  const mantissa = digits.length === 1 ? digits : `${digits[0]}.${digits.slice(1)}`
  return `${isZero ? '' : sign}${mantissa}E-${exponent}`
}

function writeDate(walk: Walk, content: unknown): void {
  const date = Number.isSafeInteger(content) ? printDate(content as number) : undefined
  if (date === undefined) {
    refuse(walk, 'must be a whole number of days since 1970-01-01, in the years 0001 to 9999')
  }
  walk.lossless += `{"date":${content}}`
  walk.compact += `"${date}"`
}

function writeTimestamp(walk: Walk, micros: string): void {
  const instant = instantFromMicros(BigInt(micros))
  if (instant === undefined) {
    refuse(walk, 'must be microseconds since 1970-01-01, in the years 0001 to 9999')
  }
  walk.lossless += `{"timestamp":"${micros}"}`
  walk.compact += `"${printInThrees(instant)}"`
}

/** Compact: none is null; some of an optional is wrapped in an array so that nothing is lost. */
function writeOptional(walk: Walk, content: Record<string, unknown>): void {
  allowOnly(walk, content, ['value'])
  const value = content.value
  if (isAbsent(value)) {
    walk.lossless += '{"optional":{}}'
    walk.compact += 'null'
    return
  }
  walk.lossless += '{"optional":{"value":'
  const inner = isObject(value) && 'optional' in value ? value.optional : undefined
  if (inner === undefined) {
    writeValue(walk, value)
  } else {
    const before = walk.compact
    walk.compact += '['
    writeValue(walk, value)
    if (isObject(inner) && isAbsent(inner.value)) walk.compact = `${before}[`
    walk.compact += ']'
  }
  walk.lossless += '}}'
}

function writeList(walk: Walk, content: Record<string, unknown>): void {
  allowOnly(walk, content, ['elements'])
  const elements = asArray(walk, content, 'elements')
  if (elements.length === 0) {
    walk.lossless += '{"list":{}}'
    walk.compact += '[]'
    return
  }
  walk.lossless += '{"list":{"elements":['
  walk.compact += '['
  for (let i = 0; i < elements.length; i += 1) {
    if (i > 0) writeComma(walk)
    walk.path.push(i)
    writeValue(walk, elements[i])
    walk.path.pop()
  }
  walk.lossless += ']}}'
  walk.compact += ']'
}

function writeTextMap(walk: Walk, content: Record<string, unknown>): void {
  allowOnly(walk, content, ['entries'])
  const entries = asArray(walk, content, 'entries')
  walk.lossless += entries.length === 0 ? '{"textMap":{' : '{"textMap":{"entries":['
  walk.compact += '{'
  const keys = new Set<string>()
  for (let i = 0; i < entries.length; i += 1) {
    if (i > 0) writeComma(walk)
    walk.path.push(i)
    const entry = asObject(walk, entries[i])
    allowOnly(walk, entry, ['key', 'value'])
    const key = isAbsent(entry.key) ? '' : asString(walk, entry.key)
    if (keys.has(key)) refuse(walk, `repeats the key ${excerpt(key)}`)
    keys.add(key)
    walk.lossless += key === '' ? '{"value":' : `{"key":${quote(key)},"value":`
    walk.compact += `${quote(key)}:`
    writeValue(walk, entry.value)
    walk.lossless += '}'
    walk.path.pop()
  }
  walk.lossless += entries.length === 0 ? '}}' : ']}}'
  walk.compact += '}'
}

function writeGenMap(walk: Walk, content: Record<string, unknown>): void {
  allowOnly(walk, content, ['entries'])
  const entries = asArray(walk, content, 'entries')
  walk.lossless += entries.length === 0 ? '{"genMap":{' : '{"genMap":{"entries":['
  walk.compact += '['
  for (let i = 0; i < entries.length; i += 1) {
    if (i > 0) writeComma(walk)
    walk.path.push(i)
    const entry = asObject(walk, entries[i])
    allowOnly(walk, entry, ['key', 'value'])
    walk.lossless += '{"key":'
    walk.compact += '['
    writeValue(walk, entry.key)
    walk.lossless += ',"value":'
    walk.compact += ','
    writeValue(walk, entry.value)
    walk.lossless += '}'
    walk.compact += ']'
    walk.path.pop()
  }
  walk.lossless += entries.length === 0 ? '}}' : ']}}'
  walk.compact += ']'
}

function writeRecord(walk: Walk, content: Record<string, unknown>): void {
  allowOnly(walk, content, ['recordId', 'fields'])
  const fields = asArray(walk, content, 'fields')
  walk.lossless += `{"record":{${identifier(walk, content.recordId, 'recordId', fields.length > 0)}`
  walk.lossless += fields.length === 0 ? '' : '"fields":['
  walk.compact += '{'
  const labels = new Set<string>()
  for (let i = 0; i < fields.length; i += 1) {
    if (i > 0) writeComma(walk)
    const field = asObject(walk, fields[i])
    const label = isAbsent(field.label) ? '' : asString(walk, field.label)
    walk.path.push(label === '' ? i : label)
    allowOnly(walk, field, ['label', 'value'])
    if (label === '') walk.labelled = false
    else if (labels.has(label)) refuse(walk, 'repeats the label of another field')
    labels.add(label)
    const quoted = quote(label)
    walk.lossless += label === '' ? '{"value":' : `{"label":${quoted},"value":`
    walk.compact += `${quoted}:`
    writeValue(walk, field.value)
    walk.lossless += '}'
    walk.path.pop()
  }
  walk.lossless += fields.length === 0 ? '}}' : ']}}'
  walk.compact += '}'
}

function writeVariant(walk: Walk, content: Record<string, unknown>): void {
  allowOnly(walk, content, ['variantId', 'constructor', 'value'])
  const name = quote(constructorName(walk, content))
  walk.lossless += `{"variant":{${identifier(walk, content.variantId, 'variantId', true)}"constructor":${name},"value":`
  walk.compact += `{"tag":${name},"value":`
  writeValue(walk, content.value)
  walk.lossless += '}}'
  walk.compact += '}'
}

function writeEnum(walk: Walk, content: Record<string, unknown>): void {
  allowOnly(walk, content, ['enumId', 'constructor'])
  const name = quote(constructorName(walk, content))
  walk.lossless += `{"enum":{${identifier(walk, content.enumId, 'enumId', true)}"constructor":${name}}}`
  walk.compact += name
}

function constructorName(walk: Walk, content: Record<string, unknown>): string {
  // An object without an own `constructor` inherits a function of that name.
  const name = Object.hasOwn(content, 'constructor') ? content.constructor : undefined
  if (typeof name !== 'string' || name === '') refuse(walk, 'needs the name of its constructor')
  return name
}

/** The type's identifier, where the source was verbose: `"recordId":{…},` or nothing. */
function identifier(walk: Walk, value: unknown, member: string, more: boolean): string {
  if (isAbsent(value)) return ''
  const id = asObject(walk, value)
  const parts: string[] = []
  for (const name of ['packageId', 'moduleName', 'entityName']) {
    const part = id[name]
    if (!isAbsent(part) && part !== '') parts.push(`"${name}":${quote(asString(walk, part))}`)
  }
  return `"${member}":{${parts.join(',')}}${more ? ',' : ''}`
}

function writeComma(walk: Walk): void {
  walk.lossless += ','
  walk.compact += ','
}

function soleKey(walk: Walk, value: unknown): string {
  if (!isObject(value)) {
    refuse(
      walk,
      `must be an object that names its kind, such as {"text":"abc"}, not ${describeJson(value)}`,
    )
  }
  let found: string | undefined
  for (const key in value) {
    if (found !== undefined) refuse(walk, `must name exactly one kind, but has ${found} and ${key}`)
    found = key
  }
  if (found === undefined) refuse(walk, 'must name its kind, but is an empty object')
  return found
}

function asObject(walk: Walk, value: unknown): Record<string, unknown> {
  if (!isObject(value)) refuse(walk, `must be an object, not ${describeJson(value)}`)
  return value
}

function asString(walk: Walk, value: unknown): string {
  if (typeof value !== 'string') refuse(walk, `must be a string, not ${describeJson(value)}`)
  return value
}

function asArray(walk: Walk, content: Record<string, unknown>, member: string): unknown[] {
  const value = content[member]
  if (isAbsent(value)) return []
  if (!Array.isArray(value))
    refuse(walk, `must have an array as its ${member}, not ${describeJson(value)}`)
  return value
}

const INTEGER = /^-?(?:0|[1-9]\d*)$/
/** Any text of up to this many digits is an int64 without looking further. */
const INT64_SAFE_DIGITS = 18

/** 64-bit integers are strings in the lossless form; whole JSON numbers are taken as well. */
function asInt64(walk: Walk, value: unknown): string {
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new RoundedNumberError()
  }
  const text = typeof value === 'number' || typeof value === 'bigint' ? String(value) : value
  if (typeof text === 'string' && text !== '-0' && INTEGER.test(text)) {
    if (text.length <= INT64_SAFE_DIGITS) return text
    if (text.length <= 20 && BigInt(text) >= INT64_MIN && BigInt(text) <= INT64_MAX) return text
  }
  refuse(walk, 'must be a whole number of 64 bits as a string')
}

function allowOnly(walk: Walk, content: Record<string, unknown>, members: string[]): void {
  for (const key in content) {
    if (!members.includes(key)) refuse(walk, `has the unknown member ${excerpt(key)}`)
  }
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}

function excerpt(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}…` : text)
}

function refuse(walk: Walk, reason: string): never {
  const place = walk.path.length === 0 ? 'The value' : walk.path.join('.')
  throw new ValueError(`${place} ${reason}.`)
}
