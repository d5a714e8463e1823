/**
 * JSON whose numbers are exact. JSON.parse rounds integers beyond 2^53; here they become bigints,
 * and other numbers that a double cannot hold keep their text and print as they were written.
 */
export function parseJsonExactly(text: string): unknown {
  return JSON.parse(text, exactNumber)
}

type ReviverContext = { source?: string }

/** Longer ones are no integers of ours, and making bigints of a million digits takes long. */
const PLAIN_INTEGER = /^-?\d{1,40}$/

function exactNumber(_key: string, value: unknown, context?: ReviverContext): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined) return value
  if (Number.isSafeInteger(value) && /^-?\d+$/.test(source)) return value
  if (PLAIN_INTEGER.test(source)) return BigInt(source)
  return isExactDouble(value, source) ? value : rawNumber(source)
}

/** 10.0, 1e2 and 0.5 are held exactly by a double; 0.1000000000000000055 is not what prints again. */
function isExactDouble(value: number, source: string): boolean {
  if (Number.isSafeInteger(value)) return exactInteger(source) === BigInt(value)
  return !Number.isInteger(value) && JSON.stringify(value) === source
}

/** Zero digits a number's exponent may add before it stops being a plausible integer. */
const EXPONENT_MAX = 40

/** The integer that a JSON number such as `10.0` or `1e2` denotes, or undefined when it is none. */
function exactInteger(source: string): bigint | undefined {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source)
  if (match === null) return undefined
  const [, sign, whole, fraction = '', exponentText = '0'] = match
  const exponent = Number(exponentText)
  if (Math.abs(exponent) > EXPONENT_MAX) return undefined
  const shift = exponent - fraction.length
  const digits = `${whole}${fraction}`
  if (shift >= 0) return BigInt(`${sign}${digits}${'0'.repeat(shift)}`)
  const dropped = digits.slice(shift)
  if (/[^0]/.test(dropped)) return undefined
  return BigInt(`${sign}${digits.slice(0, shift) || '0'}`)
}

/** A number that JSON.stringify prints exactly as given. */
function rawNumber(source: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(source)
}

function isRawNumber(value: unknown): boolean {
  return (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value)
}

/** JSON text of what `parseJsonExactly` read, its numbers as they were written. */
export function printJsonExactly(value: unknown): string {
  return JSON.stringify(value, (_key, part) =>
    typeof part === 'bigint' ? rawNumber(String(part)) : part,
  )
}

// Characters that JSON must escape, and surrogates, which JSON.stringify escapes when they are alone.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that JSON escapes
const NEEDS_ESCAPE = /["\\\u0000-\u001f\ud800-\udfff]/

/** JSON text of a string; several times quicker than JSON.stringify for the usual plain ones. */
export function quote(text: string): string {
  return NEEDS_ESCAPE.test(text) ? JSON.stringify(text) : `"${text}"`
}

/** A word for what was found, for messages: "a number", "null", "an array". */
export function describeJson(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (isRawNumber(value)) return 'a number'
  switch (typeof value) {
    case 'string':
      return 'a string'
    case 'boolean':
      return 'a boolean'
    case 'number':
    case 'bigint':
      return 'a number'
    default:
      return 'an object'
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
