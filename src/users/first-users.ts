import type { Db } from '../db/db.ts'
import type { Actor } from './audit.ts'
import { grantRights } from './rights.ts'
import { DEFAULT_PROVIDER, type Right, userIdFault } from './user.ts'
import { createUser, type UserDraft } from './users.ts'
import { selectUser } from './users-store.ts'

const FIRST_ADMIN = 'participant_admin'

/** What the node does of its own accord. */
const NODE_ITSELF: Actor = { userId: undefined, identityProviderId: DEFAULT_PROVIDER, traceId: '' }

/** A user that acts as a party, unless there is one of that name. */
export const ensurePartyUser = async (db: Db, id: string, party: string): Promise<void> => {
  if ((await selectUser(db, id)) !== undefined) return
  const draft: UserDraft = {
    id,
    primaryParty: party,
    isDeactivated: false,
    primaryPartyAuthentication: false,
    identityProviderId: DEFAULT_PROVIDER,
    annotations: new Map(),
  }
  const rights: Right[] = [{ kind: 'CanActAs', party }]
  await createUser(db, NODE_ITSELF, draft, { rights, partiesMustExist: false })
}

/** Lets the administrator of a seeded network act as all of its parties. */
export const letAdminActAs = async (db: Db, parties: readonly string[]): Promise<void> => {
  await grantRights(db, NODE_ITSELF, {
    userId: FIRST_ADMIN,
    identityProviderId: DEFAULT_PROVIDER,
    rights: parties.map((party) => ({ kind: 'CanActAs', party })),
    partiesMustExist: false,
  })
}

/**
 * The users that a node has from its first start: `participant_admin`, and the service user of the
 * ledger API secret. An existing user is left as it is, whatever has become of its rights.
 */
export const ensureFirstUsers = async (
  db: Db,
  { serviceUser }: { serviceUser?: string } = {},
): Promise<void> => {
  for (const id of new Set([FIRST_ADMIN, ...(serviceUser ? [serviceUser] : [])])) {
    const fault = userIdFault(id)
    if (fault !== undefined) throw new Error(`The first user cannot be created: ${fault}`)
    if ((await selectUser(db, id)) !== undefined) continue
    const draft: UserDraft = {
      id,
      primaryParty: '',
      isDeactivated: false,
      primaryPartyAuthentication: false,
      identityProviderId: DEFAULT_PROVIDER,
      annotations: new Map(),
    }
    const rights: Right[] = [{ kind: 'ParticipantAdmin', party: '' }]
    try {
      await createUser(db, NODE_ITSELF, draft, { rights, partiesMustExist: false })
    } catch (error) {
      // Another process that shares the database may be starting too.
      if ((await selectUser(db, id)) === undefined) throw error
    }
  }
}
