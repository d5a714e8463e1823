import type { FastifyInstance } from 'fastify'
import type { JWK } from 'jose'
import type { Db } from '../../src/db/db.ts'
import { createAuthentication } from '../../src/users/caller.ts'
import { ensureFirstUsers } from '../../src/users/first-users.ts'
import { selectProviderByIssuer } from '../../src/users/idps-store.ts'
import { createRemoteKeySet } from '../../src/users/key-set.ts'
import { createTokenVerifier, type TokenEvents } from '../../src/users/token.ts'
import { buildLedgerApi, PARTICIPANT_ID } from './ledger-api.ts'
import {
  AUDIENCE,
  fetchOf,
  ISSUER,
  JWKS_URL,
  type Keys,
  keySets,
  tokenOf,
} from './ledger-tokens.ts'

export type Answer = {
  status: number
  body: Record<string, unknown>
  text: string
  headers: object
}
export type LedgerWorld = {
  app: FastifyInstance
  /** The key sets that the providers publish now; change it to rotate, set undefined for an outage. */
  published: Record<string, JWK[] | undefined>
  fetches: string[]
  log: string[]
  /** `token` is a symbolic name of the catalogue, or a whole token. */
  call(method: string, url: string, options?: { token?: string; body?: unknown }): Promise<Answer>
}

/** One process of a node: its own verifier and caches over a database that others may share. */
export async function openWorld(options: {
  db: Db
  keys: Keys
  now?: () => number
  events?: TokenEvents
}): Promise<LedgerWorld> {
  const { db, keys } = options
  await ensureFirstUsers(db)
  const published: LedgerWorld['published'] = keySets(keys)
  const fetches: string[] = []
  const log: string[] = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    fetches.push(String(input))
    return fetchOf(published)(input, init)
  }
  const clock = options.now ? { now: options.now } : {}
  const verifier = createTokenVerifier({
    defaultProvider: {
      keySet: createRemoteKeySet({ url: JWKS_URL.default, fetch, ...clock }),
      audience: AUDIENCE.default,
    },
    providerByIssuer: (issuer) => selectProviderByIssuer(db, issuer),
    participantId: PARTICIPANT_ID,
    fetch,
    ...clock,
    ...(options.events && { events: options.events }),
  })
  const authentication = createAuthentication({ db, verifier })
  const app = await buildLedgerApi({ db, authentication, onLog: (line) => void log.push(line) })
  const tokens = new Map<string, string>()
  return {
    app,
    published,
    fetches,
    log,
    async call(method, url, { token = 'admin', body } = {}) {
      const whole = token.includes('.')
        ? token
        : (tokens.get(token) ?? (await tokenOf(keys, token)))
      tokens.set(token, whole)
      const answer = await app.inject({
        method: method as 'GET',
        url,
        headers: { authorization: `Bearer ${whole}` },
        ...(body !== undefined && { payload: JSON.stringify(body) }),
      })
      return {
        status: answer.statusCode,
        body: JSON.parse(answer.body) as Record<string, unknown>,
        text: answer.body,
        headers: answer.headers,
      }
    },
  }
}

export const providerBody = (id: 'idp1' | 'idp2') => ({
  identityProviderConfig: {
    identityProviderId: id,
    issuer: ISSUER[id],
    jwksUrl: JWKS_URL[id],
    audience: AUDIENCE[id],
  },
})

export const moveBody = (source: string, target: string) => ({
  sourceIdentityProviderId: source,
  targetIdentityProviderId: target,
})
