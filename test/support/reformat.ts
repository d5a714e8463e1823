import { member, printTree, readTree, type Tree, type TreeStyle } from './json-tree.ts'

// The same update, written differently: another node's order of keys and stakeholders, spacing, escapes, time zones,
// event numbers. A history must not keep any of it.

export type ReformatOptions = {
  /** Number events as a participant does: with gaps, and `#` before the update id. */
  eventIds?: boolean
  /** Add what deployed scans print besides: `offset`, and `interface_id` and the hash as null where there is none. */
  wireFields?: boolean
  /** Also shuffle the keys of lossless values. Those of compact values stay: they are kept as received. */
  values?: boolean
}

type Random = (below: number) => number

const VALUE_FIELDS = new Set(['create_arguments', 'choice_argument', 'exercise_result'])
const TIME_FIELDS = new Set(['record_time', 'effective_at', 'created_at'])
const UNORDERED_LISTS = new Set(['signatories', 'observers'])
/** No line breaks: the line stays one line. */
const SPACES = ['', '', '', '', ' ', '  ', '\t']
const OFFSETS_MINUTES = [0, 0, 60, -60, 330, -210, 840, -720, 1080, -1080]
/** Local times outside the years 0001 to 9999 have no four-digit form. */
const FIRST_MILLIS = Date.parse('0001-01-01T00:00:00Z')
const LAST_MILLIS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

export function reformat(line: string, seed: number, options: ReformatOptions = {}): string {
  const { eventIds = true, wireFields = true, values = true } = options
  const random = seededRandom(seed)
  const tree = readTree(line)
  const lossless = member(tree, 'protobuf_json')
  const compact = member(tree, 'compact_json')
  if (lossless === undefined || compact === undefined) {
    return print(random, rewriteItem(tree, { random, eventIds, wireFields, shuffleValues: values }))
  }
  // Both forms must go on agreeing about event ids, so both are rewritten by the same draws.
  const itemSeed = random(2 ** 31)
  const rewrite = (item: Tree, shuffleValues: boolean) =>
    rewriteItem(item, { random: seededRandom(itemSeed), eventIds, wireFields, shuffleValues })
  const entries: [string, Tree][] = [
    ['protobuf_json', rewrite(lossless, values)],
    ['compact_json', rewrite(compact, false)],
  ]
  return print(random, { kind: 'object', entries: shuffle(random, entries) })
}

type Rewriting = { random: Random; eventIds: boolean; wireFields: boolean; shuffleValues: boolean }

function rewriteItem(item: Tree, rewriting: Rewriting): Tree {
  const { random, eventIds, wireFields, shuffleValues } = rewriting
  const rename = eventIds ? renaming(item, random) : (id: string) => id
  // Values draw from their own source, so that both forms of an item draw alike for all the rest.
  const valueRandom = seededRandom(random(2 ** 31))

  const rewrite = (tree: Tree, field: string): Tree => {
    if (VALUE_FIELDS.has(field)) return shuffleValues ? shuffleKeys(valueRandom, tree) : tree
    switch (tree.kind) {
      case 'literal':
        return tree
      case 'text':
        return TIME_FIELDS.has(field)
          ? { kind: 'text', text: retime(tree.text, random) }
          : { kind: 'text', text: rename(tree.text) }
      case 'array': {
        const elements = tree.elements.map((element) => rewrite(element, ''))
        return {
          kind: 'array',
          elements: UNORDERED_LISTS.has(field) ? shuffle(random, elements) : elements,
        }
      }
      case 'object': {
        const entries = tree.entries.map(([key, value]): [string, Tree] => [
          rename(key),
          rewrite(value, key),
        ])
        if (wireFields) entries.push(...missingWireFields(tree, field, random))
        return { kind: 'object', entries: shuffle(random, entries) }
      }
    }
  }
  return rewrite(item, 'item')
}

/** Ids rise with gaps in the order of the events, as a participant's node ids do. */
function renaming(item: Tree, random: Random): (text: string) => string {
  const events = member(item, 'events_by_id')
  const names = new Map<string, string>()
  if (events?.kind !== 'object') return (text) => text
  let node = 0
  for (const [id] of events.entries) {
    node += random(2) === 0 ? 0 : random(9)
    names.set(id, `#${id.slice(0, id.lastIndexOf(':'))}:${node}`)
    node += 1
  }
  return (text) => names.get(text) ?? text
}

function missingWireFields(tree: Tree, field: string, random: Random): [string, Tree][] {
  const missing = (key: string, value: Tree): [string, Tree][] =>
    member(tree, key) === undefined && random(2) === 0 ? [[key, value]] : []
  const nothing: Tree = { kind: 'literal', literal: 'null' }
  if (field === 'item') {
    const offset: Tree = { kind: 'text', text: '000000000000000001' }
    const isTransaction = member(tree, 'events_by_id') !== undefined
    return [
      ...missing('offset', offset),
      ...(isTransaction ? missing('external_transaction_hash', nothing) : []),
    ]
  }
  return member(tree, 'choice') === undefined ? [] : missing('interface_id', nothing)
}

function shuffleKeys(random: Random, tree: Tree): Tree {
  if (tree.kind === 'array') {
    return { kind: 'array', elements: tree.elements.map((element) => shuffleKeys(random, element)) }
  }
  if (tree.kind !== 'object') return tree
  const entries = tree.entries.map(([key, value]): [string, Tree] => [
    key,
    shuffleKeys(random, value),
  ])
  return { kind: 'object', entries: shuffle(random, entries) }
}

/** The same instant in another time zone, with any number of fraction digits that loses none, six at most. */
function retime(time: string, random: Random): string {
  const [, seconds = '', fraction = ''] = /^(.{19})(?:\.(\d+))?Z$/.exec(time) ?? []
  const utcMillis = Date.parse(`${seconds}Z`)
  const minutes = OFFSETS_MINUTES[random(OFFSETS_MINUTES.length)] as number
  const localMillis = utcMillis + minutes * 60_000
  const fits = localMillis >= FIRST_MILLIS && localMillis <= LAST_MILLIS
  const needed = fraction.replace(/0+$/, '')
  const digits = needed.padEnd(needed.length + random(7 - needed.length), '0')
  const local = new Date(fits ? localMillis : utcMillis).toISOString().slice(0, 19)
  const zone = fits ? printOffset(minutes, random) : 'Z'
  return `${local}${digits === '' ? '' : `.${digits}`}${zone}`
}

function printOffset(minutes: number, random: Random): string {
  if (minutes === 0) return random(2) === 0 ? 'Z' : '+00:00'
  const pad = (number: number) => `${number}`.padStart(2, '0')
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`
}

function print(random: Random, tree: Tree): string {
  const style: TreeStyle = {
    space: () => SPACES[random(SPACES.length)] as string,
    quote: (text) => quoteOddly(text, random),
  }
  return `${style.space()}${printTree(tree, style)}${style.space()}`
}

/** One character in eight is escaped though it need not be, and slashes sometimes have the escape that JSON allows. */
function quoteOddly(text: string, random: Random): string {
  let inside = ''
  for (let index = 0; index < text.length; index += 1) {
    const unit = text[index] as string
    const chance = random(8)
    if (chance === 0) inside += escapeUnit(unit, random)
    else if (unit === '/' && chance < 4) inside += '\\/'
    else if (unit < ' ' || unit === '"' || unit === '\\')
      inside += JSON.stringify(unit).slice(1, -1)
    else inside += unit
  }
  // Half of a pair must not stand beside the other half's escape: not every UTF-8 encoder would keep it.
  return `"${inside.replace(/[\ud800-\udfff]/g, (unit) => escapeUnit(unit, random))}"`
}

function escapeUnit(unit: string, random: Random): string {
  const code = unit.charCodeAt(0).toString(16).padStart(4, '0')
  return `\\u${random(2) === 0 ? code : code.toUpperCase()}`
}

function shuffle<T>(random: Random, values: T[]): T[] {
  const shuffled = [...values]
  for (let last = shuffled.length - 1; last > 0; last -= 1) {
    const other = random(last + 1)
    const held = shuffled[last] as T
    shuffled[last] = shuffled[other] as T
    shuffled[other] = held
  }
  return shuffled
}

/** Mulberry32: enough for a test, the same on every machine. */
function seededRandom(seed: number): Random {
  let state = seed | 0
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}
