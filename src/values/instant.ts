/**
 * An instant of microsecond resolution as text, 'YYYY-MM-DDTHH:MM:SS.ssssssZ': always 27 characters,
 * from year 0001 to 9999, so that text order is time order in TypeScript, SQLite and PostgreSQL alike.
 */
export type Instant = string & { readonly brand: 'Instant' }

export const INSTANT_MIN = '0001-01-01T00:00:00.000000Z' as Instant
export const INSTANT_MAX = '9999-12-31T23:59:59.999999Z' as Instant

const MICROS_MIN = -62_135_596_800_000_000n
const MICROS_MAX = 253_402_300_799_999_999n
const MILLIS_PER_DAY = 86_400_000
/** Java's widest zone offset, which deployed scans accept. */
const ZONE_SECONDS_MAX = 18 * 3600

const ISO =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?(?:[Zz]|([+-])(\d\d):(\d\d)(?::(\d\d))?)$/

/**
 * Reads an ISO-8601 instant with `Z` or an offset and up to nine fraction digits, floored to the
 * microsecond. 24:00:00 is the next midnight, and the leap second 23:59:60 is 23:59:59.
 */
export function parseInstant(text: string): Instant | undefined {
  const match = ISO.exec(text)
  if (match === null) return undefined
  const [, year, month, day, hourText, minuteText, secondText, fraction = '', sign] = match
  let hour = Number(hourText)
  const minute = Number(minuteText)
  let second = Number(secondText)
  let extraDays = 0
  if (hour === 24 && minute === 0 && second === 0 && !/[1-9]/.test(fraction)) {
    hour = 0
    extraDays = 1
  } else if (hour === 23 && minute === 59 && second === 60) {
    second = 59
  }
  if (hour > 23 || minute > 59 || second > 59) return undefined
  if (!isDate(Number(year), Number(month), Number(day))) return undefined
  const micros6 = fraction.padEnd(6, '0').slice(0, 6)
  if (sign === undefined && extraDays === 0) {
    if (year === '0000') return undefined
    return `${year}-${month}-${day}T${two(hour)}:${two(minute)}:${two(second)}.${micros6}Z` as Instant
  }
  const zone = zoneSeconds(match)
  if (zone === undefined) return undefined
  const seconds = daysFromCivil(Number(year), Number(month), Number(day)) * 86_400 + hour * 3600
  const utc = seconds + minute * 60 + second + extraDays * 86_400 - zone
  return instantFromMicros(BigInt(utc) * 1_000_000n + BigInt(micros6))
}

function zoneSeconds(match: RegExpExecArray): number | undefined {
  const [sign, hours = 0, minutes = 0, seconds = 0] = [
    match[8],
    Number(match[9] ?? 0),
    Number(match[10] ?? 0),
    Number(match[11] ?? 0),
  ]
  if (minutes > 59 || seconds > 59) return undefined
  const total = hours * 3600 + minutes * 60 + seconds
  if (total > ZONE_SECONDS_MAX) return undefined
  return sign === '-' ? -total : total
}

/** Undefined outside the years 0001 to 9999. */
export function instantFromMicros(micros: bigint): Instant | undefined {
  if (micros < MICROS_MIN || micros > MICROS_MAX) return undefined
  const rest = ((micros % 1000n) + 1000n) % 1000n
  const millis = Number((micros - rest) / 1000n)
  return `${isoMillis(millis).slice(0, 23)}${String(rest).padStart(3, '0')}Z` as Instant
}

export function microsOf(instant: Instant): bigint {
  const days = daysFromCivil(
    Number(instant.slice(0, 4)),
    Number(instant.slice(5, 7)),
    Number(instant.slice(8, 10)),
  )
  const seconds =
    days * 86_400 +
    Number(instant.slice(11, 13)) * 3600 +
    Number(instant.slice(14, 16)) * 60 +
    Number(instant.slice(17, 19))
  return BigInt(seconds) * 1_000_000n + BigInt(instant.slice(20, 26))
}

/** Whole second without fraction, whole millisecond with three digits, otherwise six. */
export function printInThrees(instant: Instant): string {
  if (!instant.endsWith('000Z')) return instant
  return instant.endsWith('000000Z') ? `${instant.slice(0, 19)}Z` : `${instant.slice(0, 23)}Z`
}

/** As many fraction digits as needed, none for a whole second. */
export function printShortest(instant: Instant): string {
  let end = 26
  while (instant[end - 1] === '0') end -= 1
  return `${instant.slice(0, instant[end - 1] === '.' ? end - 1 : end)}Z`
}

/** Days since 1970-01-01 as an ISO date; undefined outside the years 0001 to 9999. */
export function printDate(daysSinceEpoch: number): string | undefined {
  const millis = daysSinceEpoch * MILLIS_PER_DAY
  if (millis < Number(MICROS_MIN / 1000n) || millis > Number(MICROS_MAX / 1000n)) return undefined
  return isoMillis(millis).slice(0, 10)
}

function isoMillis(millis: number): string {
  return new Date(millis).toISOString()
}

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1) return false
  if (day <= 28) return true
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  if (month === 2) return day === 29 && leap
  return day <= (month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31)
}

/** Days since 1970-01-01 of a date of the proleptic Gregorian calendar, by Hinnant's algorithm. */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

function two(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}
