import type { Db } from '../db/db.ts'
import { createHoldings, type Holdings } from './holdings.ts'
import { entriesOf } from './log-entries.ts'
import { offerStatusesOf } from './offer-status.ts'
import type { LogBatch, ViewLog } from './view.ts'
import { appendLog, type LogPlace, selectFollowedOffset } from './wallet-store.ts'

export type WalletLogOptions = {
  db: Db
  place: LogPlace
  /** Another node that shares the database writes the log; this one only follows the ledger. */
  isReadOnly: boolean
}

/** The log of wallets: what the view follows becomes entries, in the transaction that moves the offset. */
export function openWalletLog({ db, place, isReadOnly }: WalletLogOptions): ViewLog {
  return {
    offsetOf: (party) => selectFollowedOffset(db, party, place),
    async append(batch) {
      if (isReadOnly) return
      await appendLog(db, { place, parties: batch.parties, offset: batch.end, ...readBatch(batch) })
    },
  }
}

function readBatch({ parties, updates, holdings }: LogBatch) {
  const of = new Set(parties)
  const before = overlay(holdings)
  const entries = []
  const offers = []
  for (const update of updates) {
    if (update.kind === 'transaction') {
      for (const party of parties) entries.push(...entriesOf(update, party, before))
      offers.push(...offerStatusesOf(update).filter(({ sender }) => of.has(sender)))
    }
    before.apply(update, of)
  }
  return { entries, offers }
}

/** What is held while the batch is read, on top of what was held before it. */
function overlay(base: Holdings): Pick<Holdings, 'find' | 'apply'> {
  const added = createHoldings()
  return {
    find: (kind, contractId) => added.find(kind, contractId) ?? base.find(kind, contractId),
    apply: (update, parties) => added.apply(update, parties),
  }
}
