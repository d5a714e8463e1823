import { invalidField } from './errors.ts'

/** A version of an update: undefined when it asks for no check. */
export const parseResourceVersion = (text: string): bigint | undefined => {
  if (text === '') return undefined
  const version = /^[+-]?\d{1,19}$/.test(text) ? BigInt(text.replace(/^\+/, '')) : undefined
  if (version === undefined || BigInt.asIntN(64, version) !== version) {
    throw invalidField('resource_version', 'it must be the resourceVersion that was read, a number')
  }
  return version
}

/** An update must say what it changes, each thing once. */
export const checkMask = (
  mask: string[],
  known: ReadonlySet<string>,
  refuse: (reason: string) => Error,
): void => {
  if (mask.length === 0) throw refuse('the update mask is empty; name the fields to change')
  const unknown = mask.find((path) => !known.has(path))
  if (unknown !== undefined) {
    throw refuse(`the update mask names the unknown field '${unknown.slice(0, 64)}'`)
  }
  if (new Set(mask).size !== mask.length) throw refuse('the update mask names a field twice')
}
