import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Db } from '../db/db.ts'
import { checkNewAnnotations } from './annotations.ts'
import {
  type Authentication,
  actorOf,
  addressedProvider,
  type Caller,
  callerOf,
  guard,
  guardChange,
  isParticipantAdmin,
  requireAdmin,
  requireUserAdmin,
} from './caller.ts'
import { invalidArgument, invalidField, missingField, missingUserId } from './errors.ts'
import {
  bodyOf,
  flagField,
  type JsonObject,
  listField,
  maskField,
  objectField,
  pathText,
  queryPageSize,
  queryText,
  textField,
  textMapField,
} from './request-fields.ts'
import { checkRights, grantRights, listRights, type RightsChange, revokeRights } from './rights.ts'
import {
  partyFault,
  providerIdFault,
  rightFromJson,
  rightToJson,
  type StatedRight,
  userIdFault,
} from './user.ts'
import {
  createUser,
  deleteUser,
  getUser,
  listUsers,
  moveUser,
  type UserDraft,
  updateUser,
} from './users.ts'

/** /v2/users…, /v2/authenticated-user. The order is always: token, rights, request, store. */
export const usersRoutes = async (
  app: FastifyInstance,
  { db, authentication }: { db: Db; authentication: Authentication },
): Promise<void> => {
  const moving = guardChange(authentication, requireAdmin)
  const changing = guardChange(authentication, requireUserAdmin)
  const userAdmin = guard(authentication, requireUserAdmin)
  const userAdminOrSelf = guard(authentication, requireUserAdminOrSelf)
  const anyone = guard(authentication)

  app.get('/v2/users', userAdmin, async (request) => {
    const pageSize = queryPageSize(request)
    const pageToken = queryText(request, 'pageToken')
    const identityProviderId = providerOfQuery(request)
    return listUsers(db, { identityProviderId, pageSize, pageToken })
  })

  app.post('/v2/users', changing, async (request) => {
    const caller = callerOf(request)
    const body = bodyOf(request)
    const json = objectField(body, 'user')
    const stated = {
      rights: rightsOf(body),
      identityProviderId: textField(json ?? {}, 'identityProviderId'),
    }
    const identityProviderId = addressedProvider(caller, stated.identityProviderId)
    requireMayChange(caller, stated.rights)
    if (json === undefined) throw missingField('user')
    const draft = { ...draftOf(json), identityProviderId }
    if (draft.id === '') throw missingField('id')
    checkUserId('id', draft.id)
    if (resourceVersionOf(json) !== '') {
      throw invalidArgument('user.metadata.resource_version must be empty when a user is created')
    }
    checkNewAnnotations(draft.annotations)
    checkPrimaryParty(draft)
    const rights = checkRights(stated.rights)
    const partiesMustExist = !isParticipantAdmin(caller)
    return { user: await createUser(db, actorOf(request), draft, { rights, partiesMustExist }) }
  })

  app.get('/v2/users/:userId', userAdminOrSelf, async (request) => {
    const userId = userIdOfPath(request)
    const identityProviderId = providerOfQuery(request)
    return { user: await getUser(db, { userId, identityProviderId }) }
  })

  app.patch('/v2/users/:userId', changing, async (request) => {
    const body = bodyOf(request)
    const json = objectField(body, 'user')
    const mask = maskField(body)
    if (json === undefined) {
      throw invalidArgument(
        `${pathText(request, 'userId')} does not match user in body: there is none`,
      )
    }
    const draft = draftOf(json)
    requireSameUser(request, draft.id)
    const identityProviderId = addressedProvider(callerOf(request), draft.identityProviderId)
    checkUserId('user.id', draft.id)
    if (mask === undefined) throw missingField('update_mask')
    checkPrimaryParty(draft)
    const user = await updateUser(db, actorOf(request), {
      draft: { ...draft, identityProviderId },
      resourceVersion: resourceVersionOf(json),
      mask,
    })
    return { user }
  })

  app.delete('/v2/users/:userId', changing, async (request) => {
    const userId = userIdOfPath(request)
    const identityProviderId = providerOfQuery(request)
    await deleteUser(db, actorOf(request), { userId, identityProviderId })
    return {}
  })

  app.get('/v2/users/:userId/rights', userAdminOrSelf, async (request) => {
    const userId = userIdOfPath(request)
    const identityProviderId = providerOfQuery(request)
    const rights = await listRights(db, { userId, identityProviderId })
    return { rights: rights.map(rightToJson) }
  })

  app.post('/v2/users/:userId/rights', changing, async (request) => {
    const granted = await grantRights(db, actorOf(request), rightsChangeOf(request))
    return { newlyGrantedRights: granted.map(rightToJson) }
  })

  app.patch('/v2/users/:userId/rights', changing, async (request) => {
    const revoked = await revokeRights(db, actorOf(request), rightsChangeOf(request))
    return { newlyRevokedRights: revoked.map(rightToJson) }
  })

  app.patch('/v2/users/:userId/identity-provider-id', moving, async (request) => {
    const body = bodyOf(request)
    const userId = userIdOfPathAndBody(request, body)
    const source = textField(body, 'sourceIdentityProviderId')
    const target = textField(body, 'targetIdentityProviderId')
    checkUserId('user_id', userId)
    checkProviderId('source_identity_provider_id', source)
    checkProviderId('target_identity_provider_id', target)
    await moveUser(db, actorOf(request), { userId, source, target })
    return {}
  })

  app.get('/v2/authenticated-user', anyone, async (request) => {
    const caller = callerOf(request)
    if (caller.userId === undefined) throw missingUserId()
    // The question is about the caller alone, so its own provider goes without saying for admins too.
    const stated = queryText(request, 'identity-provider-id') || caller.identityProviderId
    const identityProviderId = addressedProvider(caller, stated)
    return { user: await getUser(db, { userId: caller.userId, identityProviderId }) }
  })
}

const requireUserAdminOrSelf = (caller: Caller, request: FastifyRequest): void => {
  if (caller.userId === undefined || caller.userId !== pathText(request, 'userId')) {
    requireUserAdmin(caller)
  }
}

/** Rights over the whole node are given and taken by participant admins alone. */
const requireMayChange = (caller: Caller, rights: StatedRight[]): void => {
  const wide = rights.some(({ kind }) => kind === 'ParticipantAdmin' || kind?.endsWith('AnyParty'))
  if (wide) requireAdmin(caller)
}

const rightsChangeOf = (request: FastifyRequest): RightsChange => {
  const caller = callerOf(request)
  const body = bodyOf(request)
  const userId = userIdOfPathAndBody(request, body)
  const stated = rightsOf(body)
  const identityProviderId = addressedProvider(caller, textField(body, 'identityProviderId'))
  requireMayChange(caller, stated)
  checkUserId('user_id', userId)
  const rights = checkRights(stated)
  return { userId, identityProviderId, rights, partiesMustExist: !isParticipantAdmin(caller) }
}

const rightsOf = (body: JsonObject): StatedRight[] => listField(body, 'rights').map(rightFromJson)

const draftOf = (json: JsonObject): UserDraft => ({
  id: textField(json, 'id'),
  primaryParty: textField(json, 'primaryParty'),
  isDeactivated: flagField(json, 'isDeactivated'),
  primaryPartyAuthentication: flagField(json, 'primaryPartyAuthentication'),
  identityProviderId: textField(json, 'identityProviderId'),
  annotations: textMapField(objectField(json, 'metadata') ?? {}, 'annotations'),
})

const resourceVersionOf = (json: JsonObject): string =>
  textField(objectField(json, 'metadata') ?? {}, 'resourceVersion')

const providerOfQuery = (request: FastifyRequest): string =>
  addressedProvider(callerOf(request), queryText(request, 'identity-provider-id'))

const userIdOfPath = (request: FastifyRequest): string => {
  const userId = pathText(request, 'userId')
  const fault = userIdFault(userId)
  if (fault !== undefined) throw invalidArgument(`Malformed user-id: ${fault}`)
  return userId
}

/** The path says which user is meant; a body may leave it out but not say otherwise. */
const userIdOfPathAndBody = (request: FastifyRequest, body: JsonObject): string => {
  const stated = textField(body, 'userId')
  if ((body.userId ?? undefined) !== undefined) requireSameUser(request, stated)
  return pathText(request, 'userId')
}

const requireSameUser = (request: FastifyRequest, stated: string): void => {
  const userId = pathText(request, 'userId')
  if (stated !== userId) {
    throw invalidArgument(`${userId} does not match user in body: "${stated}"`)
  }
}

const checkUserId = (field: string, userId: string): void => {
  const fault = userIdFault(userId)
  if (fault !== undefined) throw invalidField(field, fault)
}

const checkProviderId = (field: string, id: string): void => {
  const fault = id === '' ? undefined : providerIdFault(id)
  if (fault !== undefined) throw invalidField(field, fault)
}

const checkPrimaryParty = ({ primaryParty }: UserDraft): void => {
  const fault = primaryParty === '' ? undefined : partyFault(primaryParty)
  if (fault !== undefined) throw invalidArgument(`primary party: ${fault}`)
}
