import { invalidArgument } from './errors.ts'

/** Keys and values of one user or party together, in UTF-8. */
const ANNOTATIONS_BYTES_MAX = 256 * 1024
const KEY_PREFIX_CHARACTERS_MAX = 253

const NAME = /^[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$/
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/

/** Keys are `[prefix/]name` like those of Kubernetes; keys to be deleted are checked as well. */
export const checkAnnotationKeys = (annotations: ReadonlyMap<string, string>): void => {
  for (const key of annotations.keys()) {
    const parts = key.split('/')
    const name = parts.at(-1) ?? ''
    const prefix = parts.length === 2 ? parts[0] : undefined
    if (parts.length > 2) {
      throw invalidArgument(`annotation key '${short(key)}' has more than one '/'`)
    }
    if (
      prefix !== undefined &&
      (prefix.length > KEY_PREFIX_CHARACTERS_MAX || !DNS_SUBDOMAIN.test(prefix))
    ) {
      throw invalidArgument(`the prefix of annotation key '${short(key)}' is not a DNS subdomain`)
    }
    if (!NAME.test(name)) {
      throw invalidArgument(
        `the name of annotation key '${short(key)}' must have 1 to 63 letters, digits, '.', '-' or '_', with a letter or digit at both ends`,
      )
    }
  }
}

/** A new user's annotations: an empty value would mean a deletion, so it is refused. */
export const newAnnotations = (
  given: ReadonlyMap<string, string>,
  tooLarge: () => Error,
): Record<string, string> => {
  for (const [key, value] of given) {
    if (value === '') {
      throw invalidArgument(`the value of annotation '${short(key)}' must not be empty`)
    }
  }
  return measured(Object.fromEntries(given), tooLarge)
}

/** Existing annotations with changes merged in; an empty value deletes its key. */
export const mergedAnnotations = (
  current: Record<string, string>,
  changes: ReadonlyMap<string, string>,
  tooLarge: () => Error,
): Record<string, string> => {
  const merged = new Map(Object.entries(current))
  for (const [key, value] of changes) {
    if (value === '') merged.delete(key)
    else merged.set(key, value)
  }
  return measured(Object.fromEntries(merged), tooLarge)
}

const measured = (
  annotations: Record<string, string>,
  tooLarge: () => Error,
): Record<string, string> => {
  let bytes = 0
  for (const [key, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (bytes > ANNOTATIONS_BYTES_MAX) throw tooLarge()
  return annotations
}

const short = (text: string): string => (text.length > 50 ? `${text.slice(0, 50)}...` : text)
