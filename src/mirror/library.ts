import { exchangeByFetch } from '../http/exchange.ts'
import { createPeers, type Peers, peerAt } from './peers.ts'

/** What other programs import as `annals/mirror`: reads that no single scan has to be trusted for. */

export type { Peer, Peers } from './peers.ts'
export { type Agreed, type AgreedRequest, readAgreed } from './read.ts'

export type ScansOptions = {
  /** How many scans must say the same; f+1 unless given. */
  agreement?: 'f+1' | '2f+1'
  fetch?: typeof globalThis.fetch
}

/** The scans at these addresses, given with or without the path of the scan API. */
export function openScans(addresses: readonly string[], options: ScansOptions = {}): Peers {
  const { agreement = 'f+1', fetch = globalThis.fetch } = options
  const list = addresses.map((address) => {
    const peer = peerAt(address)
    if (peer === undefined) throw new TypeError(`${address} is not an http or https URL of a scan.`)
    return peer
  })
  return createPeers({ exchange: exchangeByFetch(fetch), trust: { mode: 'all', agreement }, list })
}
