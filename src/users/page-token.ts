import { invalidArgument } from './errors.ts'

/**
 * A page token names the last id of the page before. Its form is the protocol's: base64url with
 * padding around a message of one string field. It is neither signed nor tied to the caller,
 * because it tells nothing that the page did not.
 */
const STRING_FIELD_1 = 0x0a
/** Ids have at most 255 characters of one byte, so the length takes at most two varint bytes. */
const ID_BYTES_MAX = 255

export const encodePageToken = (lastId: string): string => {
  const id = Buffer.from(lastId, 'utf8')
  const length = id.length < 128 ? [id.length] : [(id.length & 0x7f) | 0x80, id.length >> 7]
  const token = Buffer.from([STRING_FIELD_1, ...length, ...id]).toString('base64')
  return token.replaceAll('+', '-').replaceAll('/', '_')
}

/** The id inside a token; undefined for the empty token of a first page. */
export const decodePageToken = (
  token: string,
  fault: (id: string) => string | undefined,
): string | undefined => {
  if (token === '') return undefined
  const id = /^[A-Za-z0-9_-]+={0,2}$/.test(token)
    ? idOf(Buffer.from(token, 'base64url'))
    : undefined
  if (id === undefined || fault(id) !== undefined) throw invalidArgument('Invalid page token')
  return id
}

const idOf = (message: Buffer): string | undefined => {
  if (message[0] !== STRING_FIELD_1) return undefined
  const [low = 0, high = 0] = message.subarray(1, 3)
  const [length, start] = low < 128 ? [low, 2] : [(low & 0x7f) | (high << 7), 3]
  if (length > ID_BYTES_MAX || message.length !== start + length) return undefined
  return message.toString('utf8', start)
}
