import { parseCron } from './cron.ts'
import {
  CHART_DURATION,
  parseChartDuration,
  parseNonNegativeDuration,
  parseTimeLimit,
  parseWholeSecondsDuration,
} from './duration.ts'

export type Reading = { value: unknown } | { reason: string }
export type YamlType = 'string' | 'integer' | 'number' | 'boolean'
export type JsonSchema = { readonly [name: string]: unknown }

/**
 * What a value may be. Text comes from a variable or from HOCON as it is; a YAML value must first be
 * of one of the YAML types.
 */
export type Kind = {
  readonly name: string
  /** Completes "allowed is …". */
  readonly allowed: string
  readonly yaml: readonly YamlType[]
  readonly fromText: (text: string) => Reading
  readonly schema: JsonSchema
}

const HTTP_URL =
  /^https?:\/\/[^\s/?#@:[\]<>"]+(?::\d{1,5})?(?:[/?#]\S*)?$|^https?:\/\/\[[\da-fA-F:.]+\](?::\d{1,5})?(?:[/?#]\S*)?$/
const PARTY_ID = /^(?:(?!::)[A-Za-z0-9:\-_ ]){1,185}::(?:(?!::)[A-Za-z0-9:\-_ ]){1,68}$/
/** The namespace of a real party: a multihash prefix and 64 hex digits. */
export const REAL_NAMESPACE = /::1220[0-9a-f]{64}$/
export const PARTY_HINT = /^[a-zA-Z0-9_]+-[a-zA-Z0-9_]+-[0-9]+$/
const NODE_IDENTIFIER = /^(?:(?!::)[A-Za-z0-9:\-_ ]){1,185}$/
/** The same without look-ahead, which the validators of cluster tools do not know. */
const PARTY_ID_SCHEMA =
  '^:?[A-Za-z0-9_ -]+(:[A-Za-z0-9_ -]+)*::(:?[A-Za-z0-9_ -]+(:[A-Za-z0-9_ -]+)*:?|:)$'
const IDENTIFIER_SCHEMA = '^(:?[A-Za-z0-9_ -]+(:[A-Za-z0-9_ -]+)*:?|:)$'
const QUANTITY = /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$/
const POSTGRES_SIZE = /^[0-9]+(kB|MB|GB|TB)$/
const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$|^\[?[\da-fA-F:]+\]?$|^\/\S*$/
const SQL_NAME = /^[A-Za-z_][A-Za-z0-9_$-]*$/
const LEDGER_DECIMAL = /^\d{1,28}(?:\.\d{1,10})?$/
const DECIMAL = /^\d+(?:\.\d+)?(?:[eE][+]?\d{1,3})?$/
/** Other notations that JavaScript takes, such as hexadecimal, are no numbers to the deployed applications. */
const SIGNED_DECIMAL = /^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/

/** Names of PostgreSQL are cut beyond this. */
const SQL_NAME_LENGTH_MAX = 63
const PARTY_ID_LENGTH_MAX = 255
const INT64_MAX = 2n ** 63n - 1n

function textKind(
  name: string,
  allowed: string,
  read: (text: string) => Reading,
  schema: JsonSchema = {},
): Kind {
  return { name, allowed, yaml: ['string'], fromText: read, schema: { type: 'string', ...schema } }
}

function patternKind(name: string, allowed: string, pattern: RegExp, reason: string): Kind {
  return textKind(name, allowed, (text) => (pattern.test(text) ? { value: text } : { reason }), {
    pattern: pattern.source,
  })
}

export const text = textKind(
  'text',
  'a text that is not empty',
  (value) => (value === '' ? { reason: 'it is empty' } : { value }),
  { minLength: 1 },
)

export const anyText = textKind('any text', 'a text', (value) => ({ value }))

export const boolean: Kind = {
  name: 'boolean',
  allowed: 'true or false, without quotes',
  yaml: ['boolean'],
  fromText: (value) => {
    const word = value.toLowerCase()
    if (['true', 'yes', 'on'].includes(word)) return { value: true }
    if (['false', 'no', 'off'].includes(word)) return { value: false }
    return { reason: 'it is neither true nor false' }
  },
  schema: { type: 'boolean' },
}

export function integer(min: number, max: number, what = 'an integer'): Kind {
  return {
    name: 'integer',
    allowed:
      max === Number.MAX_SAFE_INTEGER
        ? `${what}, at least ${min}`
        : `${what} from ${min} to ${max}`,
    yaml: ['integer'],
    fromText: (value) => {
      const number = Number(value)
      if (!SIGNED_DECIMAL.test(value)) return { reason: 'it is not a number' }
      if (!Number.isSafeInteger(number)) return { reason: 'it is not an integer' }
      if (number < min) return { reason: `it is below ${min}` }
      if (number > max) return { reason: `it is above ${max}` }
      return { value: number }
    },
    schema: {
      type: 'integer',
      minimum: min,
      ...(max === Number.MAX_SAFE_INTEGER ? {} : { maximum: max }),
    },
  }
}

export const port = {
  ...integer(0, 65535),
  name: 'port',
  allowed: 'a port, an integer from 0 to 65535',
}

export const count = integer(0, Number.MAX_SAFE_INTEGER)
export const positiveCount = integer(1, Number.MAX_SAFE_INTEGER)

/** Money stays a decimal text: no floating point touches it. */
export const decimal: Kind = {
  name: 'decimal',
  allowed: 'a number that is not negative',
  yaml: ['number', 'string'],
  fromText: (value) => {
    if (/^-/.test(value)) return { reason: 'it is negative' }
    return DECIMAL.test(value) ? { value: plainDecimal(value) } : { reason: 'it is not a number' }
  },
  schema: { type: ['number', 'string'], minimum: 0, pattern: DECIMAL.source },
}

/** An amount as the ledger holds it. */
export const ledgerDecimal: Kind = {
  name: 'ledger decimal',
  allowed: 'a number that is not negative, with at most ten decimal places',
  yaml: ['number', 'string'],
  fromText: (value) =>
    LEDGER_DECIMAL.test(value)
      ? { value }
      : { reason: 'it is not a number with at most ten decimal places' },
  schema: { type: ['number', 'string'], minimum: 0, pattern: LEDGER_DECIMAL.source },
}

function plainDecimal(value: string): string {
  const [mantissa = '', exponent = '0'] = value.toLowerCase().replace('+', '').split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = Number(exponent)
  const digits = fraction.padEnd(shift, '0')
  const integerPart = (whole + digits.slice(0, shift)).replace(/^0+(?=\d)/, '')
  const rest = digits.slice(shift).replace(/0+$/, '')
  return rest === '' ? integerPart : `${integerPart}.${rest}`
}

export const migrationId: Kind = {
  name: 'migration id',
  allowed: 'digits only, for example "3"',
  yaml: ['integer', 'string'],
  fromText: (value) => {
    if (!/^[0-9]{1,40}$/.test(value)) return { reason: 'it is not a non-negative integer' }
    const id = BigInt(value)
    return id <= INT64_MAX ? { value: id } : { reason: 'it does not fit into 64 bits' }
  },
  schema: { type: ['integer', 'string'], minimum: 0, pattern: '^[0-9]+$' },
}

function readHttpUrl(value: string): Reading {
  if (value === '') return { reason: 'it is empty' }
  if (/[<>]|^[A-Z_]+$/.test(value)) return { reason: 'it is a placeholder that was not replaced' }
  if (!/^https?:\/\//.test(value)) return { reason: 'it does not begin with http:// or https://' }
  if (/^https?:\/\/[^/?#]*@/.test(value))
    return { reason: 'it holds a user name or password, which is not supported' }
  if (!HTTP_URL.test(value) || !URL.canParse(value)) return { reason: 'it has no valid host' }
  return { value }
}

export const httpUrl = textKind('URL', 'an absolute http or https URL with a host', readHttpUrl, {
  format: 'http-url',
})

export const partyId = textKind(
  'party id',
  'a party id, `<identifier>::<namespace>`',
  (value) => {
    if (value.length > PARTY_ID_LENGTH_MAX)
      return { reason: `it is longer than ${PARTY_ID_LENGTH_MAX} characters` }
    if (!value.includes('::'))
      return { reason: "it has no '::', so it is a hint and not a whole party id" }
    if (value.split('::').length > 2)
      return { reason: "it has a second '::', like the id of a participant or a domain" }
    return PARTY_ID.test(value)
      ? { value }
      : {
          reason: 'its identifier or its namespace is empty, too long or holds a foreign character',
        }
  },
  { format: 'party-id', pattern: PARTY_ID_SCHEMA, maxLength: PARTY_ID_LENGTH_MAX },
)

export const partyHint = patternKind(
  'party hint',
  '`<organization>-<function>-<enumerator>`: letters, digits and underscores, two dashes, a number last',
  PARTY_HINT,
  'it is not of the form <organization>-<function>-<enumerator>',
)

export const nodeIdentifier = textKind(
  'identifier',
  "1 to 185 letters, digits, blanks, '-', '_' or ':', without '::'",
  (value) =>
    NODE_IDENTIFIER.test(value)
      ? { value }
      : { reason: 'it is empty, too long or holds a character that a participant id cannot hold' },
  { pattern: IDENTIFIER_SCHEMA, maxLength: 185 },
)

export const chartDuration = textKind(
  'duration',
  'digits followed by s, m or h, as text',
  parseChartDuration,
  { pattern: CHART_DURATION.source },
)
export const duration = textKind(
  'duration',
  'a number with a unit (ns, µs, ms, s, m, h, d or their long names)',
  parseNonNegativeDuration,
  { format: 'duration-non-negative' },
)
export const wholeSeconds = textKind(
  'duration in whole seconds',
  'a positive number with a unit (s, m, h, d or their long names), a whole number of seconds',
  parseWholeSecondsDuration,
  { format: 'duration-whole-seconds' },
)
export const timeLimit = textKind(
  'time limit',
  'a number with a unit (ms, s, m, h, d or their long names), or Inf',
  parseTimeLimit,
  { format: 'duration-or-inf' },
)

export const cron = textKind(
  'cron',
  'a Quartz cron expression: second, minute, hour, day of month, month, day of week and perhaps a year, one of the two days being ?',
  parseCron,
  { format: 'quartz-cron' },
)

export const quantity = patternKind(
  'size',
  'a quantity such as 50Gi, 2Ti or 500G, as text',
  QUANTITY,
  'it is no quantity that a cluster understands',
)
export const postgresSize = patternKind(
  'size',
  'an integer with kB, MB, GB or TB',
  POSTGRES_SIZE,
  'it is no PostgreSQL size',
)

export const hostName = patternKind(
  'host',
  'a host name or an address, without scheme and port',
  HOST_NAME,
  'it is no host name',
)

export const sqlName = textKind(
  'database name',
  `letters, digits and underscores, at most ${SQL_NAME_LENGTH_MAX} characters`,
  (value) =>
    value.length <= SQL_NAME_LENGTH_MAX && SQL_NAME.test(value)
      ? { value }
      : { reason: 'it is no name for a database object' },
  { pattern: SQL_NAME.source, maxLength: SQL_NAME_LENGTH_MAX },
)

export function oneOf(...words: readonly string[]): Kind {
  return textKind(
    'choice',
    `one of ${words.join(', ')}`,
    (value) => (words.includes(value) ? { value } : { reason: 'it is none of the choices' }),
    { enum: words },
  )
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'off']
export const logLevel = textKind(
  'log level',
  `one of ${LOG_LEVELS.join(', ')}, in any case`,
  (value) =>
    LOG_LEVELS.includes(value.toLowerCase())
      ? { value: value.toLowerCase() }
      : { reason: 'it is no log level' },
  { format: 'log-level' },
)

export const tlsVersion = textKind('TLS version', 'TLSv1.2 or TLSv1.3', (value) => {
  if (value === 'TLSv1.2' || value === 'TLSv1.3') return { value }
  return /^(?:TLSv1|TLSv1\.1|SSLv?\d)$/.test(value)
    ? { reason: 'it is a version that is no longer safe' }
    : { reason: 'it is not the name of a TLS version' }
})

const BYTE_UNITS = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
} as const
const BYTES = /^(\d+)(|k|M|G|Ki|Mi|Gi)$/
export const bytes: Kind = {
  name: 'bytes',
  allowed: 'a number of bytes, or text such as 64Mi',
  yaml: ['integer', 'string'],
  fromText: (value) => {
    const match = BYTES.exec(value)
    if (match === null) return { reason: 'it is no number of bytes' }
    const size = Number(match[1]) * BYTE_UNITS[match[2] as keyof typeof BYTE_UNITS]
    return Number.isSafeInteger(size) ? { value: size } : { reason: 'it is too large' }
  },
  schema: { type: ['integer', 'string'], minimum: 0, pattern: BYTES.source },
}

/** Known keys whose inside is not ours to judge, such as the affinity of a pod. */
export const anything: Kind = {
  name: 'anything',
  allowed: 'anything',
  yaml: ['string', 'integer', 'number', 'boolean'],
  fromText: (value) => ({ value }),
  schema: {},
}

/** The formats of the JSON Schemas that a pattern cannot tell, for validators that take functions. */
export const FORMATS: Readonly<Record<string, Kind>> = {
  'http-url': httpUrl,
  'party-id': partyId,
  'duration-non-negative': duration,
  'duration-whole-seconds': wholeSeconds,
  'duration-or-inf': timeLimit,
  'quartz-cron': cron,
  'log-level': logLevel,
}
