import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Db } from '../db/db.ts'
import {
  type Authentication,
  actorOf,
  addressedProvider,
  type Caller,
  callerOf,
  canExecuteAs,
  canReadAs,
  guard,
  guardChange,
  isUserAdmin,
  requireUserAdmin,
} from './caller.ts'
import { invalidArgument, invalidField, missingField, permissionDenied } from './errors.ts'
import { allocateParty, getParties, listParties, updateParty } from './parties.ts'
import {
  bodyOf,
  type JsonObject,
  maskField,
  objectField,
  pathText,
  queryList,
  queryPageSize,
  queryText,
  textField,
  textMapField,
} from './request-fields.ts'
import { PARTIES_PAGE_MAX, partyFault, userIdFault } from './user.ts'

export type PartiesRoutesOptions = {
  db: Db
  authentication: Authentication
  /** `name::namespace`; parties allocated here get the same namespace. */
  participantId: string
  synchronizerId: string
}

/** /v2/parties…. */
export const partiesRoutes = async (
  app: FastifyInstance,
  { db, authentication, participantId, synchronizerId }: PartiesRoutesOptions,
): Promise<void> => {
  const anyone = guard(authentication)
  const userAdmin = guard(authentication, requireUserAdmin)
  const changing = guardChange(authentication, requireUserAdmin)
  const reader = guard(authentication, requireReader)
  const namespace = participantId.slice(participantId.indexOf('::') + 2)

  app.get('/v2/parties/participant-id', anyone, async () => ({ participantId }))

  app.get('/v2/parties', userAdmin, async (request) => {
    const { parties, nextPageToken } = await listParties(db, {
      pageSize: queryPageSize(request),
      pageToken: queryText(request, 'pageToken'),
      prefix: queryText(request, 'filter-party'),
      identityProviderId: providerOfQuery(request),
    })
    return { partyDetails: parties, nextPageToken }
  })

  // Users may not allocate parties for themselves: the quota for that is none.
  app.post('/v2/parties', changing, async (request) => {
    const body = bodyOf(request)
    const metadata = objectField(body, 'localMetadata') ?? {}
    const userId = textField(body, 'userId')
    const synchronizer = textField(body, 'synchronizerId')
    const stated = textField(body, 'identityProviderId')
    const identityProviderId = addressedProvider(callerOf(request), stated)
    if (synchronizer !== '' && synchronizer !== synchronizerId) {
      throw invalidArgument('this node is not connected to that synchronizer; leave it out')
    }
    if (textField(metadata, 'resourceVersion') !== '') {
      throw invalidArgument('local_metadata.resource_version must be empty for a new party')
    }
    const fault = userId === '' ? undefined : userIdFault(userId)
    if (fault !== undefined) throw invalidField('user_id', fault)
    const party = await allocateParty(db, actorOf(request), {
      hint: textField(body, 'partyIdHint'),
      namespace,
      identityProviderId,
      annotations: textMapField(metadata, 'annotations'),
      userId,
    })
    return { partyDetails: party }
  })

  app.get('/v2/parties/:party', reader, async (request) => {
    const parties = namedParties(request)
    if (parties.length > PARTIES_PAGE_MAX) {
      throw invalidArgument(`at most ${PARTIES_PAGE_MAX} parties can be asked for at once`)
    }
    for (const party of parties) {
      const fault = partyFault(party)
      if (fault !== undefined) throw invalidArgument(fault)
    }
    const identityProviderId = providerOfQuery(request)
    return { partyDetails: await getParties(db, { parties, identityProviderId }) }
  })

  app.patch('/v2/parties/:party', changing, async (request) => {
    const body = bodyOf(request)
    const json = objectField(body, 'partyDetails')
    const mask = maskField(body)
    const path = pathText(request, 'party')
    if (json === undefined) throw invalidArgument(`${path} does not match party in body: none`)
    const party = textField(json, 'party')
    if (party !== path) throw invalidArgument(`${path} does not match party in body: "${party}"`)
    const stated = textField(json, 'identityProviderId')
    const identityProviderId = addressedProvider(callerOf(request), stated)
    const fault = partyFault(party)
    if (fault !== undefined) throw invalidArgument(fault)
    if (mask === undefined) throw missingField('update_mask')
    const metadata: JsonObject = objectField(json, 'localMetadata') ?? {}
    const updated = await updateParty(db, actorOf(request), {
      party,
      identityProviderId,
      annotations: textMapField(metadata, 'annotations'),
      resourceVersion: textField(metadata, 'resourceVersion'),
      mask,
    })
    return { partyDetails: updated }
  })
}

const namedParties = (request: FastifyRequest): string[] => [
  pathText(request, 'party'),
  ...queryList(request, 'parties'),
]

/** Others than administrators see the parties that they may read or execute as. */
const requireReader = (caller: Caller, request: FastifyRequest): void => {
  if (isUserAdmin(caller)) return
  const mayRead = (party: string) => canReadAs(caller, party) || canExecuteAs(caller, party)
  if (!namedParties(request).every(mayRead)) {
    throw permissionDenied('the caller may not read as every party it names')
  }
}

const providerOfQuery = (request: FastifyRequest): string =>
  addressedProvider(callerOf(request), queryText(request, 'identity-provider-id'))
