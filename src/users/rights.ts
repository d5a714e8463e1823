import type { Db } from '../db/db.ts'
import { type Actor, recordChange } from './audit.ts'
import { invalidArgument, tooManyUserRights, unknownParties } from './errors.ts'
import { requireHome, requireUser } from './known-user.ts'
import { selectParties } from './parties-store.ts'
import {
  partyFault,
  RIGHT_KIND_NAMES,
  RIGHTS_PER_USER_MAX,
  type Right,
  rightKey,
  rightToJson,
  type StatedRight,
  takesParty,
} from './user.ts'
import { deleteRights, insertRights, lockUser, selectRights, selectUser } from './users-store.ts'

/** Granting and revoking rights, each in one transaction with its audit entry. */
export type RightsChange = {
  userId: string
  identityProviderId: string
  rights: Right[]
  /** Callers that are not participant admins may only name parties of their provider. */
  partiesMustExist: boolean
}

export const listRights = async (
  db: Db,
  { userId, identityProviderId }: { userId: string; identityProviderId: string },
): Promise<Right[]> => {
  const user = await selectUser(db, userId)
  requireHome(requireUser(user, 'list user rights', userId), identityProviderId)
  return selectRights(db, userId)
}

/** The rights of a request, once they are known to be rights. */
export const checkRights = (rights: StatedRight[]): Right[] =>
  rights.map(({ kind, party }) => {
    if (kind === undefined) {
      throw invalidArgument(`unknown kind of right; use one of ${RIGHT_KIND_NAMES.join(', ')}`)
    }
    const fault = takesParty(kind) ? partyFault(party) : undefined
    if (fault !== undefined) throw invalidArgument(fault)
    return { kind, party }
  })

/** Returns the rights that the user did not have before. */
export const grantRights = async (db: Db, actor: Actor, change: RightsChange): Promise<Right[]> =>
  db.transaction(async (tx) => {
    const held = await heldForChange(tx, change, 'grant user rights')
    const granted = distinctRights(change.rights).filter((right) => !held.has(rightKey(right)))
    if (held.size + granted.length > RIGHTS_PER_USER_MAX) {
      throw tooManyUserRights('grant user rights', change.userId)
    }
    if (granted.length === 0) return []
    await insertRights(tx, change.userId, granted)
    await recordChange(tx, actor, {
      action: 'user.rights.grant',
      subject: subject(change.userId),
      after: { rights: granted.map(rightToJson) },
    })
    return granted
  })

/** Returns the rights that the user has no longer. */
export const revokeRights = async (
  db: Db,
  actor: Actor,
  change: RightsChange,
): Promise<Right[]> => {
  const ownAdmin = change.rights.some(({ kind }) => kind === 'ParticipantAdmin')
  if (actor.userId === change.userId && ownAdmin) {
    throw invalidArgument('Requesting user cannot revoke own participant admin right')
  }
  return db.transaction(async (tx) => {
    const held = await heldForChange(tx, change, 'revoke user rights')
    const revoked = distinctRights(change.rights).filter((right) => held.has(rightKey(right)))
    if (revoked.length === 0) return []
    await deleteRights(tx, change.userId, revoked)
    await recordChange(tx, actor, {
      action: 'user.rights.revoke',
      subject: subject(change.userId),
      before: { rights: revoked.map(rightToJson) },
    })
    return revoked
  })
}

/** Parties of the rights to act and to read must be recorded in the provider. */
export const requireParties = async (
  tx: Db,
  rights: Right[],
  identityProviderId: string,
): Promise<void> => {
  const named = rights.filter(({ kind }) => kind === 'CanActAs' || kind === 'CanReadAs')
  const parties = [...new Set(named.map(({ party }) => party))]
  const known = new Set(
    (await selectParties(tx, parties))
      .filter((party) => party.identityProviderId === identityProviderId)
      .map(({ party }) => party),
  )
  const missing = parties.filter((party) => !known.has(party))
  if (missing.length > 0) throw unknownParties(missing)
}

/** Each right once. */
export const distinctRights = (rights: Right[]): Right[] => [
  ...new Map(rights.map((right) => [rightKey(right), right])).values(),
]

const heldForChange = async (
  tx: Db,
  change: RightsChange,
  operation: string,
): Promise<Set<string>> => {
  if (change.partiesMustExist) await requireParties(tx, change.rights, change.identityProviderId)
  const user = await lockUser(tx, change.userId)
  requireHome(requireUser(user, operation, change.userId), change.identityProviderId)
  return new Set((await selectRights(tx, change.userId)).map(rightKey))
}

const subject = (id: string) => ({ kind: 'user' as const, id })
