import { createHash } from 'node:crypto'
import type { Db } from '../db/db.ts'
import { PlainError } from '../http/plain-error.ts'
import type { Participant, ParticipantRight } from './participant.ts'
import { ParticipantError } from './participant-error.ts'
import {
  deleteWalletUser,
  selectWalletUser,
  selectWalletUsers,
  upsertWalletUser,
  type WalletUser,
} from './wallet-store.ts'

/** Who has a wallet here. A user acts for one party; the participant has the last word on the right. */
export type WalletUsers = {
  /** Gives the user a party and a wallet, unless it has them already. */
  onboard(userId: string, by: Onboarder): Promise<string>
  /** Takes the wallet away; the party and what it holds stay on the ledger. */
  offboard(userId: string): Promise<void>
  list(): Promise<WalletUser[]>
  /** What a user may do, as the participant has it now. */
  access(userId: string): Promise<Access>
}

/** Nobody gives oneself the right to act as a party that is there already. */
export type Onboarder = 'itself' | 'administrator'

export type Access = {
  userId: string
  /** The party of its wallet; undefined without a wallet, or when it may not use it. */
  party: string | undefined
  /** It has a wallet, but the participant no longer lets it act as the party. */
  isBarred: boolean
  /** Administers the wallets of this node: acts for its operator, or administers the participant. */
  isAdmin: boolean
}

export type WalletUsersOptions = {
  db: Db
  participant: Participant
  operator: string
  /** The user with which the node itself acts; undefined where authentication is off. */
  serviceUser: string | undefined
  /** `since` is where the ledger stood before the party was made; undefined for one that was there. */
  onAdded(party: string, since: bigint | undefined): Promise<void>
  onRemoved(party: string): void
}

/** How long an answer of the participant counts; a right that was taken away ends within this time. */
const ACCESS_MAX_AGE_MS = 500
/** Answers that are remembered; the oldest go first. */
const ACCESS_MAX = 10_000
/** Room for a suffix: the names of parties have at most 185 characters. */
const HINT_LENGTH_MAX = 120

export function openWalletUsers(options: WalletUsersOptions): WalletUsers {
  const { db, participant, operator } = options
  const known = new Map<string, { at: number; access: Promise<Access> }>()

  /** The node acts as every party that has a wallet here. */
  async function host(party: string, since: bigint | undefined): Promise<void> {
    if (options.serviceUser !== undefined)
      await participant.grantActAs(options.serviceUser, [party])
    await options.onAdded(party, since)
  }

  const onboarding = new Map<string, Promise<string>>()

  /** Of several requests for the same user at the same time, one does the work for all. */
  function onboard(userId: string, by: Onboarder): Promise<string> {
    const running = onboarding.get(`${by} ${userId}`)
    if (running !== undefined) return running
    const party = onboardNow(userId, by).finally(() => onboarding.delete(`${by} ${userId}`))
    onboarding.set(`${by} ${userId}`, party)
    return party
  }

  async function onboardNow(userId: string, by: Onboarder): Promise<string> {
    const user = await findUser(participant, userId)
    if (user?.isDeactivated) {
      throw new PlainError(
        403,
        `The user ${userId} is deactivated. An administrator of the participant activates it.`,
      )
    }
    const stored = await selectWalletUser(db, userId)
    if (stored !== undefined) return stored.party
    const own = user?.primaryParty
    if (own && by === 'itself' && !mayActAs(await participant.rightsOf(userId), own)) {
      throw new PlainError(
        403,
        `The user ${userId} may not act as its party ${own}. An administrator gives it a wallet: POST /v0/admin/users.`,
      )
    }
    const { party, since } = own
      ? { party: own, since: undefined }
      : await newParty(participant, userId)
    const isGranted = await giveRight(participant, { userId, party, exists: user !== undefined })
    await host(party, since)
    await upsertWalletUser(db, { userId, party, isConfigured: false, isGranted })
    known.delete(userId)
    return party
  }

  async function readAccess(userId: string): Promise<Access> {
    const [stored, user] = await Promise.all([
      selectWalletUser(db, userId),
      findUser(participant, userId),
    ])
    const isActive = user !== undefined && !user.isDeactivated
    const rights = isActive ? await participant.rightsOf(userId) : []
    const party = stored && mayActAs(rights, stored.party) ? stored.party : undefined
    return {
      userId,
      party,
      isBarred: stored !== undefined && party === undefined,
      isAdmin: party === operator || rights.some((right) => right.kind === 'ParticipantAdmin'),
    }
  }

  return {
    onboard,
    async offboard(userId) {
      const stored = await selectWalletUser(db, userId)
      if (stored === undefined) {
        throw new PlainError(404, `The user ${userId} has no wallet on this node.`)
      }
      if (stored.isConfigured) {
        throw new PlainError(
          409,
          `The user ${userId} is one of validatorWalletUsers. Remove it there and restart the node.`,
        )
      }
      if (stored.isGranted) await participant.revokeActAs(userId, [stored.party])
      await deleteWalletUser(db, userId)
      known.delete(userId)
      const others = await selectWalletUsers(db)
      const isUsed = stored.party === operator || others.some(({ party }) => party === stored.party)
      if (!isUsed) options.onRemoved(stored.party)
    },
    list: () => selectWalletUsers(db),
    access(userId) {
      const now = performance.now()
      const recent = known.get(userId)
      if (recent !== undefined && now - recent.at < ACCESS_MAX_AGE_MS) return recent.access
      const access = readAccess(userId)
      known.delete(userId)
      known.set(userId, { at: now, access })
      access.catch(() => known.delete(userId))
      for (const oldest of known.keys()) {
        if (known.size <= ACCESS_MAX) break
        known.delete(oldest)
      }
      return access
    },
  }
}

/**
 * Brings the users of the configuration in line: those it names act for the operator's party, those
 * that it no longer names lose what the node had given them.
 */
export async function alignConfiguredUsers(options: {
  db: Db
  participant: Participant
  operator: string
  userIds: readonly string[]
}): Promise<{ added: string[]; removed: string[] }> {
  const { db, participant, operator } = options
  const wanted = new Set(options.userIds)
  const stored = await selectWalletUsers(db)
  const removed = stored.filter(({ userId, isConfigured }) => isConfigured && !wanted.has(userId))
  for (const { userId, party, isGranted } of removed) {
    const user = await findUser(participant, userId)
    if (user !== undefined && isGranted) await participant.revokeActAs(userId, [party])
    await deleteWalletUser(db, userId)
  }
  const added: string[] = []
  for (const userId of wanted) {
    const before = stored.find((user) => user.userId === userId)
    const isSame = before?.party === operator
    const user = await findUser(participant, userId)
    const of = { userId, party: operator, exists: user !== undefined }
    const isGranted = (await giveRight(participant, of)) || (isSame && before.isGranted)
    await upsertWalletUser(db, { userId, party: operator, isConfigured: true, isGranted })
    if (before?.isConfigured !== true) added.push(userId)
  }
  return { added, removed: removed.map(({ userId }) => userId) }
}

function mayActAs(rights: readonly ParticipantRight[], party: string): boolean {
  return rights.some(
    (right) =>
      right.kind === 'CanActAsAnyParty' || (right.kind === 'CanActAs' && right.party === party),
  )
}

/** Whether the user could not act as the party before. */
async function giveRight(
  participant: Participant,
  of: { userId: string; party: string; exists: boolean },
): Promise<boolean> {
  const { userId, party } = of
  if (of.exists) return (await participant.grantActAs(userId, [party])).length > 0
  await participant.createUser({ id: userId, primaryParty: party, actAs: [party] })
  return true
}

async function findUser(participant: Participant, userId: string) {
  try {
    return await participant.findUser(userId)
  } catch (error) {
    if (error instanceof ParticipantError && error.status === 403) {
      throw new PlainError(
        403,
        `The user ${userId} belongs to another identity provider of the participant. Move it to the default one first.`,
      )
    }
    if (error instanceof ParticipantError && error.status === 400) {
      throw new PlainError(
        400,
        'The user id has characters that the ledger does not take, or more than 128 of them.',
      )
    }
    throw error
  }
}

/** Named after the user; a name that is taken, or had to be changed, gets a suffix of its own. */
async function newParty(
  participant: Participant,
  userId: string,
): Promise<{ party: string; since: bigint | undefined }> {
  const since = await participant.ledgerEnd()
  const name = userId.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, HINT_LENGTH_MAX)
  const id = await participant.participantId()
  const namespace = id.slice(id.indexOf('::') + 2)
  const isFree = name === userId && !(await participant.isKnownParty(`${name}::${namespace}`))
  const suffix = createHash('sha256').update(userId).digest('hex').slice(0, 12)
  const hint = isFree ? name : `${name}-${suffix}`
  const isNew = isFree || !(await participant.isKnownParty(`${hint}::${namespace}`))
  return { party: await participant.ensureParty(hint), since: isNew ? since : undefined }
}
