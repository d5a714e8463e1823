import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { type Clock, createSimulatedClock, type SimulatedClock, systemClock } from './base/clock.ts'
import type { NodeConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import type { History } from './history/history.ts'
import { type Ledger, type LedgerOptions, openLedger } from './ledger/ledger.ts'
import { DSO_HINT } from './ledger/network.ts'
import { SEED_PEOPLE, SEED_SPAN_MICROS, seedNetwork } from './ledger/seed.ts'
import { TEMPLATES } from './ledger/templates.ts'
import { findState } from './ledger/updates-store.ts'
import { ensurePartyUser, letAdminActAs } from './users/first-users.ts'
import type { Participant } from './users/participant-store.ts'
import { insertParty } from './users/parties-store.ts'
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
}

/** The seeded network begins here when it is to be the same each time. */
const SEED_START_MICROS = 1_767_225_600_000_000n
const DEFAULT_SEED = 'annals'

/** Opens the embedded ledger; undefined when the history belongs to somebody else. */
export async function openNodeLedger(options: NodeLedgerOptions): Promise<NodeLedger | undefined> {
  const { config, db, participant, history, log } = options
  if (config.historyWriter !== 'ledger') return undefined
  const { last } = history.view
  if (last !== undefined && last.migrationId > config.migration.id) {
    log.warn(
      { historyMigration: String(last.migrationId), migration: String(config.migration.id) },
      'the embedded ledger is off: the history holds a later migration than migration.id',
    )
    return undefined
  }
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
  }
  if (isSeeded) await seedParticipant(base, options)
  const simulated = options.simTime ? await openSimulatedClock(db, history) : undefined
  const clock: Clock = simulated ?? systemClock
  const ledger = await openLedger({ ...base, clock })
  return { ledger, simulated, isSeeded, dso: partyOf(participant, DSO_HINT) }
}

/** Parties, users, and the story that they have lived through so far. */
async function seedParticipant(
  base: Omit<LedgerOptions, 'clock'>,
  { db, participant, seed }: NodeLedgerOptions,
): Promise<void> {
  const localParty = (hint: string) => partyOf(participant, hint)
  const hints = [...new Set([DSO_HINT, ...SEED_PEOPLE, participant.partyHint])]
  const start = seed === undefined ? systemClock.nowMicros() - SEED_SPAN_MICROS : SEED_START_MICROS
  await db.transaction(async (tx) => {
    for (const hint of hints) {
      await insertParty(tx, {
        party: localParty(hint),
        isLocal: true,
        localMetadata: { resourceVersion: '0', annotations: { name: displayName(hint) } },
        identityProviderId: '',
        createdAt: instantFromMicros(start) as Instant,
      })
    }
  })
  await letAdminActAs(db, hints.map(localParty))
  for (const person of SEED_PEOPLE) await ensurePartyUser(db, person, localParty(person))
  const clock = createSimulatedClock(start)
  const ledger = await openLedger({ ...base, clock })
  await seedNetwork({
    ledger,
    clock,
    seed: seed ?? DEFAULT_SEED,
    dso: localParty(DSO_HINT),
    validator: localParty(participant.partyHint),
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

function displayName(hint: string): string {
  return hint.charAt(0).toUpperCase() + hint.slice(1)
}
