import { invalidArgument } from './errors.ts'

/** Keys and values of one user or party together, in UTF-8. */
const ANNOTATIONS_BYTES_MAX = 256 * 1024
const KEY_PREFIX_CHARACTERS_MAX = 253

const NAME = /^[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$/
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/i

/** What a new user or party may have: an empty value would mean a deletion, so it is refused. */
export const checkNewAnnotations = (annotations: ReadonlyMap<string, string>): void => {
  checkAnnotationChanges(annotations)
  for (const [key, value] of annotations) {
    if (value === '') {
      throw invalidArgument(`the value of annotation '${short(key)}' must not be empty`)
    }
  }
}

/** What a request may change; an empty value deletes its key and does not count. */
export const checkAnnotationChanges = (annotations: ReadonlyMap<string, string>): void => {
  const kept = [...annotations].filter(([, value]) => value !== '')
  if (bytesOf(kept) > ANNOTATIONS_BYTES_MAX) {
    throw invalidArgument('the annotations of the request are larger than 256 KiB')
  }
  checkKeys(annotations)
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
  if (bytesOf(merged) > ANNOTATIONS_BYTES_MAX) throw tooLarge()
  return Object.fromEntries(merged)
}

/** Keys are `[prefix/]name` like those of Kubernetes; keys to be deleted are checked as well. */
const checkKeys = (annotations: ReadonlyMap<string, string>): void => {
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

const bytesOf = (annotations: Iterable<[key: string, value: string]>): number => {
  let bytes = 0
  for (const [key, value] of annotations) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  return bytes
}

const short = (text: string): string => (text.length > 50 ? `${text.slice(0, 50)}...` : text)
