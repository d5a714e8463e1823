import { publicAddress, scanBase } from './client.ts'

/** The scans of a synchronizer, as `/v0/scans` lists them. */
export type ScanGroup = { domainId: string; scans: ListedScan[] }
export type ListedScan = { publicUrl: string; svName: string }

/** How a node whose operator gave its public address lists itself. */
export type OwnScan = ListedScan & {
  /** Undefined for a copy, which belongs to the network that it copies. */
  domainId: string | undefined
}

/**
 * The list with the node itself, once. A copy that has not heard of its network yet lists nobody:
 * whoever asked would take it for the whole network.
 */
export function withOwnScan(groups: ScanGroup[], own: OwnScan | undefined): ScanGroup[] {
  const domainId = own?.domainId ?? groups[0]?.domainId
  if (own === undefined || domainId === undefined) return groups
  const base = scanBase(own.publicUrl)
  if (base === undefined) return groups
  const listed = { publicUrl: publicAddress(base), svName: own.svName }
  const group = groups.find((one) => one.domainId === domainId)
  if (group === undefined) return [...groups, { domainId, scans: [listed] }]
  const others = group.scans.filter(({ publicUrl }) => scanBase(publicUrl) !== base)
  return groups.map((one) => (one === group ? { domainId, scans: [...others, listed] } : one))
}
