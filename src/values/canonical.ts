import { isObject, printJsonExactly } from './json.ts'

/**
 * JSON text that is equal for equal meanings: keys in order, and keys whose value is null left out.
 * Takes what `parseJsonExactly` read; numbers keep their digits.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isPlainObject(value)) return printJsonExactly(value)
  const parts: string[] = []
  for (const key of Object.keys(value).sort()) {
    const member = value[key]
    if (member === null || member === undefined) continue
    parts.push(`${JSON.stringify(key)}:${canonicalJson(member)}`)
  }
  return `{${parts.join(',')}}`
}

/** Numbers that a double cannot hold are objects of their own kind. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  return isObject(value) && Object.getPrototypeOf(value) !== null
}
