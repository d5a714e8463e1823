import { printTree, readTree, type Tree, type TreeObject } from './json-tree.ts'

// What the versions of the API answer, worked out slowly from one line of an import file in canonical form. It shares
// nothing with the program: it knows trees, the program knows bytes.

export type ReferenceForm = {
  version: 0 | 1 | 2
  encoding: 'compact_json' | 'protobuf_json'
  /** The update's number in the node's history, from 1. */
  offset: number
  /** The source's own event numbers in event order, where it had some. */
  nodeIds?: number[]
}

export function referenceItem(line: string, form: ReferenceForm): string {
  const item = readTree(line) as TreeObject
  const values = form.encoding === 'compact_json' ? withCompactValues(item) : item
  return print(withOffset(inVersion(values, form), form))
}

/** The event numbers of a line in event order: each event before its children. */
export function nodeIdsOf(line: string): number[] {
  const item = readTree(line)
  const events = get(item, 'events_by_id')
  const numbers: number[] = []
  const visit = (id: Tree) => {
    const text = textOf(id)
    numbers.push(Number(text.slice(text.lastIndexOf(':') + 1)))
    for (const child of elementsOf(get(get(events, text), 'child_event_ids'))) visit(child)
  }
  for (const root of elementsOf(get(item, 'root_event_ids'))) visit(root)
  return numbers
}

const VALUE_FIELDS = ['create_arguments', 'choice_argument', 'exercise_result']

function withCompactValues(tree: Tree): Tree {
  return mapEntries(tree, (key, value) =>
    VALUE_FIELDS.includes(key) ? toCompact(value) : withCompactValues(value),
  )
}

function inVersion(item: Tree, { version, nodeIds }: ReferenceForm): Tree {
  if (version === 2) {
    return mapEntries(item, (key, value) =>
      key === 'events_by_id' && value.kind === 'object'
        ? {
            kind: 'object',
            entries: value.entries.toSorted(([one], [other]) => (one < other ? -1 : 1)),
          }
        : value,
    )
  }
  if (version === 1) return item
  const rename = (id: string) => {
    const colon = id.lastIndexOf(':')
    const number = Number(id.slice(colon + 1))
    return `#${id.slice(0, colon)}:${nodeIds?.[number] ?? number}`
  }
  const renameText = (tree: Tree): Tree => text(rename(textOf(tree)))
  const renameAll = (tree: Tree): Tree => ({
    kind: 'array',
    elements: elementsOf(tree).map(renameText),
  })
  const inEvent = (event: Tree): Tree =>
    mapEntries(event, (key, value) => {
      if (key === 'event_id') return renameText(value)
      return key === 'child_event_ids' ? renameAll(value) : value
    })
  return mapEntries(item, (key, value) => {
    if (key === 'root_event_ids') return renameAll(value)
    if (key === 'events_by_id' && value.kind === 'object') {
      return {
        kind: 'object',
        entries: value.entries.map(([id, event]) => [rename(id), inEvent(event)]),
      }
    }
    if (key !== 'event') return value
    return mapEntries(value, (name, part) => (name === 'created_event' ? inEvent(part) : part))
  })
}

function withOffset(item: Tree, { version, offset }: ReferenceForm): Tree {
  if (item.kind !== 'object') return item
  const isTransaction = get(item, 'events_by_id') !== undefined
  if (version === 2 && isTransaction) return item
  const digits = version === 2 ? 1 : offset
  const entry: [string, Tree] = ['offset', text(digits.toString(16).padStart(18, '0'))]
  const before = item.entries.findIndex(
    ([key]) => key === (isTransaction ? 'effective_at' : 'update_id'),
  )
  return { kind: 'object', entries: item.entries.toSpliced(before + 1, 0, entry) }
}

/** The compact form of a lossless value all of whose record fields have labels. */
export function toCompact(value: Tree): Tree {
  const [kind, content] = (value as TreeObject).entries[0] as [string, Tree]
  switch (kind) {
    case 'numeric':
      return text(printBigDecimal(textOf(content)))
    case 'date':
      return text(
        new Date(Number((content as { literal: string }).literal) * 86_400_000)
          .toISOString()
          .slice(0, 10),
      )
    case 'timestamp':
      return text(printMicros(BigInt(textOf(content))))
    case 'optional': {
      const inner = get(content, 'value')
      if (inner === undefined) return { kind: 'literal', literal: 'null' }
      const innerOptional = get(inner, 'optional')
      if (innerOptional === undefined) return toCompact(inner)
      const elements = get(innerOptional, 'value') === undefined ? [] : [toCompact(inner)]
      return { kind: 'array', elements }
    }
    case 'list':
      return { kind: 'array', elements: elementsOf(get(content, 'elements')).map(toCompact) }
    case 'textMap':
      return {
        kind: 'object',
        entries: elementsOf(get(content, 'entries')).map((entry) => [
          textOf(get(entry, 'key') ?? text('')),
          toCompact(get(entry, 'value') as Tree),
        ]),
      }
    case 'genMap':
      return {
        kind: 'array',
        elements: elementsOf(get(content, 'entries')).map((entry) => ({
          kind: 'array',
          elements: [toCompact(get(entry, 'key') as Tree), toCompact(get(entry, 'value') as Tree)],
        })),
      }
    case 'record':
      return {
        kind: 'object',
        entries: elementsOf(get(content, 'fields')).map((field) => [
          textOf(get(field, 'label') as Tree),
          toCompact(get(field, 'value') as Tree),
        ]),
      }
    case 'variant':
      return {
        kind: 'object',
        entries: [
          ['tag', get(content, 'constructor') as Tree],
          ['value', toCompact(get(content, 'value') as Tree)],
        ],
      }
    case 'enum':
      return get(content, 'constructor') as Tree
    default:
      return content
  }
}

/** As Java's BigDecimal.toString: an unscaled integer, a scale, and an exponent where it is small. */
function printBigDecimal(plain: string): string {
  const scale = plain.includes('.') ? plain.length - plain.indexOf('.') - 1 : 0
  const unscaled = BigInt(plain.replace('.', ''))
  const digits = `${unscaled < 0n ? -unscaled : unscaled}`
  const exponent = digits.length - 1 - scale
  if (exponent >= -6) return plain
  const mantissa = digits.length === 1 ? digits : `${digits[0]}.${digits.slice(1)}`
  return `${unscaled < 0n ? '-' : ''}${mantissa}E${exponent}`
}

function printMicros(micros: bigint): string {
  const rest = ((micros % 1000n) + 1000n) % 1000n
  const millis = new Date(Number((micros - rest) / 1000n)).toISOString().slice(0, -1)
  return `${millis}${`${rest}`.padStart(3, '0')}Z`.replace(/(\.000)?000Z$/, 'Z')
}

function mapEntries(tree: Tree, map: (key: string, value: Tree) => Tree): Tree {
  if (tree.kind === 'array') {
    return { kind: 'array', elements: tree.elements.map((element) => mapEntries(element, map)) }
  }
  if (tree.kind !== 'object') return tree
  return { kind: 'object', entries: tree.entries.map(([key, value]) => [key, map(key, value)]) }
}

function get(tree: Tree | undefined, key: string): Tree | undefined {
  if (tree?.kind !== 'object') return undefined
  return tree.entries.findLast(([name]) => name === key)?.[1]
}

function elementsOf(tree: Tree | undefined): Tree[] {
  return tree?.kind === 'array' ? tree.elements : []
}

function textOf(tree: Tree): string {
  return tree.kind === 'text' ? tree.text : ''
}

function text(content: string): Tree {
  return { kind: 'text', text: content }
}

function print(tree: Tree): string {
  return printTree(tree, { space: () => '', quote: (part) => JSON.stringify(part) })
}
