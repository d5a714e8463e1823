import { hash as hashOf } from 'node:crypto'
import type { Instant } from '../values/instant.ts'

/**
 * Update ids look like hashes, as everywhere, but the last 64 bits hide the offset: whoever knows the
 * ledger's nonce reads it from the id. So an update is found by its id without an index, which every
 * commit would pay for.
 */
const PREFIX = '1220'
const HASH_DIGITS = 48
const OFFSET_DIGITS = 16

export function updateIdOf(nonce: string, offset: bigint, recordTime: Instant): string {
  const hash = digest(`update/${nonce}/${offset}/${recordTime}`).slice(0, HASH_DIGITS)
  const hidden = (offset ^ maskOf(nonce, hash)).toString(16).padStart(OFFSET_DIGITS, '0')
  return `${PREFIX}${hash}${hidden}`
}

/** The offset that the id hides; some number when it is an id of another ledger. */
export function offsetOfUpdate(nonce: string, updateId: string): bigint | undefined {
  if (!/^1220[0-9a-f]{64}$/.test(updateId)) return undefined
  const hash = updateId.slice(PREFIX.length, PREFIX.length + HASH_DIGITS)
  const hidden = BigInt(`0x${updateId.slice(-OFFSET_DIGITS)}`)
  const offset = hidden ^ maskOf(nonce, hash)
  return offset < 2n ** 63n ? offset : undefined
}

function maskOf(nonce: string, hash: string): bigint {
  return BigInt(`0x${digest(`offset/${nonce}/${hash}`).slice(0, OFFSET_DIGITS)}`)
}

function digest(text: string): string {
  return hashOf('sha256', text)
}
