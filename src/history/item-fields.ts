import { type Instant, parseInstant } from '../values/instant.ts'
import { describeJson, quote } from '../values/json.ts'
import { INT64_MAX, INT64_MIN, RoundedNumberError } from '../values/value.ts'

// Reads the fields of an item. `at` is the path to the object that the field stands in.

export type Source = Record<string, unknown>

export class UpdateError extends Error {
  override name = 'UpdateError'
  readonly field: string
  constructor(field: string, reason: string) {
    super(`${field} ${reason}.`)
    this.field = field
  }
}

/** Deployed scans cannot look up longer ids. */
const UPDATE_ID_LENGTH_MAX = 2066
const HASH_HEX_LENGTH_MAX = 2048

export function readUpdateId(source: Source): string {
  const updateId = readName(source, 'update_id', '')
  if (updateId.length > UPDATE_ID_LENGTH_MAX) {
    throw new UpdateError('update_id', `must not be longer than ${UPDATE_ID_LENGTH_MAX} characters`)
  }
  return updateId
}

export function readHash(source: Source): string | undefined {
  const hash = source.external_transaction_hash
  if (hash === undefined || hash === null) return undefined
  if (
    typeof hash !== 'string' ||
    !/^(?:[0-9a-fA-F]{2})+$/.test(hash) ||
    hash.length > HASH_HEX_LENGTH_MAX
  ) {
    throw new UpdateError('external_transaction_hash', 'must be hexadecimal, two digits a byte')
  }
  return hash.toLowerCase()
}

export function readText(source: Source, field: string, at: string): string {
  const value = source[field]
  if (typeof value === 'string') return value
  throw new UpdateError(
    `${at}${field}`,
    value === undefined ? 'is missing' : `must be a string, not ${describeJson(value)}`,
  )
}

const NAME_RULE = 'must be a string of Unicode characters that is not empty and has no NUL'

/** Names are kept as text in the database, which holds neither NUL nor half a character. */
function isName(value: string): boolean {
  return value !== '' && !value.includes('\0') && value.isWellFormed()
}

export function readName(source: Source, field: string, at: string): string {
  const value = readText(source, field, at)
  if (!isName(value)) throw new UpdateError(`${at}${field}`, NAME_RULE)
  return value
}

export function readNames(source: Source, field: string, at: string): string[] {
  const value = source[field]
  if (!Array.isArray(value)) {
    throw new UpdateError(
      `${at}${field}`,
      value === undefined ? 'is missing' : `must be an array, not ${describeJson(value)}`,
    )
  }
  for (let i = 0; i < value.length; i += 1) {
    if (typeof value[i] !== 'string' || !isName(value[i])) {
      throw new UpdateError(`${at}${field}[${i}]`, NAME_RULE)
    }
  }
  return value
}

export function stakeholders(source: Source, field: string, at: string): string {
  const names = readNames(source, field, at)
  return (names.length < 2 ? names : names.toSorted()).map(quote).join(',')
}

export function readInt64(source: Source, field: string, at: string): bigint {
  const value = source[field]
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new RoundedNumberError()
  }
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) {
    const integer = BigInt(value as bigint | number)
    if (integer >= INT64_MIN && integer <= INT64_MAX) return integer
  }
  throw new UpdateError(
    `${at}${field}`,
    value === undefined
      ? 'is missing'
      : `must be a whole number of 64 bits, not ${describeJson(value)}`,
  )
}

export function readInstant(source: Source, field: string, at: string): Instant {
  const text = readText(source, field, at)
  const instant = parseInstant(text)
  if (instant === undefined || /\.\d{6}\d*[1-9]/.test(text)) {
    throw new UpdateError(
      `${at}${field}`,
      'must be an ISO-8601 time with Z or an offset and at most microseconds, such as 2024-09-20T13:31:28.405180Z',
    )
  }
  return instant
}
