import type { Encoding } from '../history/encode.ts'
import type { PageRequest } from '../history/pages.ts'
import type { Position } from '../history/position.ts'
import type { Version } from '../history/versions.ts'
import { badRequest } from '../http/plain-error.ts'
import { type Instant, parseInstant } from '../values/instant.ts'
import { describeJson, isObject, parseJsonExactly } from '../values/json.ts'
import { INT64_MAX, INT64_MIN } from '../values/value.ts'

const INT32_MAX = 2_147_483_647
/** Longer values are cut in messages. */
const EXCERPT_LENGTH_MAX = 60

export type Body = Record<string, unknown>

/** The body is read as JSON whatever its Content-Type. */
export function readBody(bytes: Buffer | undefined, example: string): Body {
  const text = bytes?.toString('utf8').trim() ?? ''
  if (text === '') throw badRequest(`The request needs a JSON body, such as ${example}.`)
  let body: unknown
  try {
    body = parseJsonExactly(text)
  } catch (error) {
    throw badRequest(`The request body is not valid JSON: ${(error as Error).message}.`)
  }
  if (!isObject(body)) {
    throw badRequest(`The request body must be a JSON object, not ${describeJson(body)}.`)
  }
  return body
}

export function readPageRequest(
  bytes: Buffer | undefined,
  options: { version: Version; pageSizeMax: number },
): PageRequest {
  const body = readBody(bytes, '{"page_size":100}')
  return {
    version: options.version,
    pageSize: readCount(body, 'page_size', options.pageSizeMax),
    after: readAfter(body.after),
    encoding: readEncoding(body, options.version),
  }
}

/** A number of items from 1 to the maximum, which is refused and never cut silently. */
export function readCount(body: Body, field: string, max: number): number {
  const count = readInteger(body, field)
  if (count < 1n) throw badRequest(`${field} must be at least 1, not ${count}.`)
  if (count > BigInt(INT32_MAX)) {
    throw badRequest(`${field} must be an integer of 32 bits, at most ${INT32_MAX}, not ${count}.`)
  }
  if (count > BigInt(max)) {
    throw badRequest(`${field} must not exceed the maximum of this node, ${max}; it was ${count}.`)
  }
  return Number(count)
}

/** Any 64-bit integer, exactly. Deployed scans also take a whole number in a string. */
export function readInt64(body: Body, field: string): bigint {
  const value = readInteger(body, field)
  if (value < INT64_MIN || value > INT64_MAX) {
    throw badRequest(`${field} must be an integer of 64 bits, not ${value}.`)
  }
  return value
}

const INTEGER = /^[+-]?\d{1,40}$/

function readInteger(body: Body, field: string): bigint {
  const value = body[field]
  if (value === undefined || value === null) throw badRequest(`${field} is required.`)
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return BigInt(value as number)
  if (typeof value === 'string' && INTEGER.test(value)) return BigInt(value.replace(/^\+/, ''))
  throw badRequest(`${field} must be an integer, not ${printFound(value)}.`)
}

export function readString(body: Body, field: string): string {
  const value = body[field]
  if (value === undefined || value === null) throw badRequest(`${field} is required.`)
  if (typeof value !== 'string') {
    throw badRequest(`${field} must be a string, not ${printFound(value)}.`)
  }
  // Databases hold neither NUL nor half a character.
  if (value.includes('\0') || !value.isWellFormed()) {
    throw badRequest(`${field} must be a string of Unicode characters without NUL.`)
  }
  return value
}

export function readTime(body: Body, field: string): Instant {
  const text = readString(body, field)
  const instant = parseInstant(text)
  if (instant === undefined) {
    throw badRequest(
      `${field} must be an ISO-8601 time in the years 0001 to 9999 with Z or an offset and up to nine fraction digits, such as 2024-09-20T13:31:28.405180Z, not ${printFound(text)}.`,
    )
  }
  return instant
}

function readAfter(after: unknown): Position | undefined {
  if (after === undefined || after === null) return undefined
  if (!isObject(after)) {
    throw badRequest(
      `after must be an object with after_migration_id and after_record_time, not ${describeJson(after)}.`,
    )
  }
  return {
    migrationId: readInt64(after, 'after_migration_id'),
    recordTime: readTime(after, 'after_record_time'),
  }
}

/** The field has two names: the specification's, and the one that deployed clients send. */
export function readEncoding(source: Body, version: Version): Encoding {
  const given = new Set<Encoding>()
  for (const field of ['ledger_value_encoding', 'daml_value_encoding']) {
    const value = source[field]
    if (value === undefined || value === null) continue
    if (value !== 'compact_json' && value !== 'protobuf_json') {
      throw badRequest(`${field} must be compact_json or protobuf_json, not ${printFound(value)}.`)
    }
    given.add(value)
  }
  // The first version has a flag instead; later ones ignore it like any unknown field.
  const lossless = version === 0 ? source.lossless : undefined
  if (lossless !== undefined && lossless !== null) {
    if (typeof lossless !== 'boolean') {
      throw badRequest(`lossless must be true or false, not ${printFound(lossless)}.`)
    }
    given.add(lossless ? 'protobuf_json' : 'compact_json')
  }
  if (given.size > 1) {
    throw badRequest(
      'ledger_value_encoding and its other names (daml_value_encoding, lossless) contradict each other; give only one.',
    )
  }
  return [...given][0] ?? 'compact_json'
}

function printFound(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') return describeJson(value)
  const text = JSON.stringify(value)
  return text.length > EXCERPT_LENGTH_MAX ? `${text.slice(0, EXCERPT_LENGTH_MAX - 1)}…` : text
}
