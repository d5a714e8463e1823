import assert from 'node:assert/strict'
import type { Encoding } from './encode.ts'
import type { FrameIndex } from './frame.ts'

/**
 * Updates are stored as /v1/updates prints them. The other versions are made from those bytes by
 * cutting and joining, once for a frame, and then kept in the cache:
 *
 * - v2 leaves out a transaction's offset, gives reassignments a constant one, and lists events in
 *   the text order of their ids, which differs from event order as soon as there is an event 10;
 * - v0 has `#` before event ids, and the source's own event numbers where it had some;
 * - an export has no offset, which belongs to this node alone, and the source's own event numbers.
 */
export type Version = 0 | 1 | 2 | 'export'

/** The joined updates of a frame in one version and form; `starts` as in `FrameIndex`. */
export type FrameBytes = { bytes: Buffer; starts: Uint32Array }

const OFFSET_KEY = Buffer.from('"offset":"')
const OFFSET_FIELD_BYTES = '"offset":"000000000000000000",'.length
const CONSTANT_OFFSET = Buffer.from('000000000000000001')
const EVENTS_IN_TEXT_ORDER_MAX = 10

export function toVersion(
  version: Version,
  stored: Buffer,
  index: FrameIndex,
  encoding: Encoding,
): FrameBytes {
  const storedStarts = index.starts[encoding]
  if (version === 1) return { bytes: stored, starts: storedStarts }
  const pieces: Uint8Array[] = []
  const starts = new Uint32Array(index.count + 1)
  let length = 0
  for (let i = 0; i < index.count; i += 1) {
    const update = stored.subarray(storedStarts[i], (storedStarts[i + 1] as number) - 1)
    for (const piece of convert(version, update, index, i)) {
      pieces.push(piece)
      length += piece.length
    }
    length += 1
    starts[i + 1] = length
    if (i + 1 < index.count) pieces.push(COMMA)
  }
  return { bytes: Buffer.concat(pieces), starts }
}

/**
 * Whether a scan that prints as we do printed the update so, in /v1/updates or in /v2/updates, in the
 * compact form and whatever its offset.
 */
export function isPrintedAs(
  { compact, offsetAt, kind, eventCount }: PrintedUpdate,
  received: Buffer,
): boolean {
  const stored = Buffer.from(compact.buffer, compact.byteOffset, compact.byteLength)
  if (received.length === stored.length) {
    const behind = offsetAt + CONSTANT_OFFSET.length
    return (
      stored.compare(received, 0, offsetAt, 0, offsetAt) === 0 &&
      stored.compare(received, behind, received.length, behind) === 0 &&
      OFFSET_DIGITS.test(received.toString('latin1', offsetAt, behind))
    )
  }
  if (kind === 'reassignment' || received.length !== stored.length - OFFSET_FIELD_BYTES)
    return false
  const index = { isReassignment: NO_REASSIGNMENT, eventCounts: Uint32Array.of(eventCount) }
  let at = 0
  for (const piece of toV2(stored, index, 0)) {
    if (received.compare(piece, 0, piece.length, at, at + piece.length) !== 0) return false
    at += piece.length
  }
  return at === received.length
}

type PrintedUpdate = {
  kind: 'transaction' | 'reassignment'
  compact: Uint8Array
  offsetAt: number
  eventCount: number
}
const OFFSET_DIGITS = /^[0-9a-f]{18}$/
const NO_REASSIGNMENT = Uint8Array.of(0)

function convert(version: Version, update: Buffer, index: FrameIndex, i: number): Uint8Array[] {
  switch (version) {
    case 0:
      return renumber(update, index, i, HASH)
    case 1:
      return [update]
    case 2:
      return toV2(update, index, i)
    case 'export':
      return renumber(withoutOffset(update), index, i, NOTHING)
  }
}

function withoutOffset(update: Buffer): Buffer {
  const offsetAt = update.indexOf(OFFSET_KEY)
  return Buffer.concat([
    update.subarray(0, offsetAt),
    update.subarray(offsetAt + OFFSET_FIELD_BYTES),
  ])
}

function toV2(
  update: Buffer,
  index: Pick<FrameIndex, 'isReassignment' | 'eventCounts'>,
  i: number,
): Uint8Array[] {
  const offsetAt = update.indexOf(OFFSET_KEY)
  if (index.isReassignment[i] === 1) {
    const digitsAt = offsetAt + OFFSET_KEY.length
    return [
      update.subarray(0, digitsAt),
      CONSTANT_OFFSET,
      update.subarray(digitsAt + CONSTANT_OFFSET.length),
    ]
  }
  const head = update.subarray(0, offsetAt)
  const rest = update.subarray(offsetAt + OFFSET_FIELD_BYTES)
  const eventCount = index.eventCounts[i] as number
  if (eventCount <= EVENTS_IN_TEXT_ORDER_MAX) return [head, rest]
  const layout = readLayout(rest)
  assert.equal(layout.events.length, eventCount, 'a transaction has the events its index says')
  const pieces: Uint8Array[] = [head, rest.subarray(0, layout.eventsAt)]
  const inTextOrder = layout.events
    .map((event, n) => ({ event, key: String(n) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  inTextOrder.forEach(({ event }, k) => {
    if (k > 0) pieces.push(COMMA)
    pieces.push(rest.subarray(event.start, event.end))
  })
  pieces.push(rest.subarray(layout.eventsEnd))
  return pieces
}

/** Puts a prefix before every event id and the source's own event numbers into them. */
function renumber(update: Buffer, index: FrameIndex, i: number, prefix: Buffer): Uint8Array[] {
  const nodeIds = index.nodeIds[i]
  if (nodeIds === undefined && prefix.length === 0) return [update]
  const ids = index.isReassignment[i] === 1 ? readAssignedId(update) : readLayout(update).ids
  const pieces: Uint8Array[] = []
  let copied = 0
  for (const id of ids) {
    // `id.start` is behind the quotation mark, `id.numberAt` at the event's number.
    pieces.push(update.subarray(copied, id.start), prefix)
    const number = nodeIds?.[Number(update.toString('latin1', id.numberAt, id.end))]
    if (number === undefined) {
      copied = id.start
    } else {
      pieces.push(update.subarray(id.start, id.numberAt), Buffer.from(String(number)))
      copied = id.end
    }
  }
  pieces.push(update.subarray(copied))
  return pieces
}

const COMMA = Buffer.from(',')
const HASH = Buffer.from('#')
const NOTHING = Buffer.alloc(0)

type EventId = { start: number; numberAt: number; end: number }
type Layout = {
  /** Every place where an event id stands: roots, keys, event_id, children. */
  ids: EventId[]
  /** Entries of events_by_id, key and value. */
  events: { start: number; end: number }[]
  eventsAt: number
  eventsEnd: number
}

const ROOTS = Buffer.from('"root_event_ids":[')
const EVENT_ID = Buffer.from('"event_id":')
const CHOICE_ARGUMENT = Buffer.from('"choice_argument":')
const CREATED_EVENT = Buffer.from('"created_event":')
const EXERCISED = Buffer.from('{"event_type":"exercised_event"')

/**
 * Finds the event ids and events of a stored transaction. The layout is our own canonical one, so
 * only ledger values have to be skipped; before the first of them every field is a string, in which
 * a quotation mark would be escaped, so searching for a quoted key cannot go astray.
 */
function readLayout(bytes: Buffer): Layout {
  const ids: EventId[] = []
  const at = bytes.indexOf(ROOTS) + ROOTS.length
  let next = readIdList(bytes, at, ids)
  const eventsAt = next + ',"events_by_id":{'.length
  const events: Layout['events'] = []
  next = eventsAt
  while (bytes[next] !== CLOSE_BRACE) {
    const start = next
    const keyEnd = pushId(bytes, start, ids)
    const eventAt = keyEnd + 1
    pushId(bytes, bytes.indexOf(EVENT_ID, eventAt) + EVENT_ID.length, ids)
    const isExercised =
      bytes.compare(EXERCISED, 0, EXERCISED.length, eventAt, eventAt + EXERCISED.length) === 0
    if (isExercised) {
      const argumentAt = bytes.indexOf(CHOICE_ARGUMENT, eventAt) + CHOICE_ARGUMENT.length
      const childrenAt = skipValue(bytes, argumentAt) + ',"child_event_ids":['.length
      readIdList(bytes, childrenAt, ids)
    }
    const end = skipValue(bytes, eventAt)
    events.push({ start, end })
    next = bytes[end] === COMMA_CODE ? end + 1 : end
  }
  return { ids, events, eventsAt, eventsEnd: next }
}

function readAssignedId(bytes: Buffer): EventId[] {
  const ids: EventId[] = []
  const createdAt = bytes.indexOf(CREATED_EVENT)
  if (createdAt >= 0) {
    pushId(bytes, bytes.indexOf(EVENT_ID, createdAt) + EVENT_ID.length, ids)
  }
  return ids
}

/** Reads ids up to the closing bracket; returns the position behind it. */
function readIdList(bytes: Buffer, at: number, ids: EventId[]): number {
  let next = at
  while (bytes[next] !== CLOSE_BRACKET) {
    next = pushId(bytes, next, ids)
    if (bytes[next] === COMMA_CODE) next += 1
  }
  return next + 1
}

/** Reads the id whose quotation mark is at `at`; returns the position behind the closing one. */
function pushId(bytes: Buffer, at: number, ids: EventId[]): number {
  const behind = skipString(bytes, at)
  const end = behind - 1
  ids.push({ start: at + 1, numberAt: bytes.lastIndexOf(COLON, end) + 1, end })
  return behind
}

const QUOTE = 34
const BACKSLASH = 92
const COLON = 58
const COMMA_CODE = 44
const OPEN_BRACKET = 91
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125

function skipString(bytes: Buffer, at: number): number {
  assert.equal(bytes[at], QUOTE, 'a string starts with a quotation mark')
  let end = bytes.indexOf(QUOTE, at + 1)
  while (isEscaped(bytes, end)) end = bytes.indexOf(QUOTE, end + 1)
  assert.ok(end >= 0, 'a string ends with a quotation mark')
  return end + 1
}

function isEscaped(bytes: Buffer, quoteAt: number): boolean {
  let backslashes = 0
  while (bytes[quoteAt - 1 - backslashes] === BACKSLASH) backslashes += 1
  return backslashes % 2 === 1
}

/** The position behind the JSON value that starts at `at`. */
function skipValue(bytes: Buffer, at: number): number {
  let depth = 0
  let next = at
  while (next < bytes.length) {
    const code = bytes[next] as number
    if (code === QUOTE) {
      next = skipString(bytes, next)
    } else {
      if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1
      if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1
      if (depth < 0) return next
      next += 1
    }
    if (depth === 0 && isValueEnd(bytes[next])) return next
  }
  assert.fail('a value ends before its update does')
}

function isValueEnd(code: number | undefined): boolean {
  return code === undefined || code === COMMA_CODE || code === CLOSE_BRACE || code === CLOSE_BRACKET
}
