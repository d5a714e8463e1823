import { randomUUID } from 'node:crypto'
import { chmod, link, mkdir, open, readFile, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWK,
  SignJWT,
} from 'jose'

/**
 * The signing key of a node that has no identity provider configured: it lies in the data directory,
 * only its owner may read it, and whoever can read it can make tokens for any user. With a
 * configured provider the key is not used.
 */
export type DevKey = { kid: string; privateJwk: JWK; keySet: JSONWebKeySet }

/** The audience of development tokens when the configuration names none. */
export const DEV_AUDIENCE = 'https://annals.localhost'

const FILE_NAME = 'signing-key.json'
const ALGORITHM = 'ES256'
const OWNER_ONLY = 0o600
const TTL_SECONDS_MAX = 365 * 24 * 60 * 60

/** The node's key, created at its first start. Any number of processes may start at the same time. */
export const openDevKey = async (dataDirectory: string): Promise<DevKey> => {
  await mkdir(dataDirectory, { recursive: true })
  const path = join(dataDirectory, FILE_NAME)
  return (await readDevKey(dataDirectory)) ?? (await createDevKey(path, dataDirectory))
}

/** The key of a data directory, or undefined when no node without a provider has started there. */
export const readDevKey = async (dataDirectory: string): Promise<DevKey | undefined> => {
  const path = join(dataDirectory, FILE_NAME)
  let text: string
  try {
    text = await readFile(path, 'utf8')
    if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, OWNER_ONLY)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const jwk = parseKey(text)
  if (jwk === undefined) {
    throw new Error(`${path} is not a signing key. Remove it, and the next start makes a new one.`)
  }
  return devKeyOf(jwk)
}

/** A token for a user of this node, signed with its own key. */
export const mintDevToken = async (
  key: DevKey,
  options: { userId: string; ttlSeconds: number; audience: string; nowSeconds?: number },
): Promise<string> => {
  const { userId, ttlSeconds, audience } = options
  if (!(ttlSeconds > 0 && ttlSeconds <= TTL_SECONDS_MAX)) {
    throw new Error('A token lives at least one second and at most a year.')
  }
  const issuedAt = options.nowSeconds ?? Math.floor(Date.now() / 1000)
  return new SignJWT({ scope: 'daml_ledger_api' })
    .setProtectedHeader({ alg: ALGORITHM, kid: key.kid, typ: 'JWT' })
    .setSubject(userId)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + Math.floor(ttlSeconds))
    .sign(await importJWK(key.privateJwk, ALGORITHM))
}

/** The file appears whole or not at all, and the first of several processes wins. */
const createDevKey = async (path: string, dataDirectory: string): Promise<DevKey> => {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const jwk = { ...(await exportJWK(privateKey)), alg: ALGORITHM, use: 'sig' }
  const temporary = `${path}.${randomUUID()}`
  const file = await open(temporary, 'wx', OWNER_ONLY)
  try {
    await file.writeFile(`${JSON.stringify(jwk)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await link(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await unlink(temporary)
  }
  const key = await readDevKey(dataDirectory)
  if (key === undefined) throw new Error(`${path} was removed while the node started.`)
  return key
}

const parseKey = (text: string): JWK | undefined => {
  try {
    const jwk = JSON.parse(text) as JWK
    return jwk.kty === 'EC' && typeof jwk.d === 'string' ? jwk : undefined
  } catch {
    return undefined
  }
}

const devKeyOf = async (privateJwk: JWK): Promise<DevKey> => {
  const { kty, crv, x, y } = privateJwk
  const publicJwk = { kty, crv, x, y } as JWK
  const kid = await calculateJwkThumbprint(publicJwk)
  return {
    kid,
    privateJwk,
    keySet: { keys: [{ ...publicJwk, kid, alg: ALGORITHM, use: 'sig' }] },
  }
}
