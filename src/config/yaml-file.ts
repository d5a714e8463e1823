import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  visit,
  type YAMLParseError,
} from 'yaml'
import type { Problem } from './problem.ts'
import type { Entry, Member, Place, Source } from './tree.ts'

/** Aliases can make a small file large; a values file of a node has a few hundred entries. */
const ENTRIES_MAX = 50_000
const DEPTH_MAX = 100
/** No key stands further right. */
const KEY_LINE_LENGTH_MAX = 500
/** More problems than this in one broken file help nobody. */
const SYNTAX_PROBLEMS_MAX = 20

export type YamlReading = { documents: Entry[]; problems: Problem[] }

/** Reads YAML 1.2 with merge keys. What is broken is reported with its place and the key it stands under. */
export function readYaml(source: Source): YamlReading {
  const lines = new LineCounter()
  const parsed = parseAllDocuments(source.text, {
    lineCounter: lines,
    merge: true,
    prettyErrors: false,
    logLevel: 'error',
  })
  const problems: Problem[] = []
  const documents: Entry[] = []
  if (!Array.isArray(parsed)) return { documents, problems }
  for (const document of parsed) {
    problems.push(...syntaxProblems(source, lines, document))
    const readable = document.errors.every(({ code }) => code === 'DUPLICATE_KEY')
    if (!readable || document.contents === null) continue
    const converter = { source, lines, document, problems, entries: 0 }
    const entry = convert(converter, document.contents, 0)
    if (entry !== undefined) documents.push(entry)
  }
  return { documents, problems }
}

/** One mistake often breaks the rest of its line: the first of a line is told. */
function syntaxProblems(source: Source, lines: LineCounter, document: Document.Parsed): Problem[] {
  const byLine = new Map<number | undefined, Problem>()
  for (const error of document.errors) {
    if (byLine.size === SYNTAX_PROBLEMS_MAX) break
    const opened = openedAt(document, error)
    const problem =
      opened === undefined
        ? syntaxProblem(source, lines, {
            offset: error.pos[0],
            code: error.code,
            message: error.message,
          })
        : syntaxProblem(source, lines, { offset: opened, code: 'UNCLOSED', message: '' })
    if (!byLine.has(problem.place?.line)) byLine.set(problem.place?.line, problem)
  }
  return [...byLine.values()]
}

/** What is never closed goes on to the end of the file; it is told where it opens. */
function openedAt(
  document: Document.Parsed,
  { code, message, pos: [at] }: YAMLParseError,
): number | undefined {
  const isQuote = code === 'MISSING_CHAR' && message.includes('quote')
  if (!isQuote && !message.startsWith('Flow ')) return undefined
  let opened: number | undefined
  visit(document, {
    Node: (_, node) => {
      const [start, , end] = (node as Node).range ?? [0, 0, 0]
      const fits = isQuote
        ? isScalar(node) && String(node.type).startsWith('QUOTE')
        : isCollection(node) && node.flow === true
      if (fits && start < at && at <= end + 1) opened = start
    },
  })
  return opened
}

type Converter = {
  source: Source
  lines: LineCounter
  document: Document.Parsed
  problems: Problem[]
  entries: number
}

function convert(converter: Converter, node: Node, depth: number): Entry | undefined {
  const place = placeOf(converter, node.range)
  if (++converter.entries > ENTRIES_MAX || depth > DEPTH_MAX) {
    if (converter.entries <= ENTRIES_MAX + 1 || depth === DEPTH_MAX + 1) {
      converter.problems.push(
        refusal(
          place,
          'The file is nested too deep, or its aliases make it too large. Write it out plainly.',
        ),
      )
    }
    converter.entries = ENTRIES_MAX + 1
    return undefined
  }
  if (isAlias(node)) {
    const target = (node as Alias).resolve(converter.document)
    const entry = target === undefined ? undefined : convert(converter, target, depth + 1)
    return entry === undefined ? undefined : { ...entry, place }
  }
  if (isMap(node))
    return convertMap(converter, node.items as Pair<Node, Node | null>[], place, depth)
  if (isSeq(node)) {
    const items = (node.items as Node[]).flatMap(
      (item) => convert(converter, item, depth + 1) ?? [],
    )
    return { type: 'list', items, place }
  }
  if (!isScalar(node)) return undefined
  const value = node.value
  const plain = node.type === 'PLAIN' || node.type === undefined
  const raw = node.source ?? String(value)
  if (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean'
  ) {
    return { type: 'scalar', value, raw, plain, place }
  }
  return { type: 'scalar', value: raw, raw, plain, place }
}

function convertMap(
  converter: Converter,
  pairs: Pair<Node, Node | null>[],
  place: Place,
  depth: number,
): Entry {
  const members = new Map<string, Member>()
  for (const { key, value } of pairs) {
    if (value !== null && isScalar(key) && (key.value === '<<' || typeof key.value === 'symbol')) {
      mergeMember(converter, members, value, depth)
      continue
    }
    const keyPlace = placeOf(converter, key?.range)
    if (!isScalar(key) || key.value === null) {
      converter.problems.push(refusal(keyPlace, 'A key must be a text.'))
      continue
    }
    const entry: Entry | undefined =
      value === null
        ? { type: 'scalar', value: null, raw: '', plain: true, place: keyPlace }
        : convert(converter, value, depth + 1)
    if (entry !== undefined) members.set(String(key.value), { keyPlace, entry })
  }
  return { type: 'map', members, place }
}

/** Keys of a merged map stand behind the map's own, wherever the merge key is written. */
function mergeMember(
  converter: Converter,
  members: Map<string, Member>,
  value: Node,
  depth: number,
): void {
  const merged = convert(converter, value, depth + 1)
  const maps = merged?.type === 'list' ? merged.items : [merged]
  for (const map of maps) {
    if (map?.type !== 'map') continue
    for (const [name, member] of map.members) if (!members.has(name)) members.set(name, member)
  }
}

function placeOf(converter: Converter, range: Node['range'] | undefined): Place {
  const [start, end] = range ?? [0, 1]
  const spot = converter.lines.linePos(start)
  const endOfLine = converter.source.text.indexOf('\n', start)
  const stop = endOfLine === -1 ? end : Math.min(end, endOfLine)
  return {
    source: converter.source,
    line: spot.line,
    column: spot.col,
    length: Math.max(1, stop - start),
  }
}

function refusal(place: Place, message: string): Problem {
  return {
    severity: 'error',
    rule: 'yaml',
    key: place.source.name,
    path: place.source.name,
    place,
    message,
  }
}

const HINTS: Readonly<Record<string, string>> = {
  BAD_ALIAS: "A text that begins with '*' must stand in quotes.",
  DUPLICATE_KEY: 'Keep one of the two.',
  TAB_AS_INDENT: 'Indent with blanks, not with tabs.',
  MISSING_CHAR: 'Close the quote or the bracket.',
  UNCLOSED: 'Close it.',
  BAD_INDENT: 'Indent it like its neighbours.',
}

function syntaxProblem(
  source: Source,
  lines: LineCounter,
  error: { offset: number; code: string; message: string },
): Problem {
  const offset = Math.min(error.offset, Math.max(0, source.text.length - 1))
  const spot = lines.linePos(offset)
  const path = guessPath(source.text, spot.line)
  const startsWithStar = /:\s*\*/.test(source.text.split('\n')[spot.line - 1] ?? '')
  const hint = startsWithStar ? HINTS.BAD_ALIAS : HINTS[error.code]
  return {
    severity: 'error',
    rule: error.code === 'DUPLICATE_KEY' ? 'duplicate-key' : 'yaml',
    key: path,
    path,
    place: { source, line: spot.line, column: spot.col, length: 1 },
    message:
      error.code === 'DUPLICATE_KEY'
        ? `The key ${path} is given twice, so one of the two would be lost.`
        : `This is not YAML at ${path}: ${plainReason(error.code, error.message)}.`,
    ...(hint === undefined ? {} : { hint }),
  }
}

/** The library quotes the source in some messages; what follows a colon may be a secret. */
function plainReason(code: string, message: string): string {
  const known: Readonly<Record<string, string>> = {
    BAD_ALIAS: 'an unquoted * begins an alias, and no such anchor exists',
    TAB_AS_INDENT: 'a tab is used to indent',
    MISSING_CHAR: 'a quote, bracket or blank is missing',
    UNCLOSED: 'a quote, bracket or brace is never closed',
    UNEXPECTED_TOKEN: 'something stands where nothing may stand',
    BAD_INDENT: 'the indentation fits nothing',
    BLOCK_AS_IMPLICIT_KEY: 'a block stands where a single value is expected',
    IMPOSSIBLE: 'the text cannot be read',
  }
  return (
    known[code] ??
    message
      .split(/[:"'`\n]/)[0]
      ?.trim()
      .toLowerCase() ??
    'the text cannot be read'
  )
}

/** In a file that does not parse, the key is found as a reader finds it: by going up the indentation. */
export function guessPath(text: string, line: number): string {
  const rows = text.split(/\r?\n/)
  const names: string[] = []
  let indent = Number.POSITIVE_INFINITY
  for (let index = line - 1; index >= 0 && indent > 0; index--) {
    const match = /^(\s*(?:- )?)(?:"([^"]*)"|'([^']*)'|([^\s#:][^:]*?))\s*:(?:\s|$)/.exec(
      (rows[index] ?? '').slice(0, KEY_LINE_LENGTH_MAX),
    )
    if (match === null) continue
    const depth = (match[1] as string).length
    if (depth >= indent) continue
    names.unshift(match[2] ?? match[3] ?? (match[4] as string))
    indent = depth
  }
  return names.length === 0 ? 'the file' : names.join('.')
}
