import assert from 'node:assert/strict'
import { createSign, generateKeyPairSync, KeyObject, sign as signBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { generateKeyPair, SignJWT } from 'jose'
import type { Db } from '../src/db/db.ts'
import { forEachEngine } from './support/engines.ts'
import {
  AUDIENCE,
  forge,
  hmac,
  ISSUER,
  type Keys,
  makeKeys,
  nowSeconds,
  sign,
  tokenOf,
} from './support/ledger-tokens.ts'
import { type LedgerWorld, openWorld, providerBody } from './support/ledger-world.ts'

const HOUR = 3600

/** Every way to lie that we know of. All must be refused alike, with nothing told. */
async function hostileHeaders(keys: Keys): Promise<Record<string, Record<string, unknown>>> {
  const good = await tokenOf(keys, 'admin')
  const [header = '', payload = '', signature = ''] = good.split('.')
  const claims = { sub: 'participant_admin', aud: [AUDIENCE.default], exp: nowSeconds() + HOUR }
  const k0 = { alg: 'RS256', kid: 'k0' }
  const claim = (changes: Record<string, unknown>) =>
    sign({ key: keys.k0, claims: { ...claims, ...changes } })
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const pkcs1 = (head: object, body: unknown, algorithm: string) => {
    const text = `${part(head)}.${part(body)}`
    return `${text}.${createSign(algorithm).update(text).sign(keyObject(keys), 'base64url')}`
  }
  const own = await generateKeyPair('RS256', { extractable: true })
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  const weakText = `${part(k0)}.${part(claims)}`
  const idp1 = { ...claims, iss: ISSUER.idp1, aud: [AUDIENCE.idp1], sub: 'bob' }

  const tokens: Record<string, string> = {
    'a word': 'abc',
    'one dot': 'a.b',
    'two dots': '..',
    'three dots': `${good}.x`,
    'five parts like an encrypted token': 'a.b.c.d.e',
    'no signature': `${header}.${payload}.`,
    'no signature and no dot': `${header}.${payload}`,
    'a cut signature': `${header}.${payload}.${signature.slice(0, -8)}`,
    'another signature': `${header}.${payload}.${'A'.repeat(signature.length)}`,
    'a longer signature': `${header}.${payload}.${signature}AAAA`,
    'the signature of another token': `${header}.${payload}.${(await tokenOf(keys, 'alice')).split('.')[2]}`,
    'another payload': `${header}.${part({ ...claims, sub: 'root2' })}.${signature}`,
    'another header': `${part({ ...k0, typ: 'at+jwt' })}.${payload}.${signature}`,
    'a blank inside': `${header}. ${payload}.${signature}`,
    'padding characters': `${header}=.${payload}.${signature}`,
    'the other base64 alphabet': `${header}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}+`,
    'a header that is not JSON': forge({}, claims).replace(/^[^.]*/, 'eHg'),
    'a header that is a list': `${part([1])}.${payload}.${signature}`,
    'a header that is null': `${part(null)}.${payload}.${signature}`,
    'a payload that is not JSON': forge(k0, 'x{', signature),
    'a payload that is a list': pkcs1(k0, [1], 'sha256'),
    'a payload that is null': pkcs1(k0, null, 'sha256'),
    'a payload that is text': pkcs1(k0, 'participant_admin', 'sha256'),
    'alg none': forge({ alg: 'none', kid: 'k0' }, claims),
    'alg None': forge({ alg: 'None', kid: 'k0' }, claims),
    'alg NONE with a signature': forge({ alg: 'NONE', kid: 'k0' }, claims, signature),
    'alg empty': forge({ alg: '', kid: 'k0' }, claims, signature),
    'no alg': forge({ kid: 'k0' }, claims, signature),
    'alg a number': forge({ alg: 256, kid: 'k0' }, claims, signature),
    'alg in lower case': forge({ alg: 'rs256', kid: 'k0' }, claims, signature),
    'HS256 with the PEM of the public key': hmac({ alg: 'HS256', kid: 'k0' }, claims, keys.k0.pem),
    'HS256 with the modulus': hmac({ alg: 'HS256', kid: 'k0' }, claims, String(keys.k0.jwk.n)),
    'HS256 with the JWK': hmac({ alg: 'HS256', kid: 'k0' }, claims, JSON.stringify(keys.k0.jwk)),
    'HS256 with an empty secret': hmac({ alg: 'HS256', kid: 'k0' }, claims, ' '),
    'HS256 with the secret of local networks': hmac({ alg: 'HS256' }, claims, 'unsafe'),
    'RS256 made by an HMAC': hmac(k0, claims, keys.k0.pem),
    'RS384 by the right key': pkcs1({ alg: 'RS384', kid: 'k0' }, claims, 'sha384'),
    'RS512 by the right key': pkcs1({ alg: 'RS512', kid: 'k0' }, claims, 'sha512'),
    'RS256 with a SHA-1 signature': pkcs1(k0, claims, 'sha1'),
    'PS256 by the right key': await new SignJWT(claims)
      .setProtectedHeader({ alg: 'PS256', kid: 'k0' })
      .sign((await generateKeyPair('PS256')).privateKey),
    'ES256 under the id of an RSA key': await sign({ key: { ...keys.es256, kid: 'k0' }, claims }),
    'RS256 under the id of an EC key': await sign({ key: { ...keys.k0, kid: 'e256' }, claims }),
    ES384: await tokenOf(keys, 'es384'),
    EdDSA: await new SignJWT(claims)
      .setProtectedHeader({ alg: 'EdDSA', kid: 'k0' })
      .sign((await generateKeyPair('EdDSA')).privateKey),
    'an EC signature of zeros': forge(
      { alg: 'ES256', kid: 'e256' },
      claims,
      Buffer.alloc(64).toString('base64url'),
    ),
    'an EC signature in DER': (() => {
      const text = `${part({ alg: 'ES256', kid: 'e256' })}.${part(claims)}`
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      return `${text}.${signBytes('sha256', Buffer.from(text), privateKey).toString('base64url')}`
    })(),
    'a stranger key under a known id': await tokenOf(keys, 'wrong-key'),
    'a weak key under a known id': `${weakText}.${createSign('sha256').update(weakText).sign(weak, 'base64url')}`,
    'an unknown key id': await tokenOf(keys, 'unknown-kid'),
    'no key id': await tokenOf(keys, 'no-kid'),
    'a key id that is a path': await sign({
      key: { ...keys.stranger, kid: '../../dev/null' },
      claims,
    }),
    'a key id that is a number': forge({ alg: 'RS256', kid: 0 }, claims, signature),
    'its own key in the header': await new SignJWT(claims)
      .setProtectedHeader({ ...k0, jwk: keys.stranger.jwk })
      .sign(own.privateKey),
    'its own key set URL in the header': await new SignJWT(claims)
      .setProtectedHeader({ ...k0, jku: 'http://evil.example/jwks', x5u: 'http://evil.example/' })
      .sign(own.privateKey),
    'an unknown critical header': await sign({
      key: keys.k0,
      claims,
      header: { crit: ['exp'], exp: nowSeconds() + HOUR },
    }).catch(() => forge({ ...k0, crit: ['x'], x: 1 }, claims, signature)),
    'a payload declared unencoded': pkcs1({ ...k0, b64: false, crit: ['b64'] }, claims, 'sha256'),
    expired: await tokenOf(keys, 'expired'),
    'expired a second ago': await tokenOf(keys, 'expired-1s'),
    'expiring this very second': await claim({ exp: nowSeconds() }),
    'exp negative': await claim({ exp: -1 }),
    'exp a text': pkcs1(k0, { ...claims, exp: '9999999999' }, 'sha256'),
    'exp a fraction': pkcs1(k0, { ...claims, exp: nowSeconds() + 10.5 }, 'sha256'),
    'exp beyond all numbers': pkcs1(k0, { ...claims, exp: 1e308 }, 'sha256'),
    'exp a list': pkcs1(k0, { ...claims, exp: [nowSeconds() + HOUR] }, 'sha256'),
    'not yet valid': await tokenOf(keys, 'not-yet-valid'),
    'nbf a text': pkcs1(k0, { ...claims, nbf: '0' }, 'sha256'),
    'issued in the future': await tokenOf(keys, 'future-iat'),
    'iat a text': pkcs1(k0, { ...claims, iat: 'now' }, 'sha256'),
    'another audience': await tokenOf(keys, 'wrong-aud'),
    'no audience': await tokenOf(keys, 'no-aud'),
    'an audience that begins alike': await claim({ aud: [`${AUDIENCE.default}x`] }),
    'an audience in other case': await claim({ aud: AUDIENCE.default.toLowerCase() }),
    'an audience that is a number': pkcs1(k0, { ...claims, aud: 0 }, 'sha256'),
    'an audience list with a number': pkcs1(
      k0,
      { ...claims, aud: [AUDIENCE.default, 0] },
      'sha256',
    ),
    'an audience that is an object': pkcs1(k0, { ...claims, aud: { AUD0: 1 } }, 'sha256'),
    'a scope instead of an audience': await tokenOf(keys, 'scope-only'),
    'no sub': await tokenOf(keys, 'no-sub'),
    'sub a number': pkcs1(k0, { ...claims, sub: 5 }, 'sha256'),
    'sub a list': pkcs1(k0, { ...claims, sub: ['participant_admin'] }, 'sha256'),
    'an unknown issuer': await tokenOf(keys, 'unknown-iss'),
    'an issuer with a zero byte': await sign({
      key: keys.k1,
      claims: { ...idp1, iss: `${ISSUER.idp1}\u0000` },
    }),
    'an issuer with another case': await sign({
      key: keys.k1,
      claims: { ...idp1, iss: ISSUER.idp1.toUpperCase() },
    }),
    'an issuer without its slash': await sign({
      key: keys.k1,
      claims: { ...idp1, iss: ISSUER.idp1.slice(0, -1) },
    }),
    'an endless issuer': await sign({ key: keys.k1, claims: { ...idp1, iss: 'x'.repeat(4000) } }),
    'an issuer that is an object': pkcs1(
      { alg: 'RS256', kid: 'k1' },
      { ...idp1, iss: {} },
      'sha256',
    ),
    'the issuer of one provider with the key of another': await sign({
      key: keys.k2,
      claims: idp1,
    }),
    'the default key with the audience of a named provider': await sign({
      key: keys.k0,
      claims: idp1,
    }),
    'the key of a named provider without its issuer': await tokenOf(keys, 'idp1-no-iss'),
    'the key of a named provider with the default audience': await sign({
      key: keys.k1,
      claims: { ...idp1, aud: [AUDIENCE.default] },
    }),
    'more than 8 KiB': await claim({ filler: 'x'.repeat(9000) }),
    'control characters': `${header}.${payload}.${signature}\u0001`,
  }
  const bearer = `Bearer ${good}`
  return {
    ...Object.fromEntries(
      Object.entries(tokens).map(([name, token]) => [name, { authorization: `Bearer ${token}` }]),
    ),
    'no header': {},
    'an empty header': { authorization: '' },
    'Bearer alone': { authorization: 'Bearer' },
    'Bearer and a blank': { authorization: 'Bearer ' },
    'Basic credentials': { authorization: 'Basic cGFydGljaXBhbnRfYWRtaW46' },
    'a token without its scheme': { authorization: good },
    'a scheme without its blank': { authorization: `Bearer${good}` },
    'two tokens in one header': { authorization: `${bearer}, ${bearer}` },
    'two headers': { authorization: [bearer, bearer] },
    'a good and a bad header': { authorization: [bearer, 'Bearer x'] },
    'the token in a cookie': { cookie: `token=${good}` },
    'two tokens as sub-protocols': {
      'sec-websocket-protocol': `jwt.token.${good}, jwt.token.${good}`,
    },
  }
}

forEachEngine((engine) => {
  describe(`hostile tokens on ${engine.name}`, () => {
    const cleanups: (() => Promise<void> | void)[] = []
    let db: Db
    let world: LedgerWorld
    let keys: Keys
    before(async () => {
      db = await engine.open({ after: (clean) => void cleanups.push(clean) }, 'participant')
      keys = await makeKeys()
      world = await openWorld({ db, keys })
      await world.call('POST', '/v2/idps', { body: providerBody('idp1') })
      await world.call('POST', '/v2/idps', { body: providerBody('idp2') })
    })
    after(async () => {
      await world.app.close()
      for (const clean of cleanups) await clean()
    })

    test('all of them are refused alike, with nothing told and nothing of them in the log', async () => {
      const hostile = Object.entries(await hostileHeaders(keys))
      assert.ok(hostile.length >= 60, `${hostile.length} tokens`)
      const answers = new Set<string>()
      for (const [name, headers] of hostile) {
        // A good token before and after must change nothing.
        assert.equal((await world.call('GET', '/v2/idps')).status, 200)
        const answer = await world.app.inject({
          url: '/v2/idps',
          headers: headers as Record<string, string>,
        })
        assert.equal(answer.statusCode, 401, `${name}: ${answer.body}`)
        const { correlationId, traceId, ...told } = answer.json()
        assert.match(correlationId, /^[0-9a-f]{32}$/)
        assert.match(traceId, /^[0-9a-f]{32}$/)
        answers.add(JSON.stringify(told))
        const header = String(headers.authorization ?? '')
        const secret = header.split('.')[2]
        if (secret && secret.length > 20) {
          assert.ok(!world.log.some((line) => line.includes(secret)), `${name} is in the log`)
        }
      }
      assert.equal(answers.size, 1, [...answers].join('\n'))
    })

    test('good tokens of every kind pass', async () => {
      await world.call('POST', '/v2/users', {
        body: { user: { id: 'bob', identityProviderId: 'idp1' } },
      })
      for (const token of ['admin', 'es256', 'es512', 'no-exp', 'aud-string', 'extra-aud']) {
        const answer = await world.call('GET', '/v2/authenticated-user', { token })
        assert.equal(answer.status, 200, `${token}: ${answer.text}`)
      }
      const bob = await world.call('GET', '/v2/authenticated-user', { token: 'idp1-bob' })
      assert.equal(bob.status, 200)
    })
  })
})

/** The RSA key as Node's own signer takes it. */
function keyObject(keys: Keys): KeyObject {
  return KeyObject.from(keys.k0.privateKey)
}
