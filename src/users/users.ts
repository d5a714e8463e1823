import type { Db } from '../db/db.ts'
import { checkAnnotationChanges, mergedAnnotations } from './annotations.ts'
import { type Actor, recordChange, timestamp } from './audit.ts'
import {
  concurrentUserUpdate,
  invalidArgument,
  invalidUserUpdate,
  permissionDenied,
  tooManyUserRights,
  unknownProvider,
  userAlreadyExists,
  userAnnotationsTooLarge,
} from './errors.ts'
import { holdProvider } from './idps-store.ts'
import { requireHome, requireUser } from './known-user.ts'
import { decodePageToken, encodePageToken } from './page-token.ts'
import { distinctRights, requireParties } from './rights.ts'
import { checkMask, parseResourceVersion } from './update-mask.ts'
import {
  RIGHTS_PER_USER_MAX,
  type Right,
  rightToJson,
  USERS_PAGE_MAX,
  type User,
  userIdFault,
} from './user.ts'
import {
  deleteUserRow,
  insertRights,
  insertUser,
  lockUser,
  moveUserRow,
  selectRights,
  selectUser,
  selectUsersPage,
  updateUserRow,
} from './users-store.ts'

/**
 * User administration. Every function that changes something does so in one transaction together
 * with its audit entry. Ids arrive checked for syntax; what depends on the store is checked here.
 * A user of another provider than the one addressed is refused without saying where it is.
 */
export type UserDraft = {
  id: string
  primaryParty: string
  isDeactivated: boolean
  primaryPartyAuthentication: boolean
  identityProviderId: string
  annotations: ReadonlyMap<string, string>
}

export const createUser = async (
  db: Db,
  actor: Actor,
  draft: UserDraft,
  { rights, partiesMustExist }: { rights: Right[]; partiesMustExist: boolean },
): Promise<User> => {
  const user: User = {
    id: draft.id,
    primaryParty: draft.primaryParty,
    isDeactivated: draft.isDeactivated,
    metadata: { resourceVersion: '0', annotations: Object.fromEntries(draft.annotations) },
    identityProviderId: draft.identityProviderId,
    primaryPartyAuthentication: draft.primaryPartyAuthentication,
  }
  const granted = distinctRights(rights)
  return db.transaction(async (tx) => {
    if (!(await holdProvider(tx, user.identityProviderId))) {
      throw unknownProvider(user.identityProviderId)
    }
    if (partiesMustExist) await requireParties(tx, granted, user.identityProviderId)
    if (!(await insertUser(tx, { ...user, createdAt: timestamp() }))) {
      const existing = await selectUser(tx, user.id)
      if (existing !== undefined) requireHome(existing, user.identityProviderId)
      throw userAlreadyExists(user.id)
    }
    if (granted.length > RIGHTS_PER_USER_MAX) throw tooManyUserRights('creating user', user.id)
    await insertRights(tx, user.id, granted)
    const after = { user, rights: granted.map(rightToJson) }
    await recordChange(tx, actor, { action: 'user.create', subject: subject(user.id), after })
    return user
  })
}

export const getUser = async (
  db: Db,
  { userId, identityProviderId }: { userId: string; identityProviderId: string },
): Promise<User> => {
  const user = await selectUser(db, userId)
  return requireHome(requireUser(user, 'getting user', userId), identityProviderId)
}

export const listUsers = async (
  db: Db,
  query: { identityProviderId: string; pageSize: number | undefined; pageToken: string },
): Promise<{ users: User[]; nextPageToken: string }> => {
  const limit = Math.min(query.pageSize ?? USERS_PAGE_MAX, USERS_PAGE_MAX)
  const afterUserId = decodePageToken(query.pageToken, userIdFault) ?? ''
  const { identityProviderId } = query
  const users = await selectUsersPage(db, { identityProviderId, afterUserId, limit })
  const last = users.at(-1)
  const full = users.length === limit && last !== undefined
  return { users, nextPageToken: full ? encodePageToken(last.id) : '' }
}

export type UserUpdate = { draft: UserDraft; resourceVersion: string; mask: string[] }

/** Paths that an update may name; those without effect are accepted, as clients send them. */
const UPDATE_PATHS = new Set([
  'primary_party',
  'is_deactivated',
  'primary_party_authentication',
  'metadata',
  'metadata.annotations',
  'metadata.resource_version',
  'id',
  'identity_provider_id',
])

export const updateUser = async (db: Db, actor: Actor, update: UserUpdate): Promise<User> => {
  const { draft, mask } = update
  const expectedVersion = parseResourceVersion(update.resourceVersion)
  checkAnnotationChanges(draft.annotations)
  checkMask(mask, UPDATE_PATHS, (reason) => invalidUserUpdate(draft.id, reason))
  return db.transaction(async (tx) => {
    if (!(await holdProvider(tx, draft.identityProviderId))) {
      throw unknownProvider(draft.identityProviderId)
    }
    if (actor.userId === draft.id && mask.includes('is_deactivated') && draft.isDeactivated) {
      throw invalidArgument('Requesting user cannot self-deactivate')
    }
    const locked = await lockUser(tx, draft.id)
    const before = requireHome(
      requireUser(locked, 'updating user', draft.id),
      draft.identityProviderId,
    )
    const version = BigInt(before.metadata.resourceVersion)
    if (expectedVersion !== undefined && expectedVersion !== version) {
      throw concurrentUserUpdate(draft.id)
    }
    const withAnnotations = mask.includes('metadata') || mask.includes('metadata.annotations')
    const after: User = {
      ...before,
      primaryParty: mask.includes('primary_party') ? draft.primaryParty : before.primaryParty,
      isDeactivated: mask.includes('is_deactivated') ? draft.isDeactivated : before.isDeactivated,
      primaryPartyAuthentication: mask.includes('primary_party_authentication')
        ? draft.primaryPartyAuthentication
        : before.primaryPartyAuthentication,
      metadata: {
        resourceVersion: String(version + 1n),
        annotations: withAnnotations
          ? mergedAnnotations(before.metadata.annotations, draft.annotations, () =>
              userAnnotationsTooLarge(draft.id),
            )
          : before.metadata.annotations,
      },
    }
    await updateUserRow(tx, after)
    await recordChange(tx, actor, {
      action: 'user.update',
      subject: subject(draft.id),
      before,
      after,
    })
    return after
  })
}

export const deleteUser = async (
  db: Db,
  actor: Actor,
  { userId, identityProviderId }: { userId: string; identityProviderId: string },
): Promise<void> => {
  if (actor.userId === userId) throw invalidArgument('Requesting user cannot delete itself')
  await db.transaction(async (tx) => {
    const locked = await lockUser(tx, userId)
    const user = requireHome(requireUser(locked, 'deleting user', userId), identityProviderId)
    const rights = (await selectRights(tx, userId)).map(rightToJson)
    await deleteUserRow(tx, userId)
    const before = { user, rights }
    await recordChange(tx, actor, { action: 'user.delete', subject: subject(userId), before })
  })
}

/**
 * Moves a user from one provider to another: one compare-and-set, so that of two concurrent moves
 * from the same source exactly one succeeds. Both providers are held until it is done, so that
 * neither can be deleted meanwhile. Nothing else of the user changes.
 */
export const moveUser = async (
  db: Db,
  actor: Actor,
  move: { userId: string; source: string; target: string },
): Promise<void> => {
  const { userId, source, target } = move
  await db.transaction(async (tx) => {
    for (const id of [source, target]) {
      if (!(await holdProvider(tx, id))) throw unknownProvider(id)
    }
    if (!(await moveUserRow(tx, move))) {
      requireUser(await selectUser(tx, userId), 'update user identity provider', userId)
      throw permissionDenied(`user ${userId} is not in the source identity provider`)
    }
    if (source === target) return
    await recordChange(tx, actor, {
      action: 'user.identity-provider.move',
      subject: subject(userId),
      before: { identityProviderId: source },
      after: { identityProviderId: target },
    })
  })
}

const subject = (id: string) => ({ kind: 'user' as const, id })
