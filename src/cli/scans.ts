import { randomUUID } from 'node:crypto'
import { createOutgoing } from '../http/outgoing.ts'
import { findNetwork } from '../mirror/discovery.ts'
import { createPeers, type Peer, type Peers, peerAt } from '../mirror/peers.ts'
import { CommandError, EXIT } from './output.ts'

/** The scans that a command reads from: those at the addresses, or all that they list. */
export async function findScans(
  addresses: string[],
  options: { isDiscovering: boolean },
): Promise<{ peers: Peers; close(): Promise<void> }> {
  const outgoing = createOutgoing(undefined)
  try {
    const trust = { mode: 'all', agreement: 'f+1' } as const
    const list = addresses.map(readAddress)
    const peers = createPeers({ exchange: outgoing.exchange, trust, list })
    if (options.isDiscovering) {
      const found = await findNetwork({
        peers,
        seeds: peers.list(),
        network: { synchronizerId: undefined, peers: [] },
        mirrorId: randomUUID(),
        strangers: new Set(peers.list().map(({ base }) => base)),
      })
      if ('reason' in found) {
        const remedy = `Check that they are scans, and can be reached from here: ${addresses.join(', ')}`
        throw new CommandError(`${found.reason} ${remedy}`)
      }
      peers.set(found.peers)
    }
    return { peers, close: () => outgoing.close() }
  } catch (error) {
    await outgoing.close()
    throw error
  }
}

function readAddress(address: string): Peer {
  const peer = peerAt(address)
  if (peer !== undefined) return peer
  const message = `${address} is no address of a scan; one looks like https://scan.sv-1.example.net.`
  throw new CommandError(message, EXIT.usage)
}
