/**
 * An exact decimal with ten places, as the ledger's own language has it: a whole number of units of
 * 10^-10. Sums and differences are those of bigints; no floating point ever touches an amount.
 */
export type Decimal = bigint

const PLACES = 10
/** 38 digits in all, ten of them behind the point. */
const WHOLE_DIGITS_MAX = 28

export const DECIMAL_ONE: Decimal = 10n ** BigInt(PLACES)
export const DECIMAL_MAX: Decimal = 10n ** BigInt(WHOLE_DIGITS_MAX + PLACES) - 1n

const DECIMAL = /^([+-]?)(\d{1,28})(?:\.(\d{1,10}))?$/

/** Plain notation with at most ten places; undefined for anything else. */
export function parseDecimal(text: string): Decimal | undefined {
  const match = DECIMAL.exec(text)
  if (match === null) return undefined
  const [, sign, whole = '', fraction = ''] = match
  const units = BigInt(whole + fraction.padEnd(PLACES, '0'))
  return sign === '-' ? -units : units
}

/** A constant of the program. */
export function decimal(text: string): Decimal {
  const value = parseDecimal(text)
  if (value === undefined) throw new TypeError(`${text} is not a decimal with ten places.`)
  return value
}

/** Always ten places. */
export function printDecimal(value: Decimal): string {
  const digits = String(value < 0n ? -value : value).padStart(PLACES + 1, '0')
  return `${value < 0n ? '-' : ''}${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`
}

/** Rounded half to even, as the ledger's own language multiplies. */
export function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  return divideRounded(a * b, DECIMAL_ONE)
}

/** Rounded half to even. The divisor is not zero. */
export function divideDecimals(a: Decimal, b: Decimal): Decimal {
  return divideRounded(a * DECIMAL_ONE, b)
}

function divideRounded(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor
  const rest = dividend - quotient * divisor
  const twice = magnitude(rest) * 2n - magnitude(divisor)
  if (twice < 0n || (twice === 0n && quotient % 2n === 0n)) return quotient
  return quotient + (dividend < 0n === divisor < 0n ? 1n : -1n)
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value
}
