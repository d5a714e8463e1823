import { isDeepStrictEqual } from 'node:util'
import { isObject, parseJsonExactly, printJsonExactly } from '../values/json.ts'
import { hasIntegerKey, parseMarked, printMarked, unmarkExcept } from '../values/key-order.ts'
import { encodeValue, RoundedNumberError, ValueError } from '../values/value.ts'
import { UpdateError } from './item-fields.ts'
import type { Position } from './position.ts'
import { type Item, readItem } from './update.ts'

export type Encoding = 'compact_json' | 'protobuf_json'

/** An update ready to be stored: checked, and encoded once in both forms. */
export type PreparedUpdate = Omit<Item, 'structure' | 'values'> & {
  /** Whether the compact form follows from the lossless one. */
  derived: boolean
  /** Where, in both forms, the offset's eighteen digits stand. */
  offsetAt: number
  compact: Uint8Array
  protobuf: Uint8Array
}

/**
 * Prepares one line of an import: an item in the lossless form with labels, or an object
 * `{"protobuf_json": item, "compact_json": item}` that holds both forms.
 */
export function prepareLine(line: string): PreparedUpdate {
  try {
    return prepareText(line)
  } catch (error) {
    // Walking through what JSON.parse could still read may overflow the stack.
    if (error instanceof RangeError) throw new UpdateError('The line', 'is nested too deeply')
    throw error
  }
}

function prepareText(line: string): PreparedUpdate {
  try {
    return prepareParsed(parseLine(line, JSON.parse), line)
  } catch (error) {
    // Rare enough that reading such a line twice costs nothing: an integer beyond 2^53.
    if (error instanceof RoundedNumberError) {
      return prepareParsed(parseLine(line, parseJsonExactly), line)
    }
    throw error
  }
}

function parseLine(line: string, parse: (text: string) => unknown): unknown {
  try {
    const item = parse(line)
    // A compact form is kept as received, so its numbers must be read exactly from the start.
    return parse === JSON.parse && isObject(item) && 'compact_json' in item
      ? parseJsonExactly(line)
      : item
  } catch (error) {
    throw new UpdateError('The line', `is not JSON: ${(error as Error).message}`)
  }
}

/** Where a line belongs in the history, without encoding it. */
export function readLinePosition(line: string): Position & { updateId: string } {
  const read = (parse: (text: string) => unknown) => {
    const source = parseLine(line, parse)
    return readItem(isObject(source) && 'protobuf_json' in source ? source.protobuf_json : source)
  }
  try {
    return read(JSON.parse)
  } catch (error) {
    if (error instanceof RoundedNumberError) return read(parseJsonExactly)
    throw error
  }
}

function prepareParsed(source: unknown, line: string): PreparedUpdate {
  if (!isObject(source) || !('protobuf_json' in source))
    return encodeItem(readItem(source), undefined)
  if (source.compact_json === undefined) {
    throw new UpdateError('compact_json', 'is missing beside protobuf_json')
  }
  const item = readItem(source.protobuf_json)
  return encodeItem(item, readReceived(source.compact_json, line, item))
}

/** A value of the compact form as it was received: its text in one line, and what it says. */
type Received = { text: string; value: unknown }

const VALUE_FIELDS = new Set(['create_arguments', 'choice_argument', 'exercise_result'])

function readReceived(source: unknown, line: string, lossless: Item): Received[] {
  const isOrdered = !hasIntegerKey(line)
  const compact = readItem(
    isOrdered ? source : (unmarkExcept(parseMarked(line), VALUE_FIELDS) as Forms).compact_json,
  )
  if (!isDeepStrictEqual(compact.structure, lossless.structure)) {
    throw new UpdateError(
      'compact_json',
      'differs from protobuf_json in more than its ledger values',
    )
  }
  return compact.values.map(({ value }) => {
    if (isOrdered) return { text: printJsonExactly(value), value }
    const text = printMarked(value)
    return { text, value: parseJsonExactly(text) }
  })
}

type Forms = { compact_json: unknown }

function encodeItem(item: Item, received: Received[] | undefined): PreparedUpdate {
  let protobuf = ''
  let compact = ''
  let derived = true
  for (let i = 0; i < item.values.length; i += 1) {
    const { field, value } = item.values[i] as Item['values'][number]
    const encoded = encodeField(field, value)
    const compactValue = chooseCompact(field, encoded.compact, received?.[i])
    if (compactValue !== encoded.compact) derived = false
    const structure = item.structure[i] as string
    protobuf += structure + encoded.lossless
    compact += structure + compactValue
  }
  const end = item.structure.at(-1) as string
  const protobufBytes = Buffer.from(protobuf + end)
  const { structure: _, values: __, ...kept } = item
  return {
    ...kept,
    derived,
    // Everything before it is a string, in which a quotation mark would be escaped.
    offsetAt: protobufBytes.indexOf('"offset":"') + '"offset":"'.length,
    compact: Buffer.from(compact + end),
    protobuf: protobufBytes,
  }
}

/** The canonical text of an item in the lossless form alone. */
export function printLossless(source: unknown): string {
  const item = readItem(source)
  const values = item.values.map(({ field, value }) => encodeField(field, value).lossless)
  return item.structure.map((piece, i) => piece + (values[i] ?? '')).join('')
}

function encodeField(field: string, value: unknown) {
  try {
    return encodeValue(value)
  } catch (error) {
    if (error instanceof ValueError)
      throw new UpdateError(field, `is not a ledger value: ${error.message.slice(0, -1)}`)
    throw error
  }
}

function chooseCompact(
  field: string,
  derived: string | undefined,
  received: Received | undefined,
): string {
  if (received === undefined) {
    if (derived !== undefined) return derived
    throw new UpdateError(
      field,
      'has record fields without labels, so its compact form cannot be derived; supply both forms as {"protobuf_json":…,"compact_json":…}',
    )
  }
  if (derived === undefined) return received.text
  const parsed = JSON.parse(derived)
  if (isDeepStrictEqual(parsed, received.value)) return derived
  if (agrees(parsed, received.value)) return received.text
  throw new UpdateError(field, 'differs between protobuf_json and compact_json')
}

/**
 * A source that knows the type prints trailing fields that are None as null, although the lossless
 * form leaves them out. Such extra nulls are the only difference that is no contradiction.
 */
function agrees(derived: unknown, received: unknown): boolean {
  if (Array.isArray(derived) && Array.isArray(received)) {
    return (
      derived.length === received.length && derived.every((value, i) => agrees(value, received[i]))
    )
  }
  if (!isObject(derived) || !isObject(received)) return isDeepStrictEqual(derived, received)
  for (const key of Object.keys(received)) {
    if (!Object.hasOwn(derived, key) && received[key] !== null) return false
  }
  return Object.keys(derived).every(
    (key) => Object.hasOwn(received, key) && agrees(derived[key], received[key]),
  )
}
