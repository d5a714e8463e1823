import type { Db } from '../db/db.ts'

/** The migration that the node lived in at its last start; undefined at the first. */
export async function readNodeMigration(db: Db): Promise<bigint | undefined> {
  const [row] = await db.query<{ migration_id: number | bigint }>(
    'select migration_id from node where id = 1',
  )
  return row && BigInt(row.migration_id)
}

export async function writeNodeMigration(db: Db, migrationId: bigint): Promise<void> {
  await db.execute(
    `insert into node (id, migration_id) values (1, ?)
     on conflict (id) do update set migration_id = excluded.migration_id`,
    [migrationId],
  )
}
