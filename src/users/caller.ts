import type { FastifyRequest, onRequestAsyncHookHandler, onSendAsyncHookHandler } from 'fastify'
import type { Db } from '../db/db.ts'
import type { Actor } from './audit.ts'
import { invalidToken, notAcceptable, permissionDenied, unauthenticated } from './errors.ts'
import type { TokenVerifier, Verification, VerifiedToken } from './token.ts'
import {
  DEFAULT_PROVIDER,
  providerIdFault,
  type Right,
  type RightKind,
  userIdFault,
} from './user.ts'
import { type CallerRow, selectCaller, selectRights } from './users-store.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | undefined
  }
}

/** Who asks, as the store has it at this moment. Without authentication there is no user. */
export type Caller = {
  userId: string | undefined
  identityProviderId: string
  rights: readonly Right[]
}

export type Authentication = {
  /** Throws the redacted 401 or 403 when the request may not even ask. */
  authenticate(request: FastifyRequest): Promise<Caller>
  /** To be called after every change of users, rights or providers. */
  forget(): void
}

/** With authentication off everyone is an administrator who may act as any party. */
const ANYONE: Caller = {
  userId: undefined,
  identityProviderId: DEFAULT_PROVIDER,
  rights: [
    { kind: 'ParticipantAdmin', party: '' },
    { kind: 'CanActAsAnyParty', party: '' },
  ],
}

/**
 * How long a caller is believed without asking the store again. Changes made by this process are
 * seen by the next request, those of another process that shares the database within one second.
 */
const CALLER_MAX_AGE_MS = 500

export const authenticationOff: Authentication = {
  authenticate: async () => ANYONE,
  forget: () => {},
}

/**
 * Token → Caller. The user, its provider and its rights are read from the store, so that a move, a
 * deactivation or a change of rights ends what the token could do before. What was read is kept
 * beside the verified token for a moment; measured, reading it for each request halved the rate.
 */
export const createAuthentication = ({
  db,
  verifier,
  now = () => performance.now(),
}: {
  db: Db
  verifier: TokenVerifier
  now?: () => number
}): Authentication => {
  const callers = new WeakMap<VerifiedToken, { caller: Caller; at: number; generation: number }>()
  let generation = 0

  const recall = (verified: VerifiedToken): Caller | undefined => {
    const known = callers.get(verified)
    if (known === undefined || known.generation !== generation) return undefined
    return now() - known.at < CALLER_MAX_AGE_MS ? known.caller : undefined
  }

  const read = async (token: string, { verified, remembered }: Verification): Promise<Caller> => {
    const row = await callerRow(db, verified)
    if (remembered && !isCurrent(verified, row)) {
      // The provider has changed since the token was verified, or the user has left it.
      return read(token, await verifier.verify(token, { fresh: true }))
    }
    const { userId, identityProviderId } = verified
    if (row === undefined) throw permissionDenied(`user ${userId} does not exist`)
    if (row.identity_provider_id !== identityProviderId) {
      throw permissionDenied(`user ${userId} belongs to another identity provider than its token`)
    }
    if (!isCurrent(verified, row)) {
      throw unauthenticated('the identity provider is changing at this moment')
    }
    if (row.is_deactivated === 1) throw permissionDenied(`user ${userId} is deactivated`)
    return { userId, identityProviderId, rights: await selectRights(db, userId) }
  }

  return {
    async authenticate(request) {
      const token = tokenOf(request.raw.rawHeaders)
      const verification = await verifier.verify(token)
      const known = recall(verification.verified)
      if (known !== undefined) return known
      // A change that is made while the store is read counts as later than what was read.
      const before = { at: now(), generation }
      const caller = await read(token, verification)
      callers.set(verification.verified, { caller, ...before })
      return caller
    },
    forget() {
      generation += 1
    },
  }
}

/**
 * The token of a request: `Authorization: Bearer`, else an item `jwt.token.…` of
 * `Sec-WebSocket-Protocol`. The raw headers are read because Node keeps only the first of two
 * `Authorization` headers, and a request with two must not choose.
 */
export const tokenOf = (rawHeaders: readonly string[]): string => {
  const values = (name: string) =>
    rawHeaders.filter(
      (_, at) =>
        at % 2 === 1 &&
        rawHeaders[at - 1]?.length === name.length &&
        rawHeaders[at - 1]?.toLowerCase() === name,
    )
  const bearers = values('authorization').filter((value) => /^bearer(\s|$)/i.test(value))
  if (bearers.length > 1) throw unauthenticated('there are several bearer tokens')
  if (bearers[0] !== undefined) return requireToken(bearers[0].slice('bearer'.length).trim())
  const offered = values('sec-websocket-protocol')
    .flatMap((value) => value.split(','))
    .map((item) => item.trim())
    .filter((item) => item.startsWith('jwt.token.'))
  if (offered.length > 1) throw unauthenticated('there are several tokens')
  return requireToken(offered[0]?.slice('jwt.token.'.length) ?? '')
}

export const hasRight = (caller: Caller, kind: RightKind): boolean =>
  caller.rights.some((right) => right.kind === kind)

export const requireRight = (caller: Caller, kind: RightKind): void => {
  if (!hasRight(caller, kind)) throw permissionDenied(`the caller lacks the right ${kind}`)
}

export const isParticipantAdmin = (caller: Caller): boolean => hasRight(caller, 'ParticipantAdmin')

/** Administers users: of all providers, or of the own one. In the default provider only the former. */
export const isUserAdmin = (caller: Caller): boolean =>
  isParticipantAdmin(caller) ||
  (caller.identityProviderId !== DEFAULT_PROVIDER && hasRight(caller, 'IdentityProviderAdmin'))

export const requireAdmin = (caller: Caller): void => requireRight(caller, 'ParticipantAdmin')

export const requireUserAdmin = (caller: Caller): void => {
  if (!isUserAdmin(caller)) throw permissionDenied('the caller is no administrator of users')
}

export const canActAs = (caller: Caller, party: string): boolean =>
  caller.rights.some(
    ({ kind, party: of }) => kind === 'CanActAsAnyParty' || (kind === 'CanActAs' && of === party),
  )

export const canReadAs = (caller: Caller, party: string): boolean =>
  canActAs(caller, party) ||
  caller.rights.some(
    ({ kind, party: of }) => kind === 'CanReadAsAnyParty' || (kind === 'CanReadAs' && of === party),
  )

export const canExecuteAs = (caller: Caller, party: string): boolean =>
  canActAs(caller, party) ||
  caller.rights.some(
    ({ kind, party: of }) =>
      kind === 'CanExecuteAsAnyParty' || (kind === 'CanExecuteAs' && of === party),
  )

/**
 * The provider that a request means. A participant admin of the default provider may name any, and
 * means the default one by naming none. Everybody else stays in the own provider: an admin must
 * name it, for others it goes without saying.
 */
export const addressedProvider = (caller: Caller, stated: string): string => {
  const fault = stated === '' ? undefined : providerIdFault(stated)
  if (fault !== undefined) throw invalidToken('identity_provider_id', fault)
  const own = caller.identityProviderId
  if (isParticipantAdmin(caller)) {
    if (own === DEFAULT_PROVIDER || stated === own) return stated
  } else if (stated === '' || stated === own) return own
  throw permissionDenied('the caller may not address that identity provider')
}

/**
 * Route options: first the token, then the rights, and only then anything else is looked at. A
 * client that could not read the answer is refused before something is changed.
 */
export const guard = (
  { authenticate }: Authentication,
  check: (caller: Caller, request: FastifyRequest) => void = () => {},
): { onRequest: onRequestAsyncHookHandler } => ({
  onRequest: async (request) => {
    const caller = await authenticate(request)
    check(caller, request)
    if (!acceptsJson(request.headers.accept)) throw notAcceptable()
    request.caller = caller
  },
})

/** As `guard`, for routes that change who may do what: the next request finds it changed. */
export const guardChange = (
  authentication: Authentication,
  check: (caller: Caller, request: FastifyRequest) => void,
): { onRequest: onRequestAsyncHookHandler; onSend: onSendAsyncHookHandler } => ({
  ...guard(authentication, check),
  onSend: async (request, _reply, payload) => {
    // Whoever was refused has changed nothing, and must not make all others be read again.
    if (request.caller !== undefined) authentication.forget()
    return payload
  },
})

/** The caller of a guarded route. */
export const callerOf = (request: FastifyRequest): Caller => {
  if (request.caller === undefined) throw new Error('This route has no guard.')
  return request.caller
}

/** Who answers for a change, for the audit record. */
export const actorOf = (request: FastifyRequest): Actor => {
  const { userId, identityProviderId } = callerOf(request)
  return { userId, identityProviderId, traceId: request.traceId }
}

/** Any range that takes JSON is enough; which one the client likes best does not matter. */
const acceptsJson = (accept: string | undefined): boolean =>
  accept === undefined ||
  accept
    .split(',')
    .some(
      (range) =>
        /^\s*(?:application\/(?:json|\*)|\*\/\*|\*)?\s*(?:;|$)/i.test(range) &&
        !/;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)/i.test(range),
    )

const requireToken = (token: string): string => {
  if (token === '') throw unauthenticated('there is no bearer token')
  return token
}

/** The user's row; a `sub` that cannot be a user id is told to the client, who made the token. */
const callerRow = async (db: Db, { userId }: VerifiedToken): Promise<CallerRow | undefined> => {
  const fault = userIdFault(userId)
  if (fault !== undefined) throw invalidToken('sub', fault)
  return selectCaller(db, userId)
}

/** Whether the provider that verified the token is the user's, unchanged and active. */
const isCurrent = ({ identityProviderId, provider }: VerifiedToken, row?: CallerRow): boolean => {
  if (row === undefined || row.identity_provider_id !== identityProviderId) return false
  if (provider === undefined) return true
  return (
    row.provider_is_deactivated === 0 &&
    row.provider_issuer === provider.issuer &&
    row.provider_jwks_url === provider.jwksUrl &&
    row.provider_audience === provider.audience
  )
}
