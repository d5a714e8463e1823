// JSON as a tree that forgets nothing but spacing and escapes: the order of keys and the digits of numbers stay.

export type Tree =
  | { kind: 'object'; entries: [key: string, value: Tree][] }
  | { kind: 'array'; elements: Tree[] }
  | { kind: 'text'; text: string }
  /** A number, true, false or null, as written. */
  | { kind: 'literal'; literal: string }

export type TreeObject = Tree & { kind: 'object' }

const TOKEN = /\s*([{}[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+)/y

/** Reads JSON that is known to be valid. */
export function readTree(json: string): Tree {
  const token = new RegExp(TOKEN)
  const next = (): string => {
    const found = token.exec(json)?.[1]
    if (found === undefined) throw new Error(`Not JSON: ${json.slice(0, 60)}`)
    return found
  }
  const read = (first: string): Tree => {
    if (first === '{') return { kind: 'object', entries: [...readEntries()] }
    if (first === '[') return { kind: 'array', elements: [...readElements()] }
    return first.startsWith('"')
      ? { kind: 'text', text: JSON.parse(first) }
      : { kind: 'literal', literal: first }
  }
  function* readEntries(): Generator<[string, Tree]> {
    for (let key = next(); key !== '}'; key = next()) {
      if (key === ',') continue
      next()
      yield [JSON.parse(key), read(next())]
    }
  }
  function* readElements(): Generator<Tree> {
    for (let first = next(); first !== ']'; first = next()) {
      if (first !== ',') yield read(first)
    }
  }
  return read(next())
}

export type TreeStyle = {
  /** White space that may stand between any two tokens. */
  space(): string
  quote(text: string): string
}

export function printTree(tree: Tree, style: TreeStyle): string {
  const spaced = (token: string) => `${style.space()}${token}${style.space()}`
  switch (tree.kind) {
    case 'text':
      return style.quote(tree.text)
    case 'literal':
      return tree.literal
    case 'array':
      return `[${style.space()}${tree.elements.map((element) => printTree(element, style)).join(spaced(','))}${style.space()}]`
    case 'object':
      return `{${style.space()}${tree.entries
        .map(([key, value]) => `${style.quote(key)}${spaced(':')}${printTree(value, style)}`)
        .join(spaced(','))}${style.space()}}`
  }
}

export function member(tree: Tree, key: string): Tree | undefined {
  if (tree.kind !== 'object') return undefined
  return tree.entries.find(([name]) => name === key)?.[1]
}
