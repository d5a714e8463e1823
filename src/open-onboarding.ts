import type { Logger } from 'pino'
import { every } from './base/schedule.ts'
import type { NodeConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import type { Health } from './health/checks.ts'
import { callRemote } from './http/call.ts'
import { type AttemptOutcome, startJoining } from './onboarding/joining.ts'
import { createSponsor, type Sponsor, type SponsorEvents } from './onboarding/sponsor.ts'
import { createSponsorClient } from './onboarding/sponsor-client.ts'
import type { SponsorRoutesOptions } from './onboarding/sponsor-routes.ts'
import type { NodeLedger } from './open-ledger.ts'
import type { Authentication } from './users/caller.ts'
import type { Participant } from './users/participant-store.ts'
import { insertParty } from './users/parties-store.ts'

/** The routes of a sponsor, for a port that is open before there is one. */
export type LateSponsor = SponsorRoutesOptions & {
  open(parts: { sponsor: Sponsor; authentication: Authentication }): void
}

/** Undefined on a node that joins somebody else's network. */
export function createLateSponsor(
  config: NodeConfig,
  software: { version: string; releasedAt: string },
): LateSponsor | undefined {
  if (config.historyWriter !== 'ledger') return undefined
  let parts: { sponsor: Sponsor; authentication: Authentication } | undefined
  return {
    sponsor: () => parts?.sponsor,
    authentication: () => parts?.authentication,
    softwareVersion: software.version,
    releasedAt: software.releasedAt,
    open(opened) {
      parts = opened
    },
  }
}

/** Secrets live for hours; a minute more does not matter to anybody. */
const CLEARING_INTERVAL_MS = 60_000

export function openSponsor(
  late: LateSponsor | undefined,
  options: {
    embedded: NodeLedger | undefined
    db: Db
    participant: Participant
    authentication: Authentication
    events: SponsorEvents
    log: Logger
    parts: AsyncDisposableStack
  },
): void {
  const { embedded, db, participant, authentication, events, log, parts } = options
  if (late === undefined || embedded === undefined) return
  const { ledger, dso } = embedded
  const sponsorParty = operatorParty(participant)
  const sponsor = createSponsor({ ledger, db, sponsorParty, dso, events })
  const clearing = every({
    clock: ledger.clock,
    intervalMs: CLEARING_INTERVAL_MS,
    run: () => sponsor.clearExpired(),
    onError: (err) => log.warn({ err }, 'expired onboarding secrets could not be cleared away'),
  })
  parts.defer(() => clearing.close())
  late.open({ sponsor, authentication })
}

export type Joined = { failed: Promise<Error> }

/**
 * Joins the configured network, unless that was done before. Throws what the sponsor refuses at
 * once; a refusal that comes later, because the sponsor was away, resolves the promise that is returned.
 */
export async function joinNetwork(options: {
  config: NodeConfig
  appDb: Db
  participantDb: Db
  participant: Participant
  fetch: typeof globalThis.fetch
  health: Health
  log: Logger
  softwareVersion: string
  onAttempt(outcome: AttemptOutcome): void
  parts: AsyncDisposableStack
}): Promise<Joined> {
  const { config, participant, health, parts } = options
  const { network, identity } = config
  if (network === undefined || network.sponsorUrl === '') return { failed: new Promise(() => {}) }
  const partyId = operatorParty(participant)
  await insertParty(options.participantDb, {
    party: partyId,
    isLocal: true,
    localMetadata: { resourceVersion: '0', annotations: {} },
    identityProviderId: '',
    createdAt: new Date().toISOString(),
  })
  const { sponsorUrl } = network
  const joining = startJoining({
    db: options.appDb,
    sponsor: createSponsorClient({ call: callRemote(options.fetch, sponsorUrl), url: sponsorUrl }),
    sponsorUrl,
    application: {
      partyId,
      partyHint: participant.partyHint,
      version: options.softwareVersion,
      contactPoint: identity.contactPoint,
    },
    secret: network.onboardingSecret?.reveal(),
    isDevNet: network.devNet,
    log: options.log,
    onAttempt: options.onAttempt,
  })
  parts.defer(() => joining.close())
  health.add({ name: 'onboarding', run: () => joining.failure() })
  await joining.firstAnswer
  const { promise: failed, resolve } = Promise.withResolvers<Error>()
  void joining.ended.then((error) => error !== undefined && resolve(error))
  return { failed }
}

/** The party of the node's operator: its hint in the namespace of the participant. */
function operatorParty({ participantId, partyHint }: Participant): string {
  return `${partyHint}::${participantId.slice(participantId.indexOf('::') + 2)}`
}
