import { createHmac } from 'node:crypto'
import {
  type CryptoKey,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose'
import { PARTICIPANT_ID } from './ledger-api.ts'

/** The keys, issuers and tokens of the shared world: one default provider and two named ones. */
export type SigningKey = { kid: string; alg: string; privateKey: CryptoKey; jwk: JWK; pem: string }

export const AUDIENCE = { default: 'AUD0', idp1: 'AUD1', idp2: 'AUD2' } as const
export const ISSUER = { idp1: 'https://iss1.example/', idp2: 'https://iss2.example/' } as const
export const JWKS_URL = {
  default: 'http://jwks.test/default',
  idp1: 'http://jwks.test/idp1',
  idp2: 'http://jwks.test/idp2',
} as const

export type Keys = Awaited<ReturnType<typeof makeKeys>>

export async function makeKey(kid: string, alg: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), kid }
  return { kid, alg, privateKey, jwk, pem: await exportSPKI(publicKey) }
}

export async function makeKeys() {
  const [k0, k1, k2, es256, es512, es384, stranger] = await Promise.all([
    makeKey('k0', 'RS256'),
    makeKey('k1', 'RS256'),
    makeKey('k2', 'RS256'),
    makeKey('e256', 'ES256'),
    makeKey('e512', 'ES512'),
    makeKey('e384', 'ES384'),
    makeKey('k0', 'RS256'),
  ])
  return { k0, k1, k2, es256, es512, es384, stranger }
}

export const keySets = (keys: Keys): Record<string, JWK[]> => ({
  [JWKS_URL.default]: [keys.k0.jwk, keys.es256.jwk, keys.es512.jwk, keys.es384.jwk],
  [JWKS_URL.idp1]: [keys.k1.jwk],
  [JWKS_URL.idp2]: [keys.k2.jwk],
})

/** A `fetch` that serves these key sets and refuses every other address. */
export function fetchOf(sets: Record<string, JWK[] | undefined>): typeof globalThis.fetch {
  return async (input) => {
    const keys = sets[String(input)]
    if (keys === undefined) throw new TypeError('fetch failed')
    return Response.json({ keys })
  }
}

export type TokenParts = {
  key: SigningKey
  claims: Record<string, unknown>
  header?: Record<string, unknown>
}

/** A signed token; claims that are undefined are left out. */
export async function sign({ key, claims, header }: TokenParts): Promise<string> {
  return new SignJWT(JSON.parse(JSON.stringify(claims)) as JWTPayload)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .sign(key.privateKey)
}

/** A token put together by hand, for what no library signs. */
export function forge(header: object, claims: unknown, signature = ''): string {
  const part = (value: unknown) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
  return `${part(header)}.${part(claims)}.${signature}`
}

export function hmac(header: object, claims: object, secret: string): string {
  const signed = forge(header, claims).slice(0, -1)
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

export const nowSeconds = (): number => Math.floor(Date.now() / 1000)
const HOUR = 3600
const PARTICIPANT_AUDIENCE = 'https://daml.com/jwt/aud/participant/'

/** Headers of a request that carries one of the symbolic tokens of the case catalogue. */
export async function headersOf(
  keys: Keys,
  name: string,
): Promise<Record<string, string | string[]>> {
  if (name === 'none') return {}
  if (name === 'bearer-empty') return { authorization: 'Bearer ' }
  if (name === 'bearer-only') return { authorization: 'Bearer' }
  if (name === 'basic') return { authorization: 'Basic YTpi' }
  if (name === 'garbage') return { authorization: 'Bearer abc' }
  if (name === 'garbage-jwt') return { authorization: `Bearer ${forge({ alg: 'RS256' }, 'x{')}` }
  if (name === 'two-bearers') {
    const bearer = `Bearer ${await tokenOf(keys, 'admin')}`
    return { authorization: [bearer, bearer] }
  }
  if (name === 'lowercase-bearer') {
    return { authorization: `bearer ${await tokenOf(keys, 'admin')}` }
  }
  if (name === 'ws-header') {
    const token = await tokenOf(keys, 'admin')
    return { 'sec-websocket-protocol': `jwt.token.${token}, daml.ws.auth` }
  }
  return { authorization: `Bearer ${await tokenOf(keys, name)}` }
}

export async function tokenOf(keys: Keys, name: string): Promise<string> {
  const base = { sub: 'participant_admin', aud: [AUDIENCE.default], exp: nowSeconds() + HOUR }
  const byDefault = (changes: Record<string, unknown>, header?: Record<string, unknown>) =>
    sign({ key: keys.k0, claims: { ...base, ...changes }, ...(header && { header }) })
  const byIdp1 = (changes: Record<string, unknown>, key = keys.k1) =>
    sign({
      key,
      claims: { ...base, iss: ISSUER.idp1, aud: [AUDIENCE.idp1], sub: 'bob', ...changes },
    })
  const none = undefined
  const makers: Record<string, () => Promise<string>> = {
    admin: () => byDefault({}),
    alice: () => byDefault({ sub: 'alice' }),
    carol: () => byDefault({ sub: 'carol' }),
    root2: () => byDefault({ sub: 'root2' }),
    'admin-2m': () => byDefault({ exp: nowSeconds() + 120 }),
    'admin-1h': () => byDefault({}),
    'default-bob': () => byDefault({ sub: 'bob' }),
    'default-any-iss': () => byDefault({ iss: 'https://anyone.example/' }),
    'unknown-user': () => byDefault({ sub: 'ghost' }),
    'deactivated-admin': () => byDefault({ sub: 'dave' }),
    'bad-sub': () => byDefault({ sub: '??invalid_user??' }),
    'empty-sub': () => byDefault({ sub: '' }),
    'no-sub': () => byDefault({ sub: none }),
    'numeric-sub': () => byDefault({ sub: 5 }),
    expired: () => byDefault({ exp: nowSeconds() - 86_400 }),
    'expired-1s': () => byDefault({ exp: nowSeconds() - 1 }),
    'expired-5s': () => byDefault({ exp: nowSeconds() - 5 }),
    'not-yet-valid': () => byDefault({ nbf: nowSeconds() + HOUR }),
    'future-iat': () => byDefault({ iat: nowSeconds() + HOUR }),
    'no-exp': () => byDefault({ exp: none }),
    'wrong-aud': () => byDefault({ aud: ['other'] }),
    'no-aud': () => byDefault({ aud: none }),
    'extra-aud': () => byDefault({ aud: ['other', AUDIENCE.default] }),
    'aud-string': () => byDefault({ aud: AUDIENCE.default }),
    'aud-plus-scope': () => byDefault({ scope: 'x' }),
    'scope-only': () => byDefault({ aud: none, scope: 'daml_ledger_api' }),
    'scope-S': () => byDefault({ aud: none, scope: 'S' }),
    'scope-S-and-more': () => byDefault({ aud: none, scope: 'S x' }),
    'scope-other': () => byDefault({ aud: none, scope: 'x y' }),
    'scope-none': () => byDefault({ aud: none }),
    'scp-array-S': () => byDefault({ aud: none, scp: ['S'] }),
    'scope-daml_ledger_api': () => byDefault({ aud: none, scope: 'daml_ledger_api' }),
    'scope-prefixed': () => byDefault({ aud: none, scope: 'resource_server/daml_ledger_api' }),
    'aud-this-participant': () => byDefault({ aud: [PARTICIPANT_AUDIENCE + PARTICIPANT_ID] }),
    'aud-other-participant': () => byDefault({ aud: [`${PARTICIPANT_AUDIENCE}other::1220`] }),
    'aud-two-participants': () =>
      byDefault({ aud: [PARTICIPANT_AUDIENCE + PARTICIPANT_ID, `${PARTICIPANT_AUDIENCE}other`] }),
    'wrong-key': () => sign({ key: keys.stranger, claims: base }),
    'unknown-kid': () => byDefault({}, { kid: 'k9' }),
    'no-kid': () => byDefault({}, { kid: none }),
    'alg-none': async () => forge({ alg: 'none', kid: 'k0' }, base),
    'alg-hs256-confusion': async () => hmac({ alg: 'HS256', kid: 'k0' }, base, keys.k0.pem),
    rs384: async () => `${forge({ alg: 'RS384', kid: 'k0' }, base)}${'A'.repeat(342)}`,
    es256: () => sign({ key: keys.es256, claims: base }),
    es512: () => sign({ key: keys.es512, claims: base }),
    es384: () => sign({ key: keys.es384, claims: base }),
    'idp1-bob': () => byIdp1({}),
    'idp1-alice': () => byIdp1({ sub: 'alice' }),
    'idp1-admin': () => byIdp1({ sub: 'idpadmin1' }),
    'idp1-participant-admin': () => byIdp1({ sub: 'padmin1' }),
    'idp2-bob': () =>
      sign({
        key: keys.k2,
        claims: { ...base, iss: ISSUER.idp2, aud: [AUDIENCE.idp2], sub: 'bob' },
      }),
    'idp1-wrong-key': () => byIdp1({}, { ...keys.stranger, kid: 'k1' }),
    'idp1-wrong-aud': () => byIdp1({ aud: ['other'] }),
    'idp1-no-iss': () => byIdp1({ iss: none }),
    'unknown-iss': () => byIdp1({ iss: 'https://nobody.example/' }),
    'idp1-bob-scope': () => byIdp1({ aud: none, scope: 'daml_ledger_api' }),
    'idp1-bob-plain': () => byIdp1({ aud: none }),
    'idp1-bob-default-key': () =>
      byDefault({ iss: ISSUER.idp1, aud: [AUDIENCE.default, AUDIENCE.idp1], sub: 'bob' }),
  }
  const make = makers[name]
  if (make === undefined) throw new Error(`The catalogue has no token named ${name}.`)
  return make()
}
