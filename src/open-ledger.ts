import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { type Clock, createSimulatedClock, type SimulatedClock, systemClock } from './base/clock.ts'
import type { LedgerTrafficConfig, NodeConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { withinTransaction } from './db/transaction.ts'
import type { History } from './history/history.ts'
import { type Ledger, type LedgerEvents, type LedgerOptions, openLedger } from './ledger/ledger.ts'
import { DSO_HINT } from './ledger/network.ts'
import type { TrafficParameters } from './ledger/rules.ts'
import { SEED_PEOPLE, SEED_SPAN_MICROS, seedNetwork } from './ledger/seed.ts'
import { TEMPLATES } from './ledger/templates.ts'
import type { TrafficOptions } from './ledger/traffic-control.ts'
import { findState } from './ledger/updates-store.ts'
import { ensurePartyUser, letAdminActAs } from './users/first-users.ts'
import type { Participant } from './users/participant-store.ts'
import { insertParty, selectParties } from './users/parties-store.ts'
import { decimal } from './values/decimal.ts'
import { type Instant, instantFromMicros, microsOf } from './values/instant.ts'

export type NodeLedger = {
  ledger: Ledger
  /** The clock, when a test drives it. */
  simulated: SimulatedClock | undefined
  isSeeded: boolean
  /** The party that governs the coin network, if there is one. */
  dso: string
}

export type NodeLedgerOptions = {
  config: NodeConfig
  db: Db
  participant: Participant
  history: History
  log: Logger
  /** Whether an empty node gets a small network with a past. */
  isSeedWanted: boolean
  /** Makes everything about the seeded network the same each time. */
  seed: string | undefined
  /** Time stands still until somebody advances it. */
  simTime: boolean
  /** Hears of traffic that is spent, and of submissions that cannot be paid. */
  onTraffic?: Pick<TrafficOptions, 'onSpent' | 'onRefused'>
  /** Hears of submissions, but not of those that seed. */
  events?: LedgerEvents
}

/** The seeded network begins here when it is to be the same each time. */
const SEED_START_MICROS = 1_767_225_600_000_000n
const DEFAULT_SEED = 'annals'

/** Why this node has no ledger of its own, and what to do; undefined when it has one. */
export function whyLedgerIsOff(
  config: Pick<NodeConfig, 'historyWriter' | 'migration'>,
  { view: { last } }: Pick<History, 'view'>,
): string | undefined {
  if (config.historyWriter === 'mirror') {
    return 'The embedded ledger is off: this node copies the history of a network. Submit commands to a participant of that network; for a ledger of its own, start a node without annals.mirror.from and scan addresses in another data directory.'
  }
  const { id } = config.migration
  if (last === undefined || last.migrationId <= id) return undefined
  return `The embedded ledger is off: the history holds migration ${last.migrationId}, which is later than migration.id ${id}. To go on from there, set migration.id to ${last.migrationId} and migration.migrating to true for one start; for a new network, choose another data directory.`
}

/** Opens the embedded ledger; undefined when the history belongs to somebody else. */
export async function openNodeLedger(options: NodeLedgerOptions): Promise<NodeLedger | undefined> {
  const { config, db, participant, history, log } = options
  const { last } = history.view
  const reason = whyLedgerIsOff(config, history)
  if (reason !== undefined) {
    log[config.historyWriter === 'mirror' ? 'info' : 'warn'](reason)
    return undefined
  }
  const dso = partyOf(participant, DSO_HINT)
  const isEmpty = last === undefined && ((await findState(db))?.lastOffset ?? 0n) === 0n
  const isSeeded = options.isSeedWanted && isEmpty
  const second = isSeeded || config.ledger.secondSynchronizer
  const base = {
    db,
    migrationId: config.migration.id,
    synchronizerId: participant.synchronizerId,
    templates: TEMPLATES,
    deduplicationMs: config.wallet.deduplicationMs,
    recordTimeFloor: () => floorOf(history, config.migration.id),
    secondSynchronizerId: second ? secondSynchronizerOf(participant) : undefined,
    seed: options.seed,
    traffic: { memberId: memberIdOf(participant), dso, ...options.onTraffic },
  }
  if (isSeeded) await seedParticipant(base, options)
  const simulated = options.simTime ? await openSimulatedClock(db, history) : undefined
  const clock: Clock = simulated ?? systemClock
  const ledger = await openLedger({ ...base, clock, events: options.events ?? {} })
  return { ledger, simulated, isSeeded, dso }
}

/**
 * Parties, users, and the story that they have lived through so far: in one transaction, so that a
 * start that is interrupted leaves nothing, and the next one tells the same story from its beginning.
 */
async function seedParticipant(
  base: Omit<LedgerOptions, 'clock'>,
  options: NodeLedgerOptions,
): Promise<void> {
  const { seed } = options
  const start = seed === undefined ? systemClock.nowMicros() - SEED_SPAN_MICROS : SEED_START_MICROS
  await options.db.transaction(async (tx) => {
    const db = withinTransaction(tx)
    await seedPeople(db, options.participant, start)
    await seedStory({ ...base, db }, options, start)
  })
}

async function seedPeople(db: Db, participant: Participant, startMicros: bigint): Promise<void> {
  const hints = [...new Set([DSO_HINT, ...SEED_PEOPLE, participant.partyHint])]
  const parties = hints.map((hint) => ({ hint, party: partyOf(participant, hint) }))
  const ids = parties.map(({ party }) => party)
  const present = new Set((await selectParties(db, ids)).map(({ party }) => party))
  for (const { hint, party } of parties.filter((one) => !present.has(one.party))) {
    await insertParty(db, {
      party,
      isLocal: true,
      localMetadata: { resourceVersion: '0', annotations: { name: displayName(hint) } },
      identityProviderId: '',
      createdAt: instantFromMicros(startMicros) as Instant,
    })
  }
  await letAdminActAs(db, ids)
  for (const person of SEED_PEOPLE) await ensurePartyUser(db, person, partyOf(participant, person))
}

async function seedStory(
  base: Omit<LedgerOptions, 'clock'>,
  { config, participant, seed }: NodeLedgerOptions,
  startMicros: bigint,
): Promise<void> {
  const localParty = (hint: string) => partyOf(participant, hint)
  const clock = createSimulatedClock(startMicros)
  const ledger = await openLedger({ ...base, clock })
  await seedNetwork({
    ledger,
    clock,
    seed: seed ?? DEFAULT_SEED,
    dso: localParty(DSO_HINT),
    validator: localParty(participant.partyHint),
    memberId: memberIdOf(participant),
    traffic: parametersOf(config.ledger.traffic),
    people: SEED_PEOPLE.map(localParty),
  })
  await ledger.close()
}

/** Goes on from the last update, so that a restart does not turn time back. */
async function openSimulatedClock(db: Db, history: History): Promise<SimulatedClock> {
  const state = await findState(db)
  const last = history.view.last?.recordTime
  const times = [state?.lastRecordTime, last]
    .filter((time) => time !== undefined)
    .map(microsOf)
    .filter((micros) => micros > 0n)
  const latest = times.reduce<bigint | undefined>(
    (newest, time) => (newest === undefined || time > newest ? time : newest),
    undefined,
  )
  return createSimulatedClock(latest ?? systemClock.nowMicros())
}

function floorOf({ view: { last } }: History, migrationId: bigint): Instant | undefined {
  return last !== undefined && last.migrationId === migrationId ? last.recordTime : undefined
}

function secondSynchronizerOf({ synchronizerId }: Participant): string {
  const fingerprint = createHash('sha256').update(`second/${synchronizerId}`).digest('hex')
  return `second-domain::1220${fingerprint}`
}

function partyOf({ participantId }: Participant, hint: string): string {
  return `${hint}::${participantId.slice(participantId.indexOf('::') + 2)}`
}

/** The participant as a member of the synchronizer. */
function memberIdOf({ participantId }: Participant): string {
  return `PAR::${participantId}`
}

function parametersOf(traffic: LedgerTrafficConfig): TrafficParameters {
  return {
    baseRateTrafficLimits: {
      burstAmount: BigInt(traffic.burstAmount),
      burstWindow: { microseconds: BigInt(traffic.burstWindowMs) * 1000n },
    },
    extraTrafficPrice: decimal(traffic.extraTrafficPrice),
    readVsWriteScalingFactor: BigInt(traffic.readVsWriteScalingFactor),
    minTopupAmount: BigInt(traffic.minTopupAmount),
  }
}

function displayName(hint: string): string {
  return hint.charAt(0).toUpperCase() + hint.slice(1)
}
