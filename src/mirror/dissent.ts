import { guessItems, itemBytes } from '../history/page-items.ts'
import type { Position } from '../history/position.ts'
import type { Peer } from './peers.ts'

/** A peer that says something else than enough others, with both items as evidence. */
export type Dissent = {
  peer: Peer
  /** The item is the one with this index after the position. */
  after: Position | undefined
  index: number
  encoding: 'protobuf_json' | 'compact_json'
  /** What enough others say there, and what this one says; long ones are cut. */
  agreed: string
  found: string
}

/** Most updates fit; a longer one is known by its beginning. */
const EVIDENCE_CHARACTERS_MAX = 16_384

type Bodies = { protobuf: Buffer; compact: Buffer }

/** Shows the encoding in which the items differ. */
export function evidenceOf(
  peer: Peer,
  where: { after: Position | undefined; index: number; agreed: Bodies; found: Bodies },
): Dissent {
  const { after, index } = where
  const texts = (form: keyof Bodies) => ({
    agreed: itemText(where.agreed[form], index),
    found: itemText(where.found[form], index),
  })
  const protobuf = texts('protobuf')
  return protobuf.agreed === protobuf.found
    ? { peer, after, index, encoding: 'compact_json', ...texts('compact') }
    : { peer, after, index, encoding: 'protobuf_json', ...protobuf }
}

function itemText(body: Buffer, index: number): string {
  // A glance is enough: what differs is known already, and a page may be large.
  const items = guessItems(body)
  if (items === undefined) return cut(`No page of updates: ${body.toString('utf8', 0, 1000)}`)
  return index < items.starts.length ? cut(itemBytes(items, index).toString('utf8')) : 'Nothing.'
}

function cut(text: string): string {
  return text.length <= EVIDENCE_CHARACTERS_MAX
    ? text
    : `${text.slice(0, EVIDENCE_CHARACTERS_MAX)}…`
}
