import { createSimulatedClock, type SimulatedClock } from '../../src/base/clock.ts'
import type { Db } from '../../src/db/db.ts'
import { type Ledger, type LedgerOptions, openLedger } from '../../src/ledger/ledger.ts'
import { foundNetwork, type Network } from '../../src/ledger/network.ts'
import { NETWORK_TRAFFIC } from '../../src/ledger/rules.ts'
import { TEMPLATES } from '../../src/ledger/templates.ts'
import { insertParty } from '../../src/users/parties-store.ts'
import { decimal } from '../../src/values/decimal.ts'
import type { Cleanup } from './engines.ts'

export const NAMESPACE = `1220${'ab'.repeat(32)}`
export const GLOBAL = `global-domain::1220${'cd'.repeat(32)}`
export const SECOND = `second-domain::1220${'ef'.repeat(32)}`
/** 2026-01-01T00:00:00Z. */
export const START_MICROS = 1_767_225_600_000_000n

export const partyOf = (hint: string) => `${hint}::${NAMESPACE}`

/** The participant as a member of the synchronizer, whose traffic pays. */
export const TRAFFIC = { memberId: `PAR::participant::${NAMESPACE}`, dso: partyOf('DSO') }

/** So much that it never ends, and so slow that nothing comes back while a test lasts. */
export const AMPLE_TRAFFIC = {
  ...NETWORK_TRAFFIC,
  baseRateTrafficLimits: {
    burstAmount: 1_000_000_000n,
    burstWindow: { microseconds: 3_153_600_000_000_000n },
  },
}

export type TestLedger = {
  ledger: Ledger
  network: Network
  clock: SimulatedClock
  db: Db
}

/** A ledger in the database with a coin network and these parties; time stands at the start of 2026. */
export async function openTestLedger(
  t: Cleanup,
  db: Db,
  options: { parties?: string[]; ledger?: Partial<LedgerOptions> } = {},
): Promise<TestLedger> {
  const clock = createSimulatedClock(START_MICROS)
  const ledger = await openLedger({
    db,
    clock,
    migrationId: 0n,
    synchronizerId: GLOBAL,
    templates: TEMPLATES,
    deduplicationMs: 3_600_000,
    seed: 'test',
    ...options.ledger,
  })
  t.after(() => ledger.close())
  const hints = ['DSO', 'alice', 'bob', 'carol', ...(options.parties ?? [])]
  for (const hint of hints) await addParty(db, partyOf(hint))
  const dso = partyOf('DSO')
  const network = await foundNetwork(ledger, { dso, amuletPrice: decimal('0.005') })
  return { ledger, network, clock, db }
}

export async function addParty(db: Db, party: string): Promise<void> {
  await insertParty(db, {
    party,
    isLocal: true,
    localMetadata: { resourceVersion: '0', annotations: {} },
    identityProviderId: '',
    createdAt: '2026-01-01T00:00:00.000000Z',
  })
}
