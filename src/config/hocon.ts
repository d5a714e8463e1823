import {
  type Entry,
  lineAndColumn,
  type MapEntry,
  type Member,
  type Place,
  type ScalarEntry,
  type Source,
} from './tree.ts'

/**
 * The part of HOCON that operators write into variables: objects, lists, strings of all three sorts,
 * path keys, `=`, `:`, `+=`, comments, merging of repeated objects, concatenation, and
 * substitutions, which are resolved when all variables are known. A substitution of the value that
 * is being set means the one before it. `include` is refused: a variable has no neighbouring files.
 */
export class HoconError extends Error {
  override name = 'HoconError'
  readonly place: Place

  constructor(message: string, place: Place) {
    super(message)
    this.place = place
  }
}

/** What stands in the tree until `resolveHocon` has seen the whole. */
type Reference = { type: 'reference'; path: string[]; optional: boolean; place: Place }
type Joined = { type: 'joined'; pieces: Piece[]; place: Place }
type Piece = { value: Raw; blanksBefore: string }
/** `before` is the member that this one took the place of. */
type RawMember = { keyPlace: Place; entry: Raw; before?: RawMember | undefined }
type RawMap = { type: 'map'; members: Map<string, RawMember>; place: Place }
type RawList = { type: 'list'; items: Raw[]; place: Place }
/** `+=`: an item behind whatever list stands there when all variables are known. */
type Appended = { type: 'appended'; item: Raw; place: Place }
type Raw = ScalarEntry | RawMap | RawList | Reference | Joined | Appended
export type HoconTree = RawMap

/** Deeper nesting than any setting needs, and well within the stack. */
const DEPTH_MAX = 50
/** A tree that refers to itself again and again stops growing here. */
const RESOLVED_ENTRIES_MAX = 20_000
const RESERVED = '$"{}[]:=,+#`^?!@*&\\'
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** A number may hold a plus sign, which no other text without quotes may. */
const SIGNED_EXPONENT = /-?(?:0|[1-9]\d*)(?:\.\d+)?[eE]\+\d+(?=[\s,\]}#]|\/\/|$)/

export function parseHocon(source: Source, origin: Place): HoconTree {
  const file = origin.source === source ? undefined : rowsOf(origin.source.text)
  const reader = { text: source.text, at: 0, source, origin, file, depth: 0 }
  skipSpace(reader, true)
  const place = placeAt(reader, 0, 1)
  let tree: RawMap
  if (peek(reader) === '{') {
    tree = readObject(reader)
    skipSpace(reader, true)
    if (reader.at < reader.text.length) fail(reader, 'something follows the closing brace')
  } else {
    tree = { type: 'map', members: new Map(), place }
    readMembers(reader, tree, false)
  }
  return tree
}

type Reader = {
  text: string
  at: number
  source: Source
  origin: Place
  /** The rows of the file that the text stands in, if it stands in one. */
  file: string[] | undefined
  depth: number
}

function rowsOf(text: string): string[] {
  return text.split(/\r?\n/)
}

/** A variable in a values file is placed by that file; one of the environment by itself. */
function placeAt(reader: Reader, offset: number, length: number): Place {
  const { text, source, origin, file } = reader
  const spot = lineAndColumn(text, offset)
  if (file === undefined) return { source, ...spot, length }
  const end = text.indexOf('\n', offset)
  const row = text.slice(offset - spot.column + 1, end === -1 ? text.length : end).trimEnd()
  // In a block of YAML each row of the text is a row of the file; folded texts have no such rows.
  const isBlock = file[origin.line - 1]?.[origin.column - 1] === '|'
  const line = origin.line + spot.line - (isBlock ? 0 : 1)
  const start = file[line - 1]?.indexOf(row, line === origin.line ? origin.column - 1 : 0) ?? -1
  if (row === '' || start === -1) return origin
  return { ...origin, line, column: start + spot.column, length }
}

function peek(reader: Reader): string {
  return reader.text[reader.at] ?? ''
}

function fail(reader: Reader, message: string, offset = reader.at): never {
  throw new HoconError(message, placeAt(reader, offset, 1))
}

function skipSpace(reader: Reader, newlines: boolean): string {
  const start = reader.at
  for (;;) {
    const char = peek(reader)
    if (char === '#' || reader.text.startsWith('//', reader.at)) {
      const end = reader.text.indexOf('\n', reader.at)
      reader.at = end === -1 ? reader.text.length : end
    } else if (char === '\n' ? newlines : char !== '' && /\s|\uFEFF/.test(char)) {
      reader.at++
    } else {
      return reader.text.slice(start, reader.at)
    }
  }
}

function readObject(reader: Reader): RawMap {
  const start = reader.at
  if (++reader.depth > DEPTH_MAX) fail(reader, `braces are nested deeper than ${DEPTH_MAX}`)
  reader.at++
  const map: RawMap = { type: 'map', members: new Map(), place: placeAt(reader, start, 1) }
  readMembers(reader, map, true)
  if (peek(reader) !== '}') fail(reader, "a '{' is never closed by '}'", start)
  reader.at++
  reader.depth--
  return map
}

function readMembers(reader: Reader, map: RawMap, inBraces: boolean): void {
  for (;;) {
    skipSpace(reader, true)
    const char = peek(reader)
    if (char === '') return
    if (char === '}') {
      if (inBraces) return
      fail(reader, "a '}' closes nothing")
    }
    readMember(reader, map)
    skipSpace(reader, false)
    const after = peek(reader)
    if (after === ',' || after === '\n') reader.at++
    else if (after !== '' && after !== '}') fail(reader, `'${after}' is not expected here`)
  }
}

function readMember(reader: Reader, map: RawMap): void {
  const start = reader.at
  if (/^include[\s"(]/.test(reader.text.slice(start, start + 8))) {
    fail(reader, 'include is not supported: write the settings themselves')
  }
  const path = readPath(reader, '={:+')
  const keyPlace = placeAt(reader, start, reader.text.slice(start, reader.at).trimEnd().length)
  skipSpace(reader, true)
  let append = false
  if (peek(reader) === '+') {
    if (reader.text[reader.at + 1] !== '=') fail(reader, "'+' must be followed by '='")
    append = true
    reader.at += 2
  } else if (peek(reader) === '=' || peek(reader) === ':') {
    reader.at++
  } else if (peek(reader) !== '{') {
    fail(reader, `the key has no value: '=' is missing`)
  }
  const value = readValue(reader)
  const entry: Raw = append ? { type: 'appended', item: value, place: value.place } : value
  assign(map, path, { keyPlace, entry })
}

function readPath(reader: Reader, ends: string): string[] {
  const path: string[] = []
  let word = ''
  let quoted = false
  const start = reader.at
  const finish = () => {
    const part = quoted ? word : word.trim()
    if (part === '' && !quoted) fail(reader, 'a key is empty', start)
    path.push(part)
    word = ''
    quoted = false
  }
  for (;;) {
    const char = peek(reader)
    if (char === '"') {
      word = word.trim() + readQuoted(reader)
      quoted = true
    } else if (char === '.') {
      finish()
      reader.at++
    } else if (char === '' || char === '\n' || ends.includes(char)) {
      finish()
      return path
    } else if (RESERVED.includes(char)) {
      fail(reader, `'${char}' may not stand in a key without quotes`)
    } else {
      if (!quoted || !/\s/.test(char)) word += char
      reader.at++
    }
  }
}

function readQuoted(reader: Reader): string {
  const start = reader.at
  if (reader.text.startsWith('"""', start)) {
    let end = reader.text.indexOf('"""', start + 3)
    if (end === -1) fail(reader, 'a text in triple quotes never ends', start)
    while (reader.text[end + 3] === '"') end++
    reader.at = end + 3
    return reader.text.slice(start + 3, end)
  }
  const match = /"(?:[^"\\\n]|\\["\\/bfnrt]|\\u[\da-fA-F]{4})*"/y
  match.lastIndex = start
  const found = match.exec(reader.text)
  if (found === null) fail(reader, 'a text in quotes never ends, or holds a wrong escape', start)
  reader.at = match.lastIndex
  return JSON.parse((found as RegExpExecArray)[0].replace(/\t/g, '\\t')) as string
}

function readValue(reader: Reader): Raw {
  skipSpace(reader, true)
  const start = reader.at
  const pieces: Piece[] = []
  for (;;) {
    const before = reader.at
    const blanks = skipBlanks(reader)
    const char = peek(reader)
    const isComment = char === '#' || reader.text.startsWith('//', reader.at)
    if (char === '' || char === '\n' || char === ',' || char === '}' || char === ']' || isComment) {
      reader.at = before
      break
    }
    pieces.push({ value: readPiece(reader), blanksBefore: pieces.length === 0 ? '' : blanks })
  }
  if (pieces.length === 0) fail(reader, 'the value is missing', start)
  const place = placeAt(reader, start, Math.max(1, reader.at - start))
  return pieces.length === 1 ? (pieces[0] as Piece).value : joinPieces(pieces, place)
}

function skipBlanks(reader: Reader): string {
  const start = reader.at
  while (peek(reader) !== '\n' && peek(reader) !== '' && /\s/.test(peek(reader))) reader.at++
  return reader.text.slice(start, reader.at)
}

function readPiece(reader: Reader): Raw {
  const start = reader.at
  const char = peek(reader)
  if (char === '{') return readObject(reader)
  if (char === '[') return readList(reader)
  if (char === '"') {
    const value = readQuoted(reader)
    return {
      type: 'scalar',
      value,
      raw: value,
      plain: false,
      place: placeAt(reader, start, reader.at - start),
    }
  }
  if (char === '$') return readReference(reader)
  const signed = new RegExp(SIGNED_EXPONENT, 'y')
  signed.lastIndex = start
  let end = signed.test(reader.text) ? signed.lastIndex : start
  while (end < reader.text.length) {
    const next = reader.text[end] as string
    if (RESERVED.includes(next) || /\s/.test(next) || reader.text.startsWith('//', end)) break
    end++
  }
  if (end === start) fail(reader, `'${char}' may not stand in a value without quotes`)
  reader.at = end
  return plainScalar(reader.text.slice(start, end), placeAt(reader, start, end - start))
}

function plainScalar(raw: string, place: Place): ScalarEntry {
  const words: Record<string, ScalarEntry['value']> = { true: true, false: false, null: null }
  const value = Object.hasOwn(words, raw)
    ? (words[raw] as ScalarEntry['value'])
    : NUMBER.test(raw)
      ? Number(raw)
      : raw
  return { type: 'scalar', value, raw, plain: true, place }
}

function readReference(reader: Reader): Reference {
  const start = reader.at
  if (reader.text[start + 1] !== '{') fail(reader, "'$' may not stand in a value without quotes")
  reader.at += 2
  const optional = peek(reader) === '?'
  if (optional) reader.at++
  skipSpace(reader, false)
  const path = readPath(reader, '}')
  if (peek(reader) !== '}') fail(reader, "a substitution is never closed by '}'", start)
  reader.at++
  return { type: 'reference', path, optional, place: placeAt(reader, start, reader.at - start) }
}

function readList(reader: Reader): RawList {
  const start = reader.at
  if (++reader.depth > DEPTH_MAX) fail(reader, `brackets are nested deeper than ${DEPTH_MAX}`)
  reader.at++
  const items: Raw[] = []
  for (;;) {
    skipSpace(reader, true)
    if (peek(reader) === ']') break
    if (peek(reader) === '') fail(reader, "a '[' is never closed by ']'", start)
    items.push(readValue(reader))
    skipSpace(reader, false)
    const after = peek(reader)
    if (after === ',' || after === '\n') reader.at++
    else if (after === '') fail(reader, "a '[' is never closed by ']'", start)
    else if (after !== ']') fail(reader, `'${after}' is not expected here`)
  }
  reader.at++
  reader.depth--
  return { type: 'list', items, place: placeAt(reader, start, reader.at - start) }
}

function joinPieces(pieces: Piece[], place: Place): Raw {
  if (pieces.some(({ value }) => value.type === 'reference' || value.type === 'joined')) {
    return { type: 'joined', pieces, place }
  }
  const first = pieces[0]?.value as Raw
  if (pieces.every(({ value }) => value.type === 'scalar')) {
    const raw = pieces
      .map(({ value, blanksBefore }) => blanksBefore + (value as ScalarEntry).raw)
      .join('')
    return { type: 'scalar', value: raw, raw, plain: (first as ScalarEntry).plain, place }
  }
  if (pieces.every(({ value }) => value.type === 'map')) {
    const map: RawMap = { type: 'map', members: new Map(), place }
    for (const { value } of pieces) mergeInto(map, value as RawMap)
    return map
  }
  if (pieces.every(({ value }) => value.type === 'list')) {
    return { type: 'list', items: pieces.flatMap(({ value }) => (value as RawList).items), place }
  }
  throw new HoconError('texts, lists and objects cannot be joined to one value', place)
}

function assign(map: RawMap, path: readonly string[], member: RawMember): void {
  const { keyPlace, entry } = member
  let target = map
  for (const step of path.slice(0, -1)) {
    const below = target.members.get(step)?.entry
    if (below?.type === 'map') {
      target = below
    } else {
      const next: RawMap = { type: 'map', members: new Map(), place: keyPlace }
      target.members.set(step, { keyPlace, entry: next })
      target = next
    }
  }
  const last = path.at(-1) as string
  const present = target.members.get(last)
  if (present?.entry.type === 'map' && entry.type === 'map') mergeInto(present.entry, entry)
  else target.members.set(last, { ...member, before: behind(member.before, present) })
}

/** A member of a later tree may have taken the place of others itself. */
function behind(
  member: RawMember | undefined,
  present: RawMember | undefined,
): RawMember | undefined {
  const chain: RawMember[] = []
  for (let at = member; at !== undefined; at = at.before) chain.push(at)
  return chain.reduceRight<RawMember | undefined>((before, at) => ({ ...at, before }), present)
}

/** The later tree wins, object by object. */
export function mergeInto(base: HoconTree, over: HoconTree): void {
  for (const [name, member] of over.members) assign(base, [name], member)
}

export type Resolution = { tree: MapEntry; unresolved: { name: string; place: Place }[] }

/** Substitutions look into the tree, then into the environment; an optional one may find nothing. */
export function resolveHocon(
  root: HoconTree,
  environment: (name: string) => string | undefined,
): Resolution {
  const unresolved: Resolution['unresolved'] = []
  let entries = 0

  function resolve(raw: Raw, seen: readonly Raw[]): Entry | undefined {
    if (++entries > RESOLVED_ENTRIES_MAX || seen.length > DEPTH_MAX * 4) {
      throw new HoconError('substitutions make the settings grow without end', raw.place)
    }
    switch (raw.type) {
      case 'scalar':
        return raw
      case 'list':
        return { ...raw, items: raw.items.flatMap((item) => resolve(item, [...seen, raw]) ?? []) }
      case 'map':
        return resolveMap(raw, seen)
      case 'reference':
        return resolveReference(raw, seen)
      case 'joined':
        return resolveJoined(raw, seen)
      case 'appended':
        throw new HoconError("'+=' adds to a key alone", raw.place)
    }
  }

  function resolveMember({ entry, before }: RawMember, seen: readonly Raw[]): Entry | undefined {
    if (entry.type !== 'appended') return resolve(entry, seen)
    const item = resolve(entry.item, [...seen, entry])
    const items = item === undefined ? [] : [item]
    const present = before === undefined ? undefined : resolveMember(before, [...seen, entry])
    if (present !== undefined && present.type !== 'list')
      throw new HoconError("'+=' adds to a list alone", entry.place)
    return { type: 'list', items: [...(present?.items ?? []), ...items], place: entry.place }
  }

  function resolveMap(raw: RawMap, seen: readonly Raw[]): MapEntry {
    const members = new Map<string, Member>()
    for (const [name, member] of raw.members) {
      const resolved = resolveMember(member, [...seen, raw])
      if (resolved !== undefined) members.set(name, { keyPlace: member.keyPlace, entry: resolved })
    }
    return { type: 'map', members, place: raw.place }
  }

  function resolveReference(raw: Reference, seen: readonly Raw[]): Entry | undefined {
    const name = raw.path.join('.')
    const newest = lookUp(root, raw.path)
    let target = newest
    // The value that is being set is not there yet: the one before it is meant.
    while (target !== undefined && isUnderWay(target, [...seen, raw])) target = target.before
    if (target !== undefined) {
      const found = resolveMember(target, [...seen, raw])
      return found === undefined ? undefined : { ...found, place: raw.place }
    }
    const text = environment(name)
    if (text !== undefined)
      return { type: 'scalar', value: text, raw: text, plain: false, place: raw.place }
    if (raw.optional) return undefined
    if (newest !== undefined) throw new HoconError('a substitution refers to itself', raw.place)
    unresolved.push({ name, place: raw.place })
    return undefined
  }

  function resolveJoined(raw: Joined, seen: readonly Raw[]): Entry | undefined {
    const pieces: Piece[] = []
    for (const { value, blanksBefore } of raw.pieces) {
      const resolved = resolve(value, [...seen, raw])
      if (resolved !== undefined) pieces.push({ value: resolved as Raw, blanksBefore })
    }
    return pieces.length === 0 ? undefined : (joinPieces(pieces, raw.place) as Entry)
  }

  return { tree: resolveMap(root, []), unresolved }
}

function isUnderWay({ entry }: RawMember, seen: readonly Raw[]): boolean {
  return seen.includes(entry)
}

function lookUp(root: RawMap, path: readonly string[]): RawMember | undefined {
  let member: RawMember | undefined
  let at: Raw | undefined = root
  for (const step of path) {
    member = at?.type === 'map' ? at.members.get(step) : undefined
    at = member?.entry
  }
  return member
}
