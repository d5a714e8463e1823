import type { Db } from '../db/db.ts'

/**
 * SQL of what automations are about to do and have last done. An act is stored before its command is
 * submitted, so that a restart finds out what has become of it.
 */

export type ActRow = {
  /** Chosen once for each act; the command id follows from it. */
  trackingId: string
  automation: string
  party: string
  /** What the act is about, such as the offer that is accepted. */
  subject: string
  actAs: readonly string[]
  what: string
  /** The command was submitted after this offset. */
  beginOffset: bigint
  begunAt: string
}

export type DoneAct = {
  automation: string
  party: string
  what: string
  updateId: string
  doneAt: string
}

type StoredAct = {
  tracking_id: string
  automation: string
  party: string
  subject: string
  act_as: string
  what: string
  begin_offset: bigint | number
  begun_at: string
}

const COLUMNS = 'tracking_id, automation, party, subject, act_as, what, begin_offset, begun_at'

export async function insertAct(db: Db, act: ActRow): Promise<void> {
  await db.execute(`insert into automation_act (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)`, [
    act.trackingId,
    act.automation,
    act.party,
    act.subject,
    JSON.stringify(act.actAs),
    act.what,
    act.beginOffset,
    act.begunAt,
  ])
}

/** The act is tried again under its tracking id, perhaps with another amount. */
export async function updateAct(
  db: Db,
  { trackingId, what }: { trackingId: string; what: string },
): Promise<void> {
  await db.execute('update automation_act set what = ? where tracking_id = ?', [what, trackingId])
}

export async function deleteAct(db: Db, trackingId: string): Promise<void> {
  await db.execute('delete from automation_act where tracking_id = ?', [trackingId])
}

/** Acts of which nobody knows yet whether they happened. */
export async function selectOpenActs(db: Db): Promise<ActRow[]> {
  const rows = await db.query<StoredAct>(
    `select ${COLUMNS} from automation_act order by begun_at, tracking_id`,
  )
  return rows.map((row) => ({
    trackingId: row.tracking_id,
    automation: row.automation,
    party: row.party,
    subject: row.subject,
    actAs: JSON.parse(row.act_as) as string[],
    what: row.what,
    beginOffset: BigInt(row.begin_offset),
    begunAt: row.begun_at,
  }))
}

/** The act has happened: it is no longer open, and it is the last of its automation. */
export async function finishAct(db: Db, trackingId: string, done: DoneAct): Promise<void> {
  await db.transaction(async (tx) => {
    await deleteAct(tx, trackingId)
    await tx.execute('delete from automation_done where automation = ? and party = ?', [
      done.automation,
      done.party,
    ])
    await tx.execute(
      'insert into automation_done (automation, party, what, update_id, done_at) values (?, ?, ?, ?, ?)',
      [done.automation, done.party, done.what, done.updateId, done.doneAt],
    )
  })
}

export async function selectDone(db: Db): Promise<DoneAct[]> {
  const rows = await db.query<{
    automation: string
    party: string
    what: string
    update_id: string
    done_at: string
  }>('select automation, party, what, update_id, done_at from automation_done')
  return rows.map(({ automation, party, what, update_id, done_at }) => ({
    automation,
    party,
    what,
    updateId: update_id,
    doneAt: done_at,
  }))
}
