import type { Db, Statement } from '../db/db.ts'
import type { Instant } from '../values/instant.ts'
import { type Contract, stakeholdersOf } from './contract.ts'
import { inGroups, insertsOf } from './statements-store.ts'
import type { TemplateEntry } from './template.ts'

/** SQL of contracts: active ones by id, by template and party, and at an offset. */

export type ContractRow = {
  contract_id: string
  template: string
  payload: string
  signatories: string
  observers: string
  created_at: Instant
  created_offset: number | bigint
  created_node_id: number
  archived_offset: number | bigint | null
  synchronizer_id: string | null
  reassignment_counter: number | bigint
}

type FindTemplate = (name: string) => TemplateEntry

const COLUMNS = `contract_id, template, payload, signatories, observers, created_at, created_offset,
  created_node_id, archived_offset, synchronizer_id, reassignment_counter`
const PREFIXED = COLUMNS.replaceAll(/\w+/g, 'c.$&')

/** The contract, archived or not. */
export async function selectContract(
  db: Db,
  contractId: string,
  find: FindTemplate,
): Promise<Contract | undefined> {
  const [row] = await db.query<ContractRow>(
    `select ${COLUMNS} from contracts where contract_id = ?`,
    [contractId],
  )
  return row && contractFromRow(row, find)
}

/** Active contracts of one template in which the party has a stake, after a contract id, by id. */
export async function selectActiveOf(
  db: Db,
  by: { party: string; template: string; afterId: string; limit: number },
  find: FindTemplate,
): Promise<Contract[]> {
  const rows = await db.query<ContractRow>(
    `select ${PREFIXED} from contract_stakeholders s join contracts c on c.contract_id = s.contract_id
     where s.party = ? and s.template = ? and s.contract_id > ?
     order by s.contract_id limit ?`,
    [by.party, by.template, by.afterId, by.limit],
  )
  return rows.map((row) => contractFromRow(row, find))
}

type StakeKey = { party: string; template: string; contractId: string }

/** Active contracts by party, template and id, after a key; a contract comes once for each stake. */
export async function selectStakes(
  db: Db,
  { after, party, limit }: { after: StakeKey; party: string | undefined; limit: number },
  find: FindTemplate,
): Promise<{ stake: StakeKey; contract: Contract }[]> {
  const ofParty = party === undefined ? '' : 'and s.party = ?'
  const rows = await db.query<ContractRow & { party: string }>(
    `select s.party, ${PREFIXED} from contract_stakeholders s
     join contracts c on c.contract_id = s.contract_id
     where (s.party, s.template, s.contract_id) > (?, ?, ?) ${ofParty}
     order by s.party, s.template, s.contract_id limit ?`,
    [after.party, after.template, after.contractId, ...(party === undefined ? [] : [party]), limit],
  )
  return rows.map((row) => ({
    stake: { party: row.party, template: row.template, contractId: row.contract_id },
    contract: contractFromRow(row, find),
  }))
}

export function insertContracts(contracts: Contract[]): Statement[] {
  return insertsOf('contracts', COLUMNS, contracts.map(contractValues))
}

function contractValues(contract: Contract) {
  const { template } = contract.entry
  return [
    contract.contractId,
    template.name,
    JSON.stringify(template.payload.toLossless(contract.payload)),
    JSON.stringify(contract.signatories),
    JSON.stringify(contract.observers),
    contract.createdAt,
    contract.createdOffset,
    contract.createdNodeId,
    contract.archivedOffset ?? null,
    contract.synchronizerId ?? null,
    contract.reassignmentCounter,
  ]
}

export function insertStakeholders(contracts: Contract[]): Statement[] {
  return insertsOf('contract_stakeholders', 'party, template, contract_id', stakesOf(contracts))
}

export function deleteStakeholders(contracts: Contract[]): Statement[] {
  return inGroups(stakesOf(contracts)).map((some) => ({
    sql: `delete from contract_stakeholders where (party, template, contract_id) in
      (values ${some.map(() => '(?, ?, ?)').join(', ')})`,
    params: some.flat(),
  }))
}

export function markArchived(archived: { contractId: string; offset: bigint }[]): Statement[] {
  return inGroups(archived).map((some) => ({
    sql: `update contracts set archived_offset =
        case contract_id ${some.map(() => 'when ? then cast(? as bigint)').join(' ')} end
      where contract_id in (${some.map(() => '?').join(', ')})`,
    params: [
      ...some.flatMap(({ contractId, offset }) => [contractId, offset]),
      ...some.map(({ contractId }) => contractId),
    ],
  }))
}

function stakesOf(contracts: Contract[]): string[][] {
  return contracts.flatMap((contract) =>
    stakeholdersOf(contract).map((party) => [
      party,
      contract.entry.template.name,
      contract.contractId,
    ]),
  )
}

export async function moveContract(
  tx: Db,
  to: { contractId: string; synchronizerId: string | undefined; counter: bigint },
): Promise<void> {
  await tx.execute(
    'update contracts set synchronizer_id = ?, reassignment_counter = ? where contract_id = ?',
    [to.synchronizerId ?? null, to.counter, to.contractId],
  )
}

export type PendingReassignment = {
  unassignId: string
  contractId: string
  source: string
  target: string
  counter: bigint
}

/** One that is setting out, with the offset of the update that tells of it. */
export type NewReassignment = PendingReassignment & { offset: bigint }

export async function insertReassignment(tx: Db, pending: NewReassignment): Promise<void> {
  await tx.execute(
    `insert into reassignments (unassign_id, contract_id, source_synchronizer_id, target_synchronizer_id,
       reassignment_counter, unassigned_offset) values (?, ?, ?, ?, ?, ?)`,
    [
      pending.unassignId,
      pending.contractId,
      pending.source,
      pending.target,
      pending.counter,
      pending.offset,
    ],
  )
}

/** A reassignment that has not arrived yet. */
export async function selectReassignment(
  db: Db,
  unassignId: string,
): Promise<PendingReassignment | undefined> {
  const [row] = await db.query<{
    contract_id: string
    source_synchronizer_id: string
    target_synchronizer_id: string
    reassignment_counter: number | bigint
  }>(
    `select contract_id, source_synchronizer_id, target_synchronizer_id, reassignment_counter
     from reassignments where unassign_id = ? and assigned_offset is null`,
    [unassignId],
  )
  return (
    row && {
      unassignId,
      contractId: row.contract_id,
      source: row.source_synchronizer_id,
      target: row.target_synchronizer_id,
      counter: BigInt(row.reassignment_counter),
    }
  )
}

export async function markAssigned(tx: Db, unassignId: string, offset: bigint): Promise<void> {
  await tx.execute('update reassignments set assigned_offset = ? where unassign_id = ?', [
    offset,
    unassignId,
  ])
}

export async function countActive(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    'select count(*) as count from contracts where archived_offset is null',
  )
  return row?.count ?? 0
}

function contractFromRow(row: ContractRow, find: FindTemplate): Contract {
  const entry = find(row.template)
  return {
    contractId: row.contract_id,
    entry,
    payload: entry.template.payload.fromLossless(JSON.parse(row.payload)),
    signatories: JSON.parse(row.signatories) as string[],
    observers: JSON.parse(row.observers) as string[],
    createdAt: row.created_at,
    createdOffset: BigInt(row.created_offset),
    createdNodeId: row.created_node_id,
    archivedOffset: row.archived_offset === null ? undefined : BigInt(row.archived_offset),
    synchronizerId: row.synchronizer_id ?? undefined,
    reassignmentCounter: BigInt(row.reassignment_counter),
  }
}
