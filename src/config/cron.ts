/**
 * Quartz cron, as the deployed scheduler reads it: second, minute, hour, day of month, month, day of
 * week (1 is Sunday) and perhaps a year, in GMT. Exactly one of the two day fields is `?`. Words
 * after the seventh are ignored. Ranges may wrap around; a step may stand after `*`, alone, after a
 * number or after a range.
 */
export type CronSchedule = {
  /** Upper case and single blanks: the form that is stored and compared. */
  readonly text: string
  /** The first time strictly after the given one, or undefined when the schedule never fires again. */
  readonly next: (after: Date) => Date | undefined
}

/** The bound of the deployed scheduler. */
const TEXT_LENGTH_MAX = 300
/** 29 February comes at most eight years apart (1896, 1904). */
const YEARS_AHEAD_MAX = 8
const YEAR_MIN = 1970
const YEAR_MAX = 2299
const MS_PER_DAY = 86_400_000

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

type Field = { name: string; min: number; max: number; stepMax: number; names?: readonly string[] }
const SECOND: Field = { name: 'second', min: 0, max: 59, stepMax: 59 }
const MINUTE: Field = { name: 'minute', min: 0, max: 59, stepMax: 59 }
const HOUR: Field = { name: 'hour', min: 0, max: 23, stepMax: 23 }
const DAY: Field = { name: 'day of month', min: 1, max: 31, stepMax: 31 }
const MONTH: Field = { name: 'month', min: 1, max: 12, stepMax: 12, names: MONTHS }
const WEEKDAY: Field = { name: 'day of week', min: 1, max: 7, stepMax: 7, names: WEEKDAYS }
const YEAR: Field = { name: 'year', min: YEAR_MIN, max: YEAR_MAX, stepMax: YEAR_MAX }

class CronError extends Error {
  override name = 'CronError'
}

type DayTest = (date: Date) => boolean

export function parseCron(source: string): { value: CronSchedule } | { reason: string } {
  try {
    return { value: readCron(source) }
  } catch (error) {
    if (error instanceof CronError) return { reason: error.message }
    throw error
  }
}

function readCron(source: string): CronSchedule {
  if (source.length > TEXT_LENGTH_MAX) fail(`it is longer than ${TEXT_LENGTH_MAX} characters`)
  const fields = source
    .trim()
    .toUpperCase()
    .split(/[ \t]+/)
    .slice(0, 7)
  if (fields.length < 6) {
    fail(
      `it has ${fields[0] === '' ? 0 : fields.length} fields, and six or seven are needed, seconds first`,
    )
  }
  const [second, minute, hour, day, month, weekday, year] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
    string?,
  ]
  for (const [field, text] of [
    [SECOND, second],
    [MINUTE, minute],
    [HOUR, hour],
    [MONTH, month],
  ] as const) {
    if (text.includes('?')) fail(`'?' may stand only for a day, not for the ${field.name}`)
  }
  if ((day === '?') === (weekday === '?')) {
    fail(
      day === '?'
        ? "'?' may stand for only one of the two day fields"
        : "one of day of month and day of week must be '?'",
    )
  }
  const times = {
    seconds: readSet(second, SECOND),
    minutes: readSet(minute, MINUTE),
    hours: readSet(hour, HOUR),
  }
  const months = new Set(readSet(month, MONTH))
  const years = year === undefined || year === '*' ? undefined : new Set(readSet(year, YEAR))
  const isDay = day === '?' ? readWeekday(weekday) : readDay(day)
  return {
    text: fields.join(' '),
    next: (after) =>
      nextTime(after, times, (date) => months.has(date.getUTCMonth() + 1) && isDay(date), years),
  }
}

function nextTime(
  after: Date,
  times: { seconds: number[]; minutes: number[]; hours: number[] },
  isDay: DayTest,
  years: Set<number> | undefined,
): Date | undefined {
  const from = Math.floor(after.getTime() / 1000) * 1000 + 1000
  let day = Math.floor(from / MS_PER_DAY) * MS_PER_DAY
  const lastYear =
    years === undefined ? new Date(day).getUTCFullYear() + YEARS_AHEAD_MAX : Math.max(...years)
  for (; ; day += MS_PER_DAY) {
    const date = new Date(day)
    if (date.getUTCFullYear() > lastYear) return undefined
    if (years !== undefined && !years.has(date.getUTCFullYear())) continue
    if (!isDay(date)) continue
    for (const hour of times.hours) {
      const hourStart = day + hour * 3_600_000
      if (hourStart + 3_600_000 <= from) continue
      for (const minute of times.minutes) {
        const minuteStart = hourStart + minute * 60_000
        if (minuteStart + 60_000 <= from) continue
        for (const second of times.seconds) {
          const time = minuteStart + second * 1000
          if (time >= from) return new Date(time)
        }
      }
    }
  }
}

function readDay(text: string): DayTest {
  const last = /^L(?:-(\d{1,2}))?(W)?$/.exec(text)
  if (last !== null) {
    const back = Number(last[1] ?? 0)
    if (back > 30) fail('the day of month can lie at most 30 days before the last')
    return (date) => {
      const wanted = daysInMonth(date) - back
      return date.getUTCDate() === (last[2] === undefined ? wanted : nearestWorkday(date, wanted))
    }
  }
  const near = /^(\d{1,2})W$/.exec(text)
  if (near !== null) {
    const wanted = readNumber(near[1] as string, DAY)
    return (date) =>
      wanted <= daysInMonth(date) && date.getUTCDate() === nearestWorkday(date, wanted)
  }
  const days = new Set(readSet(text, DAY))
  return (date) => days.has(date.getUTCDate())
}

function readWeekday(text: string): DayTest {
  if (text === 'L') return (date) => date.getUTCDay() === 6
  const last = /^([A-Z]{3}|\d)L$/.exec(text)
  if (last !== null) {
    const wanted = readNumber(last[1] as string, WEEKDAY)
    return (date) => date.getUTCDay() + 1 === wanted && date.getUTCDate() > daysInMonth(date) - 7
  }
  const nth = /^([A-Z]{3}|\d)#(\d)$/.exec(text)
  if (nth !== null) {
    const wanted = readNumber(nth[1] as string, WEEKDAY)
    const count = Number(nth[2])
    if (count < 1 || count > 5) fail("the number after '#' must be from 1 to 5")
    return (date) => date.getUTCDay() + 1 === wanted && Math.ceil(date.getUTCDate() / 7) === count
  }
  const days = new Set(readSet(text, WEEKDAY))
  return (date) => days.has(date.getUTCDay() + 1)
}

function readSet(text: string, field: Field): number[] {
  const values = new Set<number>()
  for (const part of text.split(',')) for (const value of readPart(part, field)) values.add(value)
  return [...values].sort((a, b) => a - b)
}

function readPart(part: string, field: Field): number[] {
  const match = /^(\*|\w+)?(?:-(\w+))?(?:\/(\d+))?$/.exec(part)
  if (match === null || part === '') fail(`'${part}' is no ${field.name}`)
  const [, from, to, step] = match as RegExpExecArray
  if (from === undefined && step === undefined) fail(`'${part}' is no ${field.name}`)
  if (to !== undefined && (from === undefined || from === '*'))
    fail(`'${part}' is no ${field.name}`)
  const everything = from === undefined || from === '*'
  if (step !== undefined && Number(step) < 1) fail(`a step of ${step} never moves on`)
  if (step !== undefined && everything && Number(step) > field.stepMax) {
    fail(`a step of ${step} is too large for the ${field.name}, at most ${field.stepMax}`)
  }
  const start = everything ? field.min : readNumber(from, field)
  const end =
    to !== undefined ? readNumber(to, field) : everything || step !== undefined ? field.max : start
  return rangeOf(start, end, Number(step ?? 1), field)
}

function rangeOf(start: number, end: number, step: number, field: Field): number[] {
  const size = field.max - field.min + 1
  const length = end >= start ? end - start : end - start + size
  const values: number[] = []
  for (let offset = 0; offset <= length; offset += step) {
    values.push(field.min + ((start - field.min + offset) % size))
  }
  return values
}

function readNumber(text: string, field: Field): number {
  const named = field.names?.indexOf(text) ?? -1
  const value = named === -1 ? Number(text) : named + field.min
  if (!/^\d+$/.test(text) && named === -1) fail(`'${text}' is no ${field.name}`)
  if (value < field.min || value > field.max) {
    fail(`the ${field.name} ${text} is not between ${field.min} and ${field.max}`)
  }
  return value
}

function daysInMonth(date: Date): number {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
}

function nearestWorkday(date: Date, wanted: number): number {
  const weekday = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), wanted)).getUTCDay()
  if (weekday === 6) return wanted === 1 ? wanted + 2 : wanted - 1
  if (weekday === 0) return wanted === daysInMonth(date) ? wanted - 2 : wanted + 1
  return wanted
}

function fail(reason: string): never {
  throw new CronError(reason)
}
