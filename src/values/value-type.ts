import { type Decimal, parseDecimal, printDecimal } from './decimal.ts'
import {
  type Instant,
  instantFromMicros,
  microsOf,
  parseInstant,
  printInThrees,
} from './instant.ts'
import { describeJson, isObject } from './json.ts'
import { INT64_MAX, INT64_MIN } from './value.ts'

/**
 * The type of a ledger value: how it is read from the JSON that applications send, how it is held in
 * the lossless form with labels, and how it is shown to applications. The methods are written as
 * methods so that a type of something is a type of anything.
 */
export type ValueType<T> = {
  readonly isOptional?: boolean
  /** Reads what an application sent; `at` is where it stands. */
  read(json: unknown, at: string): T
  toLossless(value: T): unknown
  /** The store holds what `toLossless` made, so nothing is checked. */
  fromLossless(lossless: unknown): T
  toJson(value: T): unknown
}

export type ValueOf<V> = V extends ValueType<infer T> ? T : never

/** A value of another type than declared; `path` is where inside it. */
export class TypeMismatch extends Error {
  override name = 'TypeMismatch'
  readonly path: string
  constructor(path: string, reason: string) {
    super(`${path} ${reason}`)
    this.path = path
  }
}

type Lossless = Record<string, unknown>

export const text = scalar('text', 'a string', (json) => json)
export const party = scalar('party', 'a party id', (json) => (json === '' ? undefined : json))
export const contractId = scalar('contractId', 'a contract id', (json) =>
  /^(?:[0-9a-f]{2})+$/.test(json) ? json : undefined,
)

export const unit: ValueType<Record<string, never>> = {
  read(json, at) {
    if (!isObject(json) || Object.keys(json).length > 0) refuse(at, 'must be {}', json)
    return {}
  },
  toLossless: () => ({ unit: {} }),
  fromLossless: () => ({}),
  toJson: () => ({}),
}

export const bool: ValueType<boolean> = {
  read(json, at) {
    if (typeof json !== 'boolean') refuse(at, 'must be true or false', json)
    return json
  },
  toLossless: (value) => ({ bool: value }),
  fromLossless: (lossless) => (lossless as { bool: boolean }).bool,
  toJson: (value) => value,
}

export const int64: ValueType<bigint> = {
  read(json, at) {
    const digits = typeof json === 'number' || typeof json === 'bigint' ? String(json) : json
    if (typeof digits !== 'string' || !/^-?\d{1,19}$/.test(digits)) {
      refuse(at, 'must be a whole number of 64 bits, as a string', json)
    }
    const value = BigInt(digits)
    if (value < INT64_MIN || value > INT64_MAX) refuse(at, 'does not fit 64 bits', json)
    return value
  },
  toLossless: (value) => ({ int64: String(value) }),
  fromLossless: (lossless) => BigInt((lossless as { int64: string }).int64),
  toJson: String,
}

export const numeric: ValueType<Decimal> = {
  read(json, at) {
    const value = typeof json === 'string' ? parseDecimal(json) : undefined
    if (value === undefined) {
      refuse(at, 'must be a decimal number with at most ten places, as a string', json)
    }
    return value
  },
  toLossless: (value) => ({ numeric: printDecimal(value) }),
  fromLossless: (lossless) => parseDecimal((lossless as { numeric: string }).numeric) as Decimal,
  toJson: printDecimal,
}

/** Microseconds since 1970. */
export const timestamp: ValueType<bigint> = {
  read(json, at) {
    const instant = typeof json === 'string' ? parseInstant(json) : undefined
    if (instant === undefined) refuse(at, 'must be an ISO-8601 time with Z', json)
    return microsOf(instant)
  },
  toLossless: (value) => ({ timestamp: String(value) }),
  fromLossless: (lossless) => BigInt((lossless as { timestamp: string }).timestamp),
  toJson: (value) => printInThrees(instantFromMicros(value) as Instant),
}

/** Null is none. Optionals of optionals are not supported: no template has one. */
export function optional<T>(inner: ValueType<T>): ValueType<T | null> {
  return {
    isOptional: true,
    read: (json, at) => (json === null || json === undefined ? null : inner.read(json, at)),
    toLossless: (value) => ({
      optional: value === null ? {} : { value: inner.toLossless(value) },
    }),
    fromLossless(lossless) {
      const { value } = (lossless as { optional: { value?: unknown } }).optional
      return value === undefined ? null : inner.fromLossless(value)
    },
    toJson: (value) => (value === null ? null : inner.toJson(value)),
  }
}

export function list<T>(element: ValueType<T>): ValueType<T[]> {
  return {
    read(json, at) {
      if (!Array.isArray(json)) refuse(at, 'must be a list', json)
      return json.map((item, index) => element.read(item, `${at}[${index}]`))
    },
    toLossless: (values) => ({
      list: values.length === 0 ? {} : { elements: values.map((v) => element.toLossless(v)) },
    }),
    fromLossless: (lossless) =>
      ((lossless as { list: { elements?: unknown[] } }).list.elements ?? []).map((item) =>
        element.fromLossless(item),
      ),
    toJson: (values) => values.map((value) => element.toJson(value)),
  }
}

/** Keys are texts; entries are kept in the order of the keys. */
export function textMap<T>(inner: ValueType<T>): ValueType<Record<string, T>> {
  const sorted = (map: Record<string, T>) =>
    Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return {
    read(json, at) {
      if (!isObject(json)) refuse(at, 'must be an object', json)
      return Object.fromEntries(
        Object.entries(json).map(([key, item]) => [key, inner.read(item, `${at}.${key}`)]),
      )
    },
    toLossless(map) {
      const entries = sorted(map).map(([key, value]) => ({
        ...(key === '' ? {} : { key }),
        value: inner.toLossless(value),
      }))
      return { textMap: entries.length === 0 ? {} : { entries } }
    },
    fromLossless(lossless) {
      const { entries = [] } = (
        lossless as { textMap: { entries?: { key?: string; value: unknown }[] } }
      ).textMap
      return Object.fromEntries(
        entries.map(({ key = '', value }) => [key, inner.fromLossless(value)]),
      )
    },
    toJson: (map) =>
      Object.fromEntries(sorted(map).map(([key, value]) => [key, inner.toJson(value)])),
  }
}

type Fields = Record<string, ValueType<unknown>>
export type RecordOf<F> = { -readonly [K in keyof F]: ValueOf<F[K]> }

export function record<F extends Fields>(fields: F): ValueType<RecordOf<F>> {
  const entries = Object.entries(fields)
  return {
    read(json, at) {
      if (!isObject(json)) refuse(at, 'must be an object', json)
      for (const key of Object.keys(json)) {
        if (!Object.hasOwn(fields, key)) {
          throw new TypeMismatch(`${at}.${key}`, `is not a field; the fields are ${names(fields)}`)
        }
      }
      return mapFields((name, type) => {
        const value = Object.hasOwn(json, name) ? json[name] : undefined
        if (value === undefined && !type.isOptional) {
          throw new TypeMismatch(`${at}.${name}`, 'is missing')
        }
        return type.read(value, `${at}.${name}`)
      })
    },
    toLossless: (value) => ({
      record:
        entries.length === 0
          ? {}
          : {
              fields: entries.map(([label, type]) => ({
                label,
                value: type.toLossless((value as Lossless)[label]),
              })),
            },
    }),
    fromLossless(lossless) {
      const { fields: held = [] } = (lossless as { record: { fields?: { value: unknown }[] } })
        .record
      return mapFields((_name, type, index) => type.fromLossless(held[index]?.value))
    },
    toJson: (value) => mapFields((name, type) => type.toJson((value as Lossless)[name])),
  }

  function mapFields(make: (name: string, type: ValueType<unknown>, index: number) => unknown) {
    const made: Lossless = {}
    entries.forEach(([name, type], index) => {
      made[name] = make(name, type, index)
    })
    return made as RecordOf<F>
  }
}

/** One of several constructors, each with its value. */
export function variant<F extends Fields>(
  constructors: F,
): ValueType<{ [K in keyof F & string]: { tag: K; value: ValueOf<F[K]> } }[keyof F & string]> {
  type Tagged = { [K in keyof F & string]: { tag: K; value: ValueOf<F[K]> } }[keyof F & string]
  const typeOf = (tag: string) => constructors[tag] as ValueType<unknown>
  return {
    read(json, at) {
      if (!isObject(json)) refuse(at, 'must be an object with tag and value', json)
      const { tag, value } = json
      if (typeof tag !== 'string' || !Object.hasOwn(constructors, tag)) {
        refuse(`${at}.tag`, `must be one of ${names(constructors)}`, tag)
      }
      return { tag, value: typeOf(tag).read(value, `${at}.value`) } as Tagged
    },
    toLossless: ({ tag, value }) => ({
      variant: { constructor: tag, value: typeOf(tag).toLossless(value) },
    }),
    fromLossless(lossless) {
      const { constructor: tag, value } = (
        lossless as { variant: { constructor: string; value: unknown } }
      ).variant
      return { tag, value: typeOf(tag).fromLossless(value) } as Tagged
    },
    toJson: ({ tag, value }) => ({ tag, value: typeOf(tag).toJson(value) }),
  }
}

export function enumeration<const C extends string>(...constructors: C[]): ValueType<C> {
  return {
    read(json, at) {
      if (!constructors.includes(json as C)) {
        refuse(at, `must be one of ${constructors.join(', ')}`, json)
      }
      return json as C
    },
    toLossless: (value) => ({ enum: { constructor: value } }),
    fromLossless: (lossless) => (lossless as { enum: { constructor: C } }).enum.constructor,
    toJson: (value) => value,
  }
}

function scalar(
  kind: string,
  wanted: string,
  accept: (json: string) => string | undefined,
): ValueType<string> {
  return {
    read(json, at) {
      const value = typeof json === 'string' && json.isWellFormed() ? accept(json) : undefined
      if (value === undefined || value.includes('\0')) refuse(at, `must be ${wanted}`, json)
      return value
    },
    toLossless: (value) => ({ [kind]: value }),
    fromLossless: (lossless) => (lossless as Record<string, string>)[kind] as string,
    toJson: (value) => value,
  }
}

function names(fields: Fields): string {
  return Object.keys(fields).join(', ')
}

const EXCERPT_CHARACTERS_MAX = 40

function refuse(at: string, rule: string, found: unknown): never {
  const what =
    typeof found === 'string' && found.length <= EXCERPT_CHARACTERS_MAX
      ? JSON.stringify(found)
      : describeJson(found)
  throw new TypeMismatch(at, `${rule}, not ${what}`)
}
