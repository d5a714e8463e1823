import type { Db } from '../db/db.ts'
import type { LedgerError } from '../http/ledger-error.ts'
import type { Ledger, TypedContract } from '../ledger/ledger.ts'
import { archiveCommand, createCommand, exerciseCommand } from '../ledger/network.ts'
import { amuletRules } from '../ledger/rules.ts'
import { type ValidatorLicencePayload, validatorLicence } from '../ledger/validator-licence.ts'
import {
  expireOnboarding,
  matchOnboarding,
  usedSecret,
  type ValidatorOnboardingPayload,
  validatorOnboarding,
} from '../ledger/validator-onboarding.ts'
import { insertParty } from '../users/parties-store.ts'
import { partyFault } from '../users/user.ts'
import { type Instant, instantFromMicros, printShortest } from '../values/instant.ts'
import {
  expiredSecret,
  foreignSecret,
  joinContended,
  missingSecret,
  noSuchOnboarding,
  notAParty,
  notDevNet,
  otherHint,
  Refusal,
  type RefusalReason,
  secretOfAnother,
  tooManySecrets,
  unknownSecret,
} from './refusals.ts'
import { decodeSecret, encodeSecret, hashSecret, newSecret } from './secret.ts'

/**
 * The sponsor's side: invites validators with one-time secrets, and admits those who present one.
 * Secrets and licences are contracts of the embedded ledger, so that using a secret and granting the
 * licence are one transaction: a crash leaves both or none, and of two that use one secret at the
 * same time one finds it consumed.
 */
export type Sponsor = {
  issue(wish: { expiresInSeconds: number; partyHint: string | undefined }): Promise<Issued>
  /** A secret for anyone who asks, on a development network. */
  issueForDevNet(): Promise<Issued>
  /** The secrets that were issued and not used, without the secrets themselves. */
  ongoing(): Promise<Invitation[]>
  revoke(which: { contractId: string } | { secret: string }): Promise<Invitation>
  /** Admits the validator; resolves as well when it was admitted before. */
  admit(request: JoinRequest): Promise<void>
  /** Clears away secrets that expired some time ago; resolves with whether there were any. */
  clearExpired(): Promise<boolean>
  /** Everyone who has joined, by contract id. */
  licences(page: {
    after: string
    limit: number
  }): Promise<TypedContract<ValidatorLicencePayload>[]>
}

export type Issued = { secret: string; invitation: Invitation }
export type Invitation = TypedContract<ValidatorOnboardingPayload>
export type JoinRequest = {
  partyId: string
  secret: string
  version: string
  contactPoint: string
}

export type SponsorOptions = {
  ledger: Ledger
  /** The participant database, which knows the parties. */
  db: Db
  /** The operator's party, in whose name secrets are issued. */
  sponsorParty: string
  dso: string
  events?: SponsorEvents
}

export const SECRET_OUTCOMES = ['issued', 'used', 'revoked', 'expired'] as const

export type SponsorEvents = {
  /** What became of secrets; those that expired are told when they are cleared away. */
  onSecrets(outcome: (typeof SECRET_OUTCOMES)[number], count: number): void
  onRefused(reason: RefusalReason): void
}

const MICROS_PER_SECOND = 1_000_000n
const DEVNET_SECONDS = 3600
/** Anyone may ask a development network for secrets; each is a contract. */
const OPEN_SECRETS_MAX = 1000
/** Whoever comes late within a day is told that the secret has expired, not that nobody knows it. */
const EXPIRED_KEPT_MICROS = 24n * 3600n * MICROS_PER_SECOND
/** More are not kept: every application reads all of them, and on a development network anyone makes some. */
const EXPIRED_KEPT_MAX = 100
/** Expired secrets that one transaction clears away. */
const CLEARED_AT_ONCE_MAX = 50
/** Each attempt is lost to somebody who has joined meanwhile. */
const ATTEMPTS_MAX = 20
/** Two secrets presented by one party at the same moment make one licence. */
const SAME_MOMENT_MICROS = 60n * MICROS_PER_SECOND
/** Somebody else was faster, so that the question must be asked again. */
const OVERTAKEN = new Set([
  'CONTRACT_NOT_FOUND',
  'DUPLICATE_COMMAND',
  'LOCAL_VERDICT_INACTIVE_CONTRACTS',
  'LOCAL_VERDICT_LOCKED_CONTRACTS',
])

export function createSponsor(options: SponsorOptions): Sponsor {
  const { ledger, dso, sponsorParty: sv, events } = options

  const invitations = (): Promise<Invitation[]> => ledger.contractsOf(validatorOnboarding, sv)
  const isOver = ({ payload }: Invitation) => payload.expiresAt <= ledger.clock.nowMicros()

  async function ongoing(): Promise<Invitation[]> {
    return (await invitations()).filter((invitation) => !isOver(invitation))
  }

  async function issue(wish: {
    expiresInSeconds: number
    partyHint: string | undefined
  }): Promise<Issued> {
    const known = await invitations()
    if (known.filter((one) => !isOver(one)).length >= OPEN_SECRETS_MAX) {
      throw tooManySecrets(OPEN_SECRETS_MAX)
    }
    await ensureParty(options, sv, true)
    const secret = newSecret(sv, wish.partyHint)
    const candidateSecret = hashSecret(secret.secret)
    const expiresAt = ledger.clock.nowMicros() + BigInt(wish.expiresInSeconds) * MICROS_PER_SECOND
    const partyHint = wish.partyHint ?? null
    const payload = { sv, candidateSecret, expiresAt, partyHint }
    await ledger.submit({
      actAs: [sv],
      workflowId: 'prepare-validator-onboarding',
      commands: [createCommand(ledger, validatorOnboarding, payload)],
    })
    const issued = (await invitations()).find(
      (one) => one.payload.candidateSecret === candidateSecret,
    )
    if (issued === undefined) throw new Error('The secret has just been issued.')
    events?.onSecrets('issued', 1)
    return { secret: encodeSecret(secret), invitation: issued }
  }

  async function clearExpired(): Promise<boolean> {
    const due = dueForClearing(await invitations(), ledger.clock.nowMicros())
    const commands = due.slice(0, CLEARED_AT_ONCE_MAX).map(({ contractId }) =>
      exerciseCommand(ledger, {
        template: validatorOnboarding,
        contractId,
        choice: expireOnboarding,
        argument: {},
      }),
    )
    if (commands.length === 0) return false
    try {
      await ledger.submit({ actAs: [sv], workflowId: 'expire-validator-onboarding', commands })
    } catch (error) {
      // Another process clears away the same ones.
      ignoreOvertaken(error)
      return false
    }
    events?.onSecrets('expired', commands.length)
    return true
  }

  async function counting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Refusal) events?.onRefused(error.reason)
      throw error
    }
  }

  /** The decisions in the order of the deployed network; the result says whether to submit. */
  async function decide({ partyId, secret }: JoinRequest): Promise<Invitation | undefined> {
    const hint = hintOf(partyId)
    if (hint === undefined) throw notAParty(partyId)
    if (secret.trim() === '') throw missingSecret()
    const decoded = decodeSecret(secret)
    const { sponsoringSv } = decoded
    if (sponsoringSv !== undefined && sponsoringSv !== sv) throw foreignSecret(sv, sponsoringSv)
    const hash = hashSecret(decoded.secret)
    const invitation = (await invitations()).find(({ payload }) => payload.candidateSecret === hash)
    if (invitation === undefined) {
      const used = (await ledger.contractsOf(usedSecret, sv)).find(
        ({ payload }) => payload.secret === hash,
      )
      if (used === undefined) throw unknownSecret()
      if (used.payload.validator !== partyId) throw secretOfAnother()
      return undefined
    }
    const fixed = invitation.payload.partyHint
    if (fixed !== null && fixed !== hint) throw otherHint(fixed, hint)
    return (await isLicensed(partyId)) ? undefined : invitation
  }

  async function isLicensed(partyId: string): Promise<boolean> {
    const licences = await ledger.contractsOf(validatorLicence, partyId)
    return licences.some(({ payload }) => payload.validator === partyId)
  }

  async function grant(invitation: Invitation, request: JoinRequest): Promise<void> {
    const { partyId: validator, version, contactPoint } = request
    await ensureParty(options, sv, true)
    await ensureParty(options, dso, true)
    await ensureParty(options, validator, false)
    const lastUpdatedAt = ledger.clock.nowMicros()
    await ledger.submit({
      actAs: [sv, dso],
      workflowId: 'onboard-validator',
      commandId: `onboard-validator/${validator}`,
      deduplicationMicros: SAME_MOMENT_MICROS,
      commands: [
        exerciseCommand(ledger, {
          template: validatorOnboarding,
          contractId: invitation.contractId,
          choice: matchOnboarding,
          argument: { providedSecret: invitation.payload.candidateSecret, validator },
        }),
        createCommand(ledger, validatorLicence, {
          validator,
          sponsor: sv,
          dso,
          faucetState: null,
          metadata: { lastUpdatedAt, version, contactPoint },
          lastActiveAt: null,
        }),
      ],
    })
  }

  async function admit(request: JoinRequest): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const invitation = await decide(request)
      if (invitation === undefined) return
      try {
        await grant(invitation, request)
        events?.onSecrets('used', 1)
        return
      } catch (error) {
        if (codeOf(error) === 'INTERPRETATION_USER_ERROR' && isOver(invitation)) {
          throw expiredSecret(printTime(invitation.payload.expiresAt))
        }
        if (!OVERTAKEN.has(codeOf(error))) throw error
      }
    }
    throw joinContended()
  }

  async function issueForDevNet(): Promise<Issued> {
    const [rules] = await ledger.contractsOf(amuletRules, dso)
    if (rules?.payload.isDevNet !== true) throw notDevNet()
    return issue({ expiresInSeconds: DEVNET_SECONDS, partyHint: undefined })
  }

  return {
    issue: (wish) => counting(() => issue(wish)),
    issueForDevNet: () => counting(issueForDevNet),
    ongoing,
    async revoke(which) {
      const hash = 'secret' in which ? hashSecret(decodeSecret(which.secret).secret) : undefined
      const invitation = (await invitations()).find((one) =>
        'contractId' in which
          ? one.contractId === which.contractId
          : one.payload.candidateSecret === hash,
      )
      if (invitation === undefined) throw noSuchOnboarding()
      const commands = [archiveCommand(ledger, validatorOnboarding, invitation.contractId)]
      try {
        await ledger.submit({ actAs: [sv], workflowId: 'revoke-validator-onboarding', commands })
      } catch (error) {
        ignoreOvertaken(error)
        throw noSuchOnboarding()
      }
      events?.onSecrets('revoked', 1)
      return invitation
    },
    admit: (request) => counting(() => admit(request)),
    clearExpired,
    async licences({ after, limit }) {
      const all = await ledger.contractsOf(validatorLicence, dso)
      return all
        .filter(({ contractId }) => contractId > after)
        .toSorted((a, b) => (a.contractId < b.contractId ? -1 : 1))
        .slice(0, limit)
    },
  }
}

/** The newest ones that expired are kept for a while. */
function dueForClearing(known: Invitation[], nowMicros: bigint): Invitation[] {
  return known
    .filter(({ payload }) => payload.expiresAt <= nowMicros)
    .toSorted((a, b) => (a.payload.expiresAt < b.payload.expiresAt ? 1 : -1))
    .filter(
      ({ payload }, index) =>
        index >= EXPIRED_KEPT_MAX || payload.expiresAt + EXPIRED_KEPT_MICROS <= nowMicros,
    )
}

/** A party that joins lives elsewhere, but the ledger must have heard of it. */
async function ensureParty(
  { db, ledger }: SponsorOptions,
  party: string,
  isLocal: boolean,
): Promise<void> {
  await insertParty(db, {
    party,
    isLocal,
    localMetadata: { resourceVersion: '0', annotations: {} },
    identityProviderId: '',
    createdAt: instantFromMicros(ledger.clock.nowMicros()) as Instant,
  })
}

/** The part of a party id before its fingerprint; undefined when the text is no party id. */
function hintOf(partyId: string): string | undefined {
  const [hint, fingerprint, more] = partyId.split('::')
  if (!hint || !fingerprint || more !== undefined) return undefined
  return partyFault(partyId) === undefined ? hint : undefined
}

function codeOf(error: unknown): string {
  const { name, code } = error as LedgerError
  return name === 'LedgerError' ? code : ''
}

function ignoreOvertaken(error: unknown): void {
  if (!OVERTAKEN.has(codeOf(error))) throw error
}

function printTime(micros: bigint): string {
  return printShortest(instantFromMicros(micros) as Instant)
}
