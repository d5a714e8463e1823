import type { Db } from '../db/db.ts'
import { findState, insertIdentity } from './updates-store.ts'

/** SQL that carries the active contracts into the database of the next migration. */

const PAGE_ROWS = 500
const COLUMNS = `contract_id, template, payload, signatories, observers, created_at, created_node_id,
  synchronizer_id, reassignment_counter`

type Row = {
  contract_id: string
  template: string
  payload: string
  signatories: string
  observers: string
  created_at: string
  created_node_id: number
  synchronizer_id: string | null
  reassignment_counter: number | bigint
}

/** Contracts that are active, and those on their way between synchronizers. Offsets begin anew. */
export async function carryContracts(from: Db, tx: Db, migrationId: bigint): Promise<void> {
  const state = await findState(from)
  if (state === undefined) return
  await insertIdentity(tx, { ...state, nonce: `${state.nonce}/${migrationId}` })
  for (let after = ''; ; ) {
    const rows: Row[] = await from.query(
      `select ${COLUMNS} from contracts where contract_id > ? and archived_offset is null
       order by contract_id limit ?`,
      [after, PAGE_ROWS],
    )
    await insertPage(tx, rows)
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.contract_id
  }
  await carryReassignments(from, tx)
}

async function insertPage(tx: Db, rows: Row[]): Promise<void> {
  if (rows.length === 0) return
  await tx.executeMany(
    `insert into contracts (${COLUMNS}, created_offset) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    rows.map((row) => [
      row.contract_id,
      row.template,
      row.payload,
      row.signatories,
      row.observers,
      row.created_at,
      row.created_node_id,
      row.synchronizer_id,
      row.reassignment_counter,
      0,
    ]),
  )
  await tx.executeMany(
    'insert into contract_stakeholders (party, template, contract_id) values (?, ?, ?)',
    rows.flatMap((row) =>
      [...JSON.parse(row.signatories), ...JSON.parse(row.observers)].map((party: string) => [
        party,
        row.template,
        row.contract_id,
      ]),
    ),
  )
}

async function carryReassignments(from: Db, tx: Db): Promise<void> {
  const rows = await from.query<Record<string, string | number | bigint>>(
    `select unassign_id, contract_id, source_synchronizer_id, target_synchronizer_id, reassignment_counter
     from reassignments where assigned_offset is null`,
  )
  if (rows.length === 0) return
  await tx.executeMany(
    `insert into reassignments (unassign_id, contract_id, source_synchronizer_id, target_synchronizer_id,
       reassignment_counter, unassigned_offset) values (?, ?, ?, ?, ?, ?)`,
    rows.map((row) => [
      row.unassign_id as string,
      row.contract_id as string,
      row.source_synchronizer_id as string,
      row.target_synchronizer_id as string,
      row.reassignment_counter as bigint,
      0,
    ]),
  )
}
