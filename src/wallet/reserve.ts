/**
 * The traffic reserve. While little bought traffic is left, the wallet holds back what can wait, so
 * that the purchase of more still gets through. Only the wallet's own commands are held back.
 */

export type Priority = 'high' | 'low'

export type TrafficReserve = {
  /** Throws `TrafficReserved` when a command of this priority has to wait. */
  admit(priority: Priority): Promise<void>
}

export type TrafficReserveOptions = {
  /** Undefined without automatic top-ups: then there is nothing to hold back for. */
  reservedTraffic: number | undefined
  /** Bought traffic that is left; undefined when nobody knows. */
  extraTrafficRemainder: () => Promise<bigint | undefined>
  /** Time of the machine, in milliseconds. */
  now?: () => number
}

/** How long an answer of the network counts. */
const CACHED_MS = 1_000

/** Held back: the same command can be tried again when traffic was bought. */
export class TrafficReserved extends Error {
  override name = 'TrafficReserved'
  readonly code = 'ABORTED'
}

/** What nobody knows holds nothing back. */
export function isHeldBack(of: {
  priority: Priority
  reservedTraffic: number | undefined
  extraTrafficRemainder: bigint | undefined
}): boolean {
  const { reservedTraffic, extraTrafficRemainder } = of
  if (of.priority === 'high' || reservedTraffic === undefined) return false
  return extraTrafficRemainder !== undefined && extraTrafficRemainder <= BigInt(reservedTraffic)
}

export function createTrafficReserve(options: TrafficReserveOptions): TrafficReserve {
  const { reservedTraffic, now = () => performance.now() } = options
  let known: { at: number; remainder: Promise<bigint | undefined> } | undefined

  function remainder(): Promise<bigint | undefined> {
    if (known === undefined || now() - known.at >= CACHED_MS) {
      known = { at: now(), remainder: options.extraTrafficRemainder().catch(() => undefined) }
    }
    return known.remainder
  }

  return {
    async admit(priority) {
      if (priority === 'high' || reservedTraffic === undefined) return
      const extraTrafficRemainder = await remainder()
      if (!isHeldBack({ priority, reservedTraffic, extraTrafficRemainder })) return
      throw new TrafficReserved(
        `Held back: ${extraTrafficRemainder} bytes of bought traffic are left, and topup.reservedTraffic keeps ${reservedTraffic} for purchases of traffic. Try again when the next top-up was made.`,
      )
    },
  }
}
