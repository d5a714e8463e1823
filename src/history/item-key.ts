import { createHash } from 'node:crypto'
import { canonicalJson } from '../values/canonical.ts'
import { isObject, parseJsonExactly } from '../values/json.ts'
import { UpdateError } from './item-fields.ts'
import { guessItems, itemBytes, type PageItems, readItems } from './page-items.ts'
import { type Item, readItem } from './update.ts'

/** What an item of a page says, by a key that is equal for equal meanings. */
export type ItemKey = {
  /** Of the meaning: fields that the specification does not name, their order and the offset aside. */
  key: string
  /** Of the bytes as they were received. */
  raw: string
}

/** The items of a page up to the first one that is none, and what is wrong with that. */
export type PageKeys = { keys: ItemKey[]; fault: { index: number; reason: string } | undefined }

/** Keys of the items of several pages of one encoding; what they share is read once. */
export function pageKeys(bodies: readonly Buffer[]): PageKeys[] {
  const known = new Map<string, string>()
  return bodies.map((body) => {
    const guessed = guessItems(body)
    const keys = guessed === undefined ? undefined : keysOf(guessed, known)
    if (keys !== undefined && keys.fault === undefined) return keys
    // A wrong guess shows as a broken item; so does a broken item.
    const items = readItems(body)
    if (items !== undefined) return keysOf(items, known)
    return keys ?? { keys: [], fault: { index: 0, reason: 'The answer is not a page of updates.' } }
  })
}

function keysOf(items: PageItems, known: Map<string, string>): PageKeys {
  const keys: ItemKey[] = []
  for (let index = 0; index < items.starts.length; index += 1) {
    const bytes = itemBytes(items, index)
    const raw = hashOf(bytes)
    let key = known.get(raw)
    if (key === undefined) {
      try {
        key = itemKey(bytes.toString('utf8'))
      } catch (error) {
        return { keys, fault: { index, reason: (error as Error).message } }
      }
      known.set(raw, key)
    }
    keys.push({ key, raw })
  }
  return { keys, fault: undefined }
}

/** Equal for items that mean the same in the same encoding. Throws for what is no item. */
export function itemKey(text: string): string {
  let parsed: unknown
  try {
    parsed = parseJsonExactly(text)
  } catch (error) {
    throw new UpdateError('The update', `is not JSON: ${(error as Error).message}`)
  }
  const item = readItem(withoutNulls(parsed))
  const hash = createHash('sha256')
  item.structure.forEach((piece, i) => {
    hash.update(piece)
    const value = item.values[i] as Item['values'][number] | undefined
    if (value !== undefined) hash.update(canonicalJson(sortTextMaps(value.value)))
  })
  return hash.digest('base64')
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64')
}

/** Fields of the item itself that are null are absent. */
function withoutNulls(source: unknown): unknown {
  if (!isObject(source)) return source
  const present = Object.entries(source).filter(([, value]) => value !== null)
  const item = Object.fromEntries(present)
  return isObject(item.event) ? { ...item, event: withoutNulls(item.event) } : item
}

/** Scans list the entries of a text map each in their own order; in compact form they are keys anyway. */
function sortTextMaps(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortTextMaps)
  if (!isObject(value) || Object.getPrototypeOf(value) === null) return value
  const sorted = Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, sortTextMaps(member)]),
  )
  const map = sorted.textMap
  if (isObject(map) && Array.isArray(map.entries)) {
    const byKey = (entry: unknown) => (isObject(entry) ? String(entry.key ?? '') : '')
    map.entries.sort((a, b) => (byKey(a) < byKey(b) ? -1 : 1))
  }
  return sorted
}
