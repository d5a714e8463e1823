export type DurationReading = { value: number } | { reason: string }

/** Digits and one of s, m, h: the form of the charts. Returns milliseconds. */
export const CHART_DURATION = /^[0-9]+[smh]$/

const CHART_UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000 } as const

export function parseChartDuration(text: string): DurationReading {
  if (!CHART_DURATION.test(text)) return { reason: 'it is not digits followed by s, m or h' }
  const unit = text.slice(-1) as keyof typeof CHART_UNIT_MS
  const value = Number(text.slice(0, -1)) * CHART_UNIT_MS[unit]
  return Number.isSafeInteger(value) ? { value } : { reason: 'it is too long' }
}

/** Nanoseconds per unit, as written in application durations; units are case-sensitive. */
const UNIT_NS: Readonly<Record<string, bigint>> = Object.fromEntries(
  (
    [
      [86_400_000_000_000n, 'd day days'],
      [3_600_000_000_000n, 'h hr hrs hour hours'],
      [60_000_000_000n, 'm min mins minute minutes'],
      [1_000_000_000n, 's sec secs second seconds'],
      [1_000_000n, 'ms milli millis millisecond milliseconds'],
      [1000n, 'µs micro micros microsecond microseconds'],
      [1n, 'ns nano nanos nanosecond nanoseconds'],
    ] as const
  ).flatMap(([ns, names]) => names.split(' ').map((name) => [name, ns])),
)

/** Beyond this the exact arithmetic below would build numbers without bound. */
const EXPONENT_MAX = 30
/** The largest duration that the deployed applications can hold: 2^63 - 1 nanoseconds, 292 years. */
const NS_MAX = 2n ** 63n - 1n

export type AppDuration = { ns: bigint } | { infinite: 'positive' | 'negative' }

/**
 * Application durations: a decimal number and a unit, blanks anywhere, for example `5m`, `25 hours`,
 * `36.5h`. Exact, so that "a whole number of seconds" can be told.
 */
export function parseAppDuration(text: string): AppDuration | { reason: string } {
  const bare = text.replace(/\s+/g, '')
  if (/^(?:Inf|PlusInf|\+Inf|Duration\.Inf)$/.test(bare)) return { infinite: 'positive' }
  if (/^(?:-Inf|MinusInf|Duration\.MinusInf)$/.test(bare)) return { infinite: 'negative' }
  const match = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?([a-zµ]+)$/i.exec(bare)
  if (match === null) {
    return /^[+-]?[\d.]+$/.test(bare)
      ? { reason: 'it has no unit' }
      : { reason: 'it is not a number followed by a unit' }
  }
  const [, sign, whole = '', fractionAfter, fractionAlone, exponentText = '0', unit = ''] = match
  const unitNs = Object.hasOwn(UNIT_NS, unit) ? UNIT_NS[unit] : undefined
  if (unitNs === undefined) return { reason: `'${unit}' is no unit` }
  const exponent = Number(exponentText)
  const fraction = fractionAfter ?? fractionAlone ?? ''
  if (Math.abs(exponent) > EXPONENT_MAX || whole.length + fraction.length > 40)
    return { reason: 'it is too long' }
  const scale = exponent - fraction.length
  const digits = BigInt(whole + fraction) * unitNs
  const ns = scale >= 0 ? digits * 10n ** BigInt(scale) : digits / 10n ** BigInt(-scale)
  if (ns > NS_MAX) return { reason: 'it is longer than 292 years' }
  return { ns: sign === '-' ? -ns : ns }
}

export function parseNonNegativeDuration(text: string): DurationReading {
  const duration = parseAppDuration(text)
  if ('reason' in duration) return duration
  if ('infinite' in duration) return { reason: 'it must be finite' }
  if (duration.ns < 0n) return { reason: 'it must not be negative' }
  return { value: Number(duration.ns) / 1e6 }
}

/** Positive, finite, a whole number of seconds. */
export function parseWholeSecondsDuration(text: string): DurationReading {
  const duration = parseAppDuration(text)
  if ('reason' in duration) return duration
  if ('infinite' in duration) return { reason: 'it must be finite' }
  if (duration.ns <= 0n) return { reason: 'it must be longer than zero' }
  if (duration.ns % 1_000_000_000n !== 0n) return { reason: 'it must be a whole number of seconds' }
  return { value: Number(duration.ns / 1_000_000n) }
}

/** A time limit, where `Inf` means none. */
export function parseTimeLimit(text: string): DurationReading {
  const duration = parseAppDuration(text)
  if ('reason' in duration) return duration
  if ('infinite' in duration) {
    return duration.infinite === 'positive'
      ? { value: Infinity }
      : { reason: 'it must not be negative' }
  }
  if (duration.ns < 0n) return { reason: 'it must not be negative' }
  return { value: Number(duration.ns) / 1e6 }
}

/** Milliseconds as a reader would say them: `30s`, `48h`, `90m`. */
export function printDuration(ms: number): string {
  if (!Number.isFinite(ms)) return 'Inf'
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
  ] as const) {
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}
