import { type CryptoKey, importJWK, type JWK } from 'jose'

export type SignatureAlgorithm = 'RS256' | 'ES256' | 'ES512'
export type Key = { algorithm: SignatureAlgorithm; kid: string | undefined; publicKey: CryptoKey }
/** Without a key id, the one key of a set that has no other. */
export type KeyWanted = { algorithm: string; kid: string | undefined }

/** Real key sets have a handful. */
const KEYS_MAX = 100
/** What RFC 7518 asks of RS256. */
const RSA_BITS_MIN = 2048

/** Keys that did not change stay the same objects, so that verified tokens of theirs stay verified. */
export const importKeys = async (list: unknown[], previous: Key[]): Promise<Key[]> => {
  const keys: Key[] = []
  for (const jwk of list.slice(0, KEYS_MAX)) {
    const key = await importKey(jwk)
    if (key !== undefined) keys.push((await sameKey(previous, key)) ?? key)
  }
  return keys
}

const sameKey = async (previous: Key[], key: Key): Promise<Key | undefined> => {
  const bytes = await exported(key)
  for (const old of previous) {
    if (
      old.kid === key.kid &&
      old.algorithm === key.algorithm &&
      bytes.equals(await exported(old))
    ) {
      return old
    }
  }
  return undefined
}

const exported = async (key: Key): Promise<Buffer> =>
  Buffer.from(await crypto.subtle.exportKey('spki', key.publicKey))

/**
 * Only the public parts of RSA, P-256 and P-521 signature keys are taken, each for the one algorithm
 * of its kind, so that no header can choose another. Anything else is left out of the set.
 */
const importKey = async (jwk: unknown): Promise<Key | undefined> => {
  if (typeof jwk !== 'object' || jwk === null) return undefined
  const { kty, crv, n, e, x, y, kid, use, alg, key_ops: operations } = jwk as JWK
  const algorithm = algorithmOf(kty, crv)
  if (algorithm === undefined || (alg !== undefined && alg !== algorithm)) return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    return undefined
  }
  const parts = (kty === 'RSA' ? { kty, n, e } : { kty, crv, x, y }) as JWK
  try {
    const publicKey = await importJWK(parts, algorithm)
    if (publicKey instanceof Uint8Array || isWeak(publicKey)) return undefined
    return { algorithm, kid: typeof kid === 'string' ? kid : undefined, publicKey }
  } catch {
    return undefined
  }
}

const isWeak = ({ algorithm }: CryptoKey): boolean =>
  ((algorithm as { modulusLength?: number }).modulusLength ?? RSA_BITS_MIN) < RSA_BITS_MIN

const algorithmOf = (kty: unknown, crv: unknown): SignatureAlgorithm | undefined => {
  if (kty === 'RSA') return 'RS256'
  if (kty === 'EC' && crv === 'P-256') return 'ES256'
  if (kty === 'EC' && crv === 'P-521') return 'ES512'
  return undefined
}

export const pickKey = (keys: Key[], { algorithm, kid }: KeyWanted): Key | undefined => {
  if (kid === undefined)
    return keys.length === 1 && keys[0]?.algorithm === algorithm ? keys[0] : undefined
  return keys.find((key) => key.kid === kid && key.algorithm === algorithm)
}
