import { randomUUID } from 'node:crypto'
import type { Db } from '../db/db.ts'
import { checkAnnotationChanges, checkNewAnnotations, mergedAnnotations } from './annotations.ts'
import { type Actor, recordChange, timestamp } from './audit.ts'
import {
  concurrentPartyUpdate,
  invalidArgument,
  invalidPartyUpdate,
  partyAnnotationsTooLarge,
  partyNotFound,
  permissionDenied,
  tooManyUserRights,
  unknownProvider,
  userNotFound,
} from './errors.ts'
import { holdProvider } from './idps-store.ts'
import { decodePageToken, encodePageToken } from './page-token.ts'
import {
  insertParty,
  lockParty,
  selectParties,
  selectPartiesPage,
  updatePartyAnnotations,
} from './parties-store.ts'
import { checkMask, parseResourceVersion } from './update-mask.ts'
import {
  DEFAULT_PROVIDER,
  PARTIES_PAGE_MAX,
  type PartyDetails,
  partyFault,
  RIGHTS_PER_USER_MAX,
  type Right,
  rightKey,
  rightToJson,
} from './user.ts'
import { insertRights, lockUser, selectRights } from './users-store.ts'

export type PartyDraft = {
  /** The name before `::`; one is made up when it is empty. */
  hint: string
  /** What stands after `::`: the namespace of this participant. */
  namespace: string
  identityProviderId: string
  annotations: ReadonlyMap<string, string>
  /** This user may act as the new party; empty for nobody. */
  userId: string
}

export const allocateParty = async (
  db: Db,
  actor: Actor,
  draft: PartyDraft,
): Promise<PartyDetails> => {
  const hint = draft.hint === '' ? `party-${randomUUID()}` : draft.hint
  if (hint.includes('::')) throw invalidArgument(`party hint "${hint}" must not contain '::'`)
  const id = `${hint}::${draft.namespace}`
  const fault = partyFault(id)
  if (fault !== undefined) throw invalidArgument(fault)
  checkNewAnnotations(draft.annotations)
  const party: PartyDetails = {
    party: id,
    isLocal: true,
    localMetadata: { resourceVersion: '0', annotations: Object.fromEntries(draft.annotations) },
    identityProviderId: draft.identityProviderId,
  }
  return db.transaction(async (tx) => {
    if (!(await holdProvider(tx, draft.identityProviderId))) {
      throw unknownProvider(draft.identityProviderId)
    }
    if (!(await insertParty(tx, { ...party, createdAt: timestamp() }))) {
      throw invalidArgument(`Party already exists: party ${id} is already allocated on this node`)
    }
    await recordChange(tx, actor, {
      action: 'party.allocate',
      subject: subject(id),
      after: party,
    })
    if (draft.userId !== '') await letUserAct(tx, actor, draft, id)
    return party
  })
}

/** Parties of other providers are shown, but blinded. */
export const getParties = async (
  db: Db,
  { parties, identityProviderId }: { parties: string[]; identityProviderId: string },
): Promise<PartyDetails[]> => {
  const found = await selectParties(db, [...new Set(parties)])
  return found.map((party) => blinded(party, identityProviderId))
}

export const listParties = async (
  db: Db,
  query: {
    identityProviderId: string
    prefix: string
    pageSize: number | undefined
    pageToken: string
  },
): Promise<{ parties: PartyDetails[]; nextPageToken: string }> => {
  const limit = query.pageSize ?? PARTIES_PAGE_MAX
  if (limit > PARTIES_PAGE_MAX) {
    throw invalidArgument(`page size must not exceed the server's maximum of ${PARTIES_PAGE_MAX}`)
  }
  if (query.prefix !== '' && partyFault(query.prefix) !== undefined) {
    throw invalidArgument('filter-party must be the beginning of a party id')
  }
  const afterParty = decodePageToken(query.pageToken, partyFault) ?? ''
  const found = await selectPartiesPage(db, { prefix: query.prefix, afterParty, limit })
  const last = found.at(-1)
  return {
    parties: found.map((party) => blinded(party, query.identityProviderId)),
    nextPageToken: found.length === limit && last !== undefined ? encodePageToken(last.party) : '',
  }
}

const UPDATE_PATHS = new Set([
  'party',
  'is_local',
  'identity_provider_id',
  'local_metadata',
  'local_metadata.annotations',
  'local_metadata.resource_version',
])

export type PartyUpdate = {
  party: string
  identityProviderId: string
  annotations: ReadonlyMap<string, string>
  resourceVersion: string
  mask: string[]
}

export const updateParty = async (
  db: Db,
  actor: Actor,
  update: PartyUpdate,
): Promise<PartyDetails> => {
  const { party, mask } = update
  const expectedVersion = parseResourceVersion(update.resourceVersion)
  checkAnnotationChanges(update.annotations)
  checkMask(mask, UPDATE_PATHS, (reason) => invalidPartyUpdate(party, reason))
  return db.transaction(async (tx) => {
    if (!(await holdProvider(tx, update.identityProviderId))) {
      throw unknownProvider(update.identityProviderId)
    }
    const before = await lockParty(tx, party)
    if (before === undefined) throw partyNotFound(party)
    if (before.identityProviderId !== update.identityProviderId) {
      throw permissionDenied(`party ${party} belongs to another identity provider`)
    }
    const version = BigInt(before.localMetadata.resourceVersion)
    if (expectedVersion !== undefined && expectedVersion !== version) {
      throw concurrentPartyUpdate(party)
    }
    const changes = mask.some((path) => path === 'local_metadata' || path.endsWith('.annotations'))
      ? update.annotations
      : new Map<string, string>()
    const annotations = mergedAnnotations(before.localMetadata.annotations, changes, () =>
      partyAnnotationsTooLarge(party),
    )
    await updatePartyAnnotations(tx, party, annotations)
    const after: PartyDetails = {
      ...before,
      localMetadata: { resourceVersion: String(version + 1n), annotations },
    }
    await recordChange(tx, actor, {
      action: 'party.update',
      subject: subject(party),
      before,
      after,
    })
    return after
  })
}

const letUserAct = async (
  tx: Db,
  actor: Actor,
  draft: PartyDraft,
  party: string,
): Promise<void> => {
  const user = await lockUser(tx, draft.userId)
  if (user === undefined) throw userNotFound('allocating party', draft.userId)
  if (user.identityProviderId !== draft.identityProviderId) {
    throw permissionDenied(`user ${draft.userId} belongs to another identity provider`)
  }
  const right: Right = { kind: 'CanActAs', party }
  const held = new Set((await selectRights(tx, draft.userId)).map(rightKey))
  if (held.has(rightKey(right))) return
  if (held.size >= RIGHTS_PER_USER_MAX) throw tooManyUserRights('allocating party', draft.userId)
  await insertRights(tx, draft.userId, [right])
  await recordChange(tx, actor, {
    action: 'user.rights.grant',
    subject: { kind: 'user', id: draft.userId },
    after: { rights: [rightToJson(right)] },
  })
}

const blinded = (party: PartyDetails, identityProviderId: string): PartyDetails =>
  party.identityProviderId === identityProviderId
    ? party
    : {
        party: party.party,
        isLocal: identityProviderId === DEFAULT_PROVIDER && party.isLocal,
        localMetadata: { resourceVersion: '', annotations: {} },
        identityProviderId: '',
      }

const subject = (id: string) => ({ kind: 'party' as const, id })
