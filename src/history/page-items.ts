import { isUtf8 } from 'node:buffer'
import { parseJsonExactly, printJsonExactly } from '../values/json.ts'

/** Where the items of an update page stand in its body, as it was received. */
export type PageItems = { body: Buffer; starts: number[]; ends: number[] }

const HEAD = Buffer.from('{"transactions":[')
const TAIL = Buffer.from(']}')
/** How the items of all known scans begin. A ledger value may hold the same text. */
const BORDER = Buffer.from('},{"update_id":')

/**
 * Guesses the borders of a page's items by a search for how they begin. The guess is right when each
 * item by itself is JSON: a border inside of an item would leave two broken pieces.
 */
export function guessItems(body: Buffer): PageItems | undefined {
  const inner = body.length - TAIL.length
  if (inner < HEAD.length || !body.subarray(0, HEAD.length).equals(HEAD)) return undefined
  if (!body.subarray(inner).equals(TAIL)) return undefined
  if (inner === HEAD.length) return { body, starts: [], ends: [] }
  const starts = [HEAD.length]
  const ends: number[] = []
  for (let at = body.indexOf(BORDER, HEAD.length); at >= 0; at = body.indexOf(BORDER, at + 2)) {
    ends.push(at + 1)
    starts.push(at + 2)
  }
  ends.push(inner)
  return { body, starts, ends }
}

/** Reads the items of a page in any layout; undefined when it is not one. */
export function readItems(body: Buffer): PageItems | undefined {
  if (!isUtf8(body)) return undefined
  let page: unknown
  try {
    page = parseJsonExactly(body.toString('utf8'))
  } catch {
    return undefined
  }
  const items = (page as { transactions?: unknown } | null)?.transactions
  if (!Array.isArray(items)) return undefined
  return scanItems(body, items.length) ?? printItems(items)
}

const QUOTE = 34
const COMMA = 44
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125

/** The items as they stand in a body that is known to be JSON, when the list is all that it holds. */
function scanItems(body: Buffer, count: number): PageItems | undefined {
  const head = /^\s*\{\s*"transactions"\s*:\s*\[\s*/.exec(body.toString('latin1', 0, 200))
  if (head === null) return undefined
  const items: PageItems = { body, starts: [], ends: [] }
  let depth = 0
  let start = head[0].length
  for (let at = start; at < body.length; at += 1) {
    const code = body[at]
    if (code === QUOTE) {
      at += 1
      while (body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1
    else if (depth > 0) {
      if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1
    } else if (code === COMMA || code === CLOSE_BRACKET) {
      if (count > 0) {
        items.starts.push(start)
        items.ends.push(at)
      }
      start = at + 1
      if (code === CLOSE_BRACKET) break
    }
  }
  return items.starts.length === count ? items : undefined
}

function printItems(list: unknown[]): PageItems {
  const items: PageItems = { body: Buffer.alloc(0), starts: [], ends: [] }
  const texts = list.map((item) => Buffer.from(printJsonExactly(item)))
  let length = 0
  for (const text of texts) {
    items.starts.push(length)
    length += text.length
    items.ends.push(length)
  }
  return { ...items, body: Buffer.concat(texts) }
}

export function itemBytes({ body, starts, ends }: PageItems, index: number): Buffer {
  return body.subarray(starts[index], ends[index])
}
