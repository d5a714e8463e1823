import type { Db } from '../db/db.ts'
import type { PartyDetails } from './user.ts'

/** SQL of parties: which are hosted here, and the record that this node keeps of each. */
type PartyRow = {
  party: string
  identity_provider_id: string
  is_local: number
  resource_version: number | bigint
  annotations: string
}

const COLUMNS = 'party, identity_provider_id, is_local, resource_version, annotations'
/** Lists are filled up to one of these lengths, so that there are few different statements to prepare. */
const LIST_LENGTHS = [1, 10, 100, 500] as const
const LIST_LENGTH_MAX = 500

/** Returns whether the id was free. */
export const insertParty = async (
  tx: Db,
  party: PartyDetails & { createdAt: string },
): Promise<boolean> => {
  const inserted = await tx.execute(
    `insert into parties (${COLUMNS}, created_at) values (?, ?, ?, 0, ?, ?) on conflict do nothing`,
    [
      party.party,
      party.identityProviderId,
      Number(party.isLocal),
      JSON.stringify(party.localMetadata.annotations),
      party.createdAt,
    ],
  )
  return inserted === 1
}

export const selectParties = async (db: Db, ids: string[]): Promise<PartyDetails[]> => {
  const found: PartyDetails[] = []
  for (let start = 0; start < ids.length; start += LIST_LENGTH_MAX) {
    const some = ids.slice(start, start + LIST_LENGTH_MAX)
    const length = LIST_LENGTHS.find((fitting) => fitting >= some.length) ?? LIST_LENGTH_MAX
    const filled = Array.from({ length }, (_, index) => some[index] ?? some[0] ?? '')
    const rows = await db.query<PartyRow>(
      `select ${COLUMNS} from parties where party in (${filled.map(() => '?').join(', ')}) order by party`,
      filled,
    )
    found.push(...rows.map(partyFromRow))
  }
  return found
}

export const selectPartiesPage = async (
  db: Db,
  page: { prefix: string; afterParty: string; limit: number },
): Promise<PartyDetails[]> => {
  const rows = await db.query<PartyRow>(
    `select ${COLUMNS} from parties where party > ? and substr(party, 1, ?) = ? order by party limit ?`,
    [page.afterParty, page.prefix.length, page.prefix, page.limit],
  )
  return rows.map(partyFromRow)
}

/** Reads a party and keeps others from changing it until the transaction ends. */
export const lockParty = async (tx: Db, party: string): Promise<PartyDetails | undefined> => {
  const lock = tx.engine === 'postgres' ? ' for update' : ''
  const rows = await tx.query<PartyRow>(`select ${COLUMNS} from parties where party = ?${lock}`, [
    party,
  ])
  return rows[0] && partyFromRow(rows[0])
}

export const updatePartyAnnotations = async (
  tx: Db,
  party: string,
  annotations: Record<string, string>,
): Promise<void> => {
  await tx.execute(
    'update parties set annotations = ?, resource_version = resource_version + 1 where party = ?',
    [JSON.stringify(annotations), party],
  )
}

export const countPartiesOfProvider = async (
  db: Db,
  identityProviderId: string,
): Promise<number> => {
  const rows = await db.query<{ parties: number }>(
    'select count(*) as parties from parties where identity_provider_id = ?',
    [identityProviderId],
  )
  return Number(rows[0]?.parties ?? 0)
}

const partyFromRow = (row: PartyRow): PartyDetails => ({
  party: row.party,
  isLocal: row.is_local === 1,
  localMetadata: {
    resourceVersion: String(row.resource_version),
    annotations: JSON.parse(row.annotations) as Record<string, string>,
  },
  identityProviderId: row.identity_provider_id,
})

export const countLocalParties = async (db: Db): Promise<number> => {
  const [row] = await db.query<{ count: number }>(
    'select count(*) as count from parties where is_local = 1',
  )
  return row?.count ?? 0
}
