import type { Db } from '../db/db.ts'
import { DEFAULT_PROVIDER, type Right, userIdFault } from './user.ts'
import { createUser, type UserDraft } from './users.ts'
import { selectUser } from './users-store.ts'

/**
 * The users that a node has from its first start: `participant_admin`, and the service user of the
 * ledger API secret. An existing user is left as it is, whatever has become of its rights.
 */
export const ensureFirstUsers = async (
  db: Db,
  { serviceUser }: { serviceUser?: string } = {},
): Promise<void> => {
  const actor = { userId: undefined, identityProviderId: DEFAULT_PROVIDER, traceId: '' }
  for (const id of new Set(['participant_admin', ...(serviceUser ? [serviceUser] : [])])) {
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
      await createUser(db, actor, draft, { rights, partiesMustExist: false })
    } catch (error) {
      // Another process that shares the database may be starting too.
      if ((await selectUser(db, id)) === undefined) throw error
    }
  }
}
