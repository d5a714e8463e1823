import type { Db } from '../db/db.ts'
import type { Instant } from '../values/instant.ts'
import type { Dissent } from './dissent.ts'

/** Evidence that is kept: at two items of 16 kB each, at most 16 MB. */
const DISSENTS_KEPT_MAX = 500

export type StoredDissent = Omit<Dissent, 'peer'> & {
  number: number
  /** Milliseconds since 1970. */
  notedAt: number
  base: string
  svName: string
}

/** Called by the one that copies, one at a time. */
export async function insertDissent(db: Db, dissent: Dissent, notedAt: number): Promise<void> {
  const { peer, after, index, encoding, agreed, found } = dissent
  await db.transaction(async (tx) => {
    const [newest] = await tx.query<{ number: number | null }>(
      'select max(number) as number from mirror_dissent',
    )
    const number = (newest?.number ?? 0) + 1
    await tx.execute(
      `insert into mirror_dissent (number, noted_at, base, sv_name, after_migration_id,
         after_record_time, item_index, encoding, agreed, found) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        number,
        notedAt,
        peer.base,
        peer.svName,
        after?.migrationId ?? null,
        after?.recordTime ?? null,
        index,
        encoding,
        printable(agreed),
        printable(found),
      ],
    )
    await tx.execute('delete from mirror_dissent where number <= ?', [number - DISSENTS_KEPT_MAX])
    await tx.execute(
      `insert into mirror_dissent_count (base, dissents) values (?, 1)
       on conflict (base) do update set dissents = mirror_dissent_count.dissents + 1`,
      [peer.base],
    )
  })
}

export async function readDissents(db: Db, limit: number): Promise<StoredDissent[]> {
  const rows = await db.query<{
    number: number
    noted_at: number
    base: string
    sv_name: string
    after_migration_id: number | bigint | null
    after_record_time: Instant | null
    item_index: number
    encoding: StoredDissent['encoding']
    agreed: string
    found: string
  }>(
    `select number, noted_at, base, sv_name, after_migration_id, after_record_time, item_index,
       encoding, agreed, found from mirror_dissent order by number desc limit ?`,
    [limit],
  )
  return rows.map((row) => ({
    number: row.number,
    notedAt: row.noted_at,
    base: row.base,
    svName: row.sv_name,
    after:
      row.after_migration_id === null || row.after_record_time === null
        ? undefined
        : { migrationId: BigInt(row.after_migration_id), recordTime: row.after_record_time },
    index: row.item_index,
    encoding: row.encoding,
    agreed: row.agreed,
    found: row.found,
  }))
}

export async function readDissentCounts(db: Db): Promise<Map<string, number>> {
  const rows = await db.query<{ base: string; dissents: number }>(
    'select base, dissents from mirror_dissent_count',
  )
  return new Map(rows.map(({ base, dissents }) => [base, dissents]))
}

/** Databases hold neither NUL nor half a character, and a liar may send both. */
function printable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
