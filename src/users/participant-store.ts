import { createHash, randomBytes } from 'node:crypto'
import type { Db } from '../db/db.ts'

/** Who the participant is, as its database has it since the first start. */
export type Participant = {
  participantId: string
  synchronizerId: string
  partyHint: string
}

export type ParticipantWish = {
  migrationId: bigint
  partyHint: string
  nodeIdentifier: string
  /** Whether the operator chose hint and identifier, so that the database must agree. */
  isGiven: boolean
  /** Makes the identity of a new participant the same each time; only for tests and demonstrations. */
  seed?: string | undefined
}

/** A database that belongs to another node or another migration; the message is for the operator. */
export class ParticipantError extends Error {
  override name = 'ParticipantError'
}

type Row = {
  migration_id: number | bigint
  party_hint: string
  node_identifier: string
  fingerprint: string
  synchronizer_id: string
}

/** Reads who the participant is, or writes it down at the first start. */
export async function openParticipant(db: Db, wish: ParticipantWish): Promise<Participant> {
  await db.execute(
    `insert into participant (id, migration_id, party_hint, node_identifier, fingerprint, synchronizer_id)
     values (1, ?, ?, ?, ?, ?) on conflict (id) do nothing`,
    [
      wish.migrationId,
      wish.partyHint,
      wish.nodeIdentifier,
      newFingerprint(wish.seed, 'participant'),
      `global-domain::${newFingerprint(wish.seed, 'synchronizer')}`,
    ],
  )
  const [row] = await db.query<Row>(
    'select migration_id, party_hint, node_identifier, fingerprint, synchronizer_id from participant',
  )
  if (row === undefined) throw new Error('The participant has just been written down.')
  checkAgreement(row, wish)
  return {
    participantId: `${row.node_identifier}::${row.fingerprint}`,
    synchronizerId: row.synchronizer_id,
    partyHint: row.party_hint,
  }
}

function checkAgreement(row: Row, wish: ParticipantWish): void {
  if (BigInt(row.migration_id) !== wish.migrationId) {
    throw new ParticipantError(
      `The participant database belongs to migration ${row.migration_id}, but migration.id is ${wish.migrationId}. Correct migration.id, or give the new migration a database of its own (participant_${wish.migrationId}).`,
    )
  }
  if (!wish.isGiven) return
  if (row.party_hint !== wish.partyHint) {
    throw new ParticipantError(
      `validatorPartyHint is ${wish.partyHint}, but the participant database was made with ${row.party_hint}. A party keeps its name: set the hint back, or use another database.`,
    )
  }
  if (row.node_identifier !== wish.nodeIdentifier) {
    throw new ParticipantError(
      `nodeIdentifier is ${wish.nodeIdentifier}, but the participant database was made with ${row.node_identifier}. A participant keeps its name: set the identifier back, or use another database.`,
    )
  }
}

/** A multihash of SHA-256, as fingerprints of keys are. */
function newFingerprint(seed: string | undefined, what: string): string {
  const secret = seed === undefined ? randomBytes(32) : `${seed}/${what}`
  return `1220${createHash('sha256').update(secret).digest('hex')}`
}
