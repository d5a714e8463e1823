import { randomUUID } from 'node:crypto'
import type { Db } from '../db/db.ts'
import type { Peer } from './peers.ts'

export type StoredNetwork = { synchronizerId: string | undefined; peers: Peer[] }

/** The copy's own name, made at the first start and shared by all nodes on the database. */
export async function readMirrorId(db: Db): Promise<string> {
  await db.execute('insert into mirror (one, id) values (1, ?) on conflict (one) do nothing', [
    randomUUID(),
  ])
  const [row] = await db.query<{ id: string }>('select id from mirror where one = 1')
  return (row as { id: string }).id
}

export async function readNetwork(db: Db): Promise<StoredNetwork> {
  const [mirror] = await db.query<{ synchronizer_id: string | null }>(
    'select synchronizer_id from mirror where one = 1',
  )
  const rows = await db.query<{ base: string; sv_name: string }>(
    'select base, sv_name from mirror_peer order by base',
  )
  return {
    synchronizerId: mirror?.synchronizer_id ?? undefined,
    peers: rows.map(({ base, sv_name }) => ({ base, svName: sv_name })),
  }
}

export async function writeNetwork(db: Db, network: StoredNetwork): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.execute('update mirror set synchronizer_id = ? where one = 1', [
      network.synchronizerId ?? null,
    ])
    await tx.execute('delete from mirror_peer')
    await tx.executeMany(
      'insert into mirror_peer (base, sv_name) values (?, ?)',
      network.peers.map(({ base, svName }) => [base, svName]),
    )
  })
}
