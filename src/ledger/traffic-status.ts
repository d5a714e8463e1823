import type { Ledger } from './ledger.ts'
import { memberTraffic } from './traffic.ts'

/** Extra traffic of a member, in bytes: what it has bought, and what of that is used up. */
export type MemberTrafficState = { purchased: bigint; consumed: bigint }

/** Undefined for a member that the network has never heard of. */
export async function trafficOf(
  ledger: Ledger,
  { dso, memberId }: { dso: string; memberId: string },
): Promise<MemberTrafficState | undefined> {
  const own = await ledger.traffic()
  if (own?.memberId === memberId) return own
  const bought = (await ledger.contractsOf(memberTraffic, dso)).filter(
    ({ payload }) =>
      payload.memberId === memberId && payload.synchronizerId === ledger.synchronizers[0],
  )
  if (bought.length === 0) return undefined
  return {
    // Other members do not submit here.
    purchased: bought.reduce((sum, { payload }) => sum + payload.totalPurchased, 0n),
    consumed: 0n,
  }
}
