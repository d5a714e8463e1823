import { existsSync } from 'node:fs'
import { systemClock } from './base/clock.ts'
import type { DatabaseConfig, NodeConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import type { History } from './history/history.ts'
import { readNodeMigration } from './history/node-store.ts'
import { carryContracts } from './ledger/carry-store.ts'
import { openLedger } from './ledger/ledger.ts'
import { TEMPLATES } from './ledger/templates.ts'
import { findState } from './ledger/updates-store.ts'
import { openDatabase } from './open-databases.ts'
import { startFollowing } from './scan/follow.ts'
import { carryParticipant, carryPeople, selectParticipantMigration } from './users/carry-store.ts'
import { openParticipant, ParticipantError } from './users/participant-store.ts'

/**
 * A synchronizer migration: the node goes on in a new participant database. What the old ledger has
 * still to tell goes into the history first; then users, identity providers, parties and active
 * contracts are carried over in one transaction; last the node notes where it lives. Each step finds
 * out whether it was done before, so that an interrupted migration is simply started again.
 */
export type MigrationStep = { kind: 'stay' } | { kind: 'migrate'; from: bigint }

/** What the start with this id means; throws the sentence when it may not be. */
export function planMigration(
  stored: bigint | undefined,
  wanted: { id: bigint; migrating: boolean },
): MigrationStep {
  if (stored === undefined || stored === wanted.id) return { kind: 'stay' }
  if (wanted.id < stored) {
    throw new ParticipantError(
      `migration.id is ${wanted.id}, but this node is already at migration ${stored}, and a migration is not undone. Set migration.id to ${stored}.`,
    )
  }
  if (!wanted.migrating) {
    throw new ParticipantError(
      `migration.id is ${wanted.id}, but this node is at migration ${stored}. To migrate, set migration.migrating to true for this start; otherwise set migration.id back to ${stored}.`,
    )
  }
  return { kind: 'migrate', from: stored }
}

/** Called before the new participant database is opened, so that a refusal leaves nothing behind. */
export async function migrateParticipant(options: {
  config: NodeConfig
  appDb: Db
  history: History
  /** Whether another node writes the history. */
  isFollower: boolean
}): Promise<MigrationStep> {
  const { config, appDb, history, isFollower } = options
  const step = planMigration(await readNodeMigration(appDb), config.migration)
  if (isFollower) {
    if (step.kind === 'stay') return step
    throw new ParticipantError(
      'Another node writes this history. Stop it, migrate with one node, then start the others.',
    )
  }
  if (step.kind === 'migrate') await carry(step.from, config, history)
  return step
}

async function carry(from: bigint, config: NodeConfig, history: History): Promise<void> {
  const { id } = config.migration
  await using parts = new AsyncDisposableStack()
  const old = await openDatabase(databaseOf(config.databases.participant, id, from), 'participant')
  parts.defer(() => old.db.close())
  if (config.historyWriter === 'ledger') await drain(old.db, from, config, history)
  const { db } = await openDatabase(config.databases.participant, 'participant')
  parts.defer(() => db.close())
  await carryOver(old.db, db, id)
}

/** Everything in one transaction; nothing when it is there already. */
export async function carryOver(from: Db, to: Db, migrationId: bigint): Promise<void> {
  const present = await selectParticipantMigration(to)
  if (present === migrationId) return
  if (present !== undefined) {
    throw new ParticipantError(
      `The participant database for migration ${migrationId} already belongs to migration ${present}. Give the migration a database of its own.`,
    )
  }
  await to.transaction(async (tx) => {
    await carryPeople(from, tx)
    await carryContracts(from, tx, migrationId)
    await carryParticipant(from, tx, migrationId)
  })
}

/** What the old ledger committed and the history does not hold yet. */
async function drain(db: Db, from: bigint, config: NodeConfig, history: History): Promise<void> {
  const { last } = history.view
  const isPast = last !== undefined && last.migrationId > from
  if (isPast || (await findState(db)) === undefined) return
  const { identity } = config
  const { synchronizerId } = await openParticipant(db, {
    migrationId: from,
    partyHint: identity.partyHint,
    nodeIdentifier: identity.nodeIdentifier,
    isGiven: identity.given,
  })
  const ledger = await openLedger({
    db,
    clock: systemClock,
    migrationId: from,
    synchronizerId,
    templates: TEMPLATES,
    deduplicationMs: config.wallet.deduplicationMs,
  })
  let failure: unknown
  const following = startFollowing({
    ledger,
    history,
    onError(error) {
      failure = error
      void following.close()
    },
  })
  await following.caughtUp()
  await following.close()
  await ledger.close()
  if (failure !== undefined) throw failure
}

/** The database of another migration stands beside, under the name with its id. */
function databaseOf(config: DatabaseConfig, id: bigint, from: bigint): DatabaseConfig {
  const rename = (text: string) =>
    text.replace(
      new RegExp(`participant([_-])${id}(?!\\d)(?!.*participant[_-]${id})`),
      `participant$1${from}`,
    )
  if (config.engine === 'postgres') return { ...config, database: rename(config.database) }
  const file = rename(config.file)
  if (file === config.file || !existsSync(file)) {
    throw new ParticipantError(
      `The participant database of migration ${from} is not at ${file}. Put it there to migrate, or start with an empty data directory.`,
    )
  }
  return { ...config, file }
}
