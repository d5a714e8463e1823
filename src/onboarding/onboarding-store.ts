import type { Db } from '../db/db.ts'

/** Whether a sponsor has admitted the party, so that nobody need be asked again. */
export async function isOnboarded(db: Db, party: string): Promise<boolean> {
  const rows = await db.query('select party from onboarding where party = ?', [party])
  return rows.length > 0
}

export async function noteOnboarded(
  db: Db,
  note: { party: string; sponsorUrl: string; onboardedAt: string },
): Promise<void> {
  await db.execute(
    `insert into onboarding (party, sponsor_url, onboarded_at) values (?, ?, ?)
     on conflict (party) do nothing`,
    [note.party, note.sponsorUrl, note.onboardedAt],
  )
}
