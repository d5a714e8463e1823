import type pg from 'pg'
import type { SqlValue } from './db.ts'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

const parsers = new Map<number, (text: string) => unknown>([
  [16, (text) => (text === 't' ? 1 : 0)],
  [17, readHex],
  [20, readIntegerText],
  [21, Number],
  [23, Number],
  [700, Number],
  [701, Number],
  // The sum of large integers is a numeric.
  [1700, (text) => (/^-?\d+$/.test(text) ? readIntegerText(text) : Number(text))],
])

/** Column values as SQLite gives them; a type that SQLite does not have stays the server's text. */
export const columnTypes = {
  getTypeParser: (oid: number) => parsers.get(oid) ?? String,
} as unknown as pg.CustomTypesConfig

/** A number where it is exact, else the big integer itself. */
export function readInteger(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/** An integer as a literal that needs no quoting and keeps its type, whatever its sign and size. */
export function integerLiteral(value: SqlValue | undefined): string {
  const isInteger =
    typeof value === 'bigint'
      ? value >= INT64_MIN && value <= INT64_MAX
      : typeof value === 'number' && Number.isSafeInteger(value)
  if (!isInteger) throw new TypeError('The parameters of a binary query are 64-bit integers.')
  return `'${value}'::int8`
}

function readIntegerText(text: string): number | bigint {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

function readHex(text: string): Uint8Array {
  const bytes = Buffer.from(text.slice(2), 'hex')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
}
