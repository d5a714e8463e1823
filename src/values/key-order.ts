import { isObject, parseJsonExactly, printJsonExactly } from './json.ts'

/**
 * JavaScript objects list keys that look like integers first, so parsing {"10":…,"2":…} and printing
 * it again changes its order. Where the order must survive, every key gets a letter in front before
 * the text is parsed, and loses it again after it is printed.
 */
const MARK = 'k'
const STRING_AND_COLON = /"((?:[^"\\]|\\.)*)"(\s*:)?/g
const INTEGER_KEY = /"(?:0|[1-9]\d*)"\s*:/

export function hasIntegerKey(text: string): boolean {
  return INTEGER_KEY.test(text)
}

/** Parses JSON with every key marked. */
export function parseMarked(text: string): unknown {
  return parseJsonExactly(replaceKeys(text, (key) => `${MARK}${key}`))
}

export function printMarked(value: unknown): string {
  return replaceKeys(printJsonExactly(value), (key) => key.slice(MARK.length))
}

/** The same with plain keys, but for what stands under the given names, which stays marked. */
export function unmarkExcept(value: unknown, names: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((part) => unmarkExcept(part, names))
  if (!isObject(value)) return value
  const plain: Record<string, unknown> = Object.create(null)
  for (const [marked, part] of Object.entries(value)) {
    const key = marked.slice(MARK.length)
    plain[key] = names.has(key) ? part : unmarkExcept(part, names)
  }
  return plain
}

/** A string followed by a colon is a key, and nothing else is. */
function replaceKeys(text: string, replace: (key: string) => string): string {
  return text.replace(STRING_AND_COLON, (string, content: string, colon: string | undefined) =>
    colon === undefined ? string : `"${replace(content)}"${colon}`,
  )
}
