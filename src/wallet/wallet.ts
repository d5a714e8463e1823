import type { Clock } from '../base/clock.ts'
import type { Db } from '../db/db.ts'
import type { AutomationRunner } from './automation-runner.ts'
import type { NetworkReader } from './network-reader.ts'
import type { Participant } from './participant.ts'
import type { Turns } from './turns.ts'
import type { View } from './view.ts'
import type { WalletUsers } from './wallet-users.ts'

/** Everything that the operations of wallets stand on. */
export type Wallet = {
  db: Db
  participant: Participant
  network: NetworkReader
  view: View
  turns: Turns
  users: WalletUsers
  /** The party of this node's operator; it provides the preapprovals of all wallets here. */
  operator: string
  participantId: string
  /** The synchronizer where payments are made. */
  synchronizerId: string
  migrationId: bigint
  preapprovalLifetimeMs: number
  /** Undefined until they run, and on a node that leaves them to another. */
  automations?: AutomationRunner
  /** The participant's time: the machine's, or one that a test drives. */
  clock: Clock
}

/** The longest that a request waits for the view to hold what it has just done. */
const VIEW_WAIT_MS = 5_000

/** Lets the next reader see what was done: the view follows the ledger a few milliseconds behind. */
export function waitForView({ view }: Pick<Wallet, 'view'>, offset: bigint): Promise<void> {
  return view.waitFor(offset, AbortSignal.timeout(VIEW_WAIT_MS))
}

/** Lets the reader see everything that the ledger holds now. */
export async function catchUp(wallet: Pick<Wallet, 'view' | 'participant'>): Promise<void> {
  await waitForView(wallet, await wallet.participant.ledgerEnd())
}
