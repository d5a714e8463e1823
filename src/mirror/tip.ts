import { SCAN_LIMITS } from '../scan/client.ts'
import { type Instant, parseInstant } from '../values/instant.ts'
import { isObject } from '../values/json.ts'
import type { Peers } from './peers.ts'

/**
 * The record time up to which enough scans say that a migration goes; undefined when too few say
 * anything. Up to f scans that exaggerate do not move it.
 */
export async function readTip(
  peers: Peers,
  migrationId: bigint,
  signal?: AbortSignal,
): Promise<Instant | undefined> {
  const request = {
    method: 'POST',
    path: '/v0/backfilling/migration-info',
    body: `{"migration_id":${migrationId}}`,
  } as const
  const answers = await Promise.all(
    peers.list().map((peer) => peers.ask(peer, request, { limits: SCAN_LIMITS, signal })),
  )
  const ends = answers.flatMap((answer) => {
    const isData = answer.kind === 'answer' && answer.status === 200
    const end = isData ? endOf(answer.bytes.toString('utf8')) : undefined
    return end === undefined ? [] : [end]
  })
  return ends.toSorted().reverse()[peers.sizes().need - 1]
}

function endOf(text: string): Instant | undefined {
  try {
    const info: unknown = JSON.parse(text)
    const ranges = isObject(info) ? info.record_time_range : undefined
    if (!Array.isArray(ranges)) return undefined
    const ends = ranges.flatMap((range) => {
      const end = isObject(range) ? parseInstant(String(range.max)) : undefined
      return end === undefined ? [] : [end]
    })
    return ends.toSorted().at(-1)
  } catch {
    return undefined
  }
}
