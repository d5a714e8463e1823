import type { Db } from '../db/db.ts'
import type { TailRow } from './tail-store.ts'

/** An update that re-creates one active contract of a migration, with its bytes in both forms. */
export type ImportRow = TailRow & { migrationId: bigint; updateId: string; contractId: string }

export async function insertImports(tx: Db, rows: ImportRow[]): Promise<void> {
  await tx.executeMany(
    `insert into import_update (migration_id, update_id, contract_id, entry, compact, protobuf)
     values (?, ?, ?, ?, ?, ?)`,
    rows.map((r) => [r.migrationId, r.updateId, r.contractId, r.entry, r.compact, r.protobuf]),
  )
}

export async function readImportsByUpdate(
  db: Db,
  migrationId: bigint,
  afterUpdateId: string,
  limit: number,
): Promise<ImportRow[]> {
  return readImports(db, 'update_id', migrationId, afterUpdateId, limit)
}

export async function readImportsByContract(
  db: Db,
  migrationId: bigint,
  afterContractId: string,
  limit: number,
): Promise<ImportRow[]> {
  return readImports(db, 'contract_id', migrationId, afterContractId, limit)
}

async function readImports(
  db: Db,
  column: 'update_id' | 'contract_id',
  migrationId: bigint,
  after: string,
  limit: number,
): Promise<ImportRow[]> {
  const rows = await db.query<
    TailRow & { migration_id: number | bigint; update_id: string; contract_id: string }
  >(
    `select migration_id, update_id, contract_id, entry, compact, protobuf from import_update
     where migration_id = ? and ${column} > ? order by ${column} limit ?`,
    [migrationId, after, limit],
  )
  return rows.map(({ migration_id, update_id, contract_id, ...row }) => ({
    ...row,
    migrationId: BigInt(migration_id),
    updateId: update_id,
    contractId: contract_id,
  }))
}

export async function findImport(
  db: Db,
  migrationId: bigint,
  updateId: string,
): Promise<TailRow | undefined> {
  const [row] = await db.query<TailRow>(
    'select entry, compact, protobuf from import_update where migration_id = ? and update_id = ?',
    [migrationId, updateId],
  )
  return row
}

/** The id of the import update that re-creates the contract in the migration. */
export async function findImportOfContract(
  db: Db,
  migrationId: bigint,
  contractId: string,
): Promise<string | undefined> {
  const [row] = await db.query<{ update_id: string }>(
    'select update_id from import_update where migration_id = ? and contract_id = ?',
    [migrationId, contractId],
  )
  return row?.update_id
}

export async function lastImportedContract(
  db: Db,
  migrationId: bigint,
): Promise<string | undefined> {
  const [row] = await db.query<{ contract_id: string | null }>(
    'select max(contract_id) as contract_id from import_update where migration_id = ?',
    [migrationId],
  )
  return row?.contract_id ?? undefined
}

export async function countImports(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>('select count(*) as count from import_update')
  return row?.count ?? 0
}

export async function importMigrations(db: Db): Promise<bigint[]> {
  const rows = await db.query<{ migration_id: number | bigint }>(
    'select distinct migration_id from import_update order by migration_id',
  )
  return rows.map((row) => BigInt(row.migration_id))
}
