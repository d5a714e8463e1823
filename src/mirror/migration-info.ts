import { SCAN_LIMITS } from '../scan/client.ts'
import { type Instant, parseInstant } from '../values/instant.ts'
import { isObject, parseJsonExactly } from '../values/json.ts'
import type { Peer, Peers } from './peers.ts'

/** What a scan says about a migration whose updates it has. */
export type MigrationInfo = {
  previousMigrationId: bigint | undefined
  isComplete: boolean
  ranges: Map<string, { first: Instant; last: Instant }>
}

/** What all scans say: those that have the migration, and how many could not be asked. */
export type MigrationInfos = { having: Map<Peer, MigrationInfo>; failed: number }

export async function readMigrationInfos(
  peers: Peers,
  migrationId: bigint,
  signal: AbortSignal,
): Promise<MigrationInfos> {
  const infos: MigrationInfos = { having: new Map(), failed: 0 }
  const request = {
    method: 'POST',
    path: '/v0/backfilling/migration-info',
    body: `{"migration_id":${migrationId}}`,
  } as const
  await Promise.all(
    peers.list().map(async (peer) => {
      const answer = await peers.ask(peer, request, { limits: SCAN_LIMITS, signal })
      if (answer.kind === 'answer' && answer.status === 404) return
      const isData = answer.kind === 'answer' && answer.status === 200
      const info = isData ? readInfo(answer.bytes.toString('utf8')) : undefined
      if (info === undefined) infos.failed += 1
      else infos.having.set(peer, info)
    }),
  )
  return infos
}

/**
 * How many scans must agree on what only some of them have: f+1, but when all others say that they
 * have nothing, those who have something are believed. Undefined when too few have it.
 */
export function neededOf(peers: Peers, { having, failed }: MigrationInfos): number | undefined {
  const { faulty } = peers.sizes()
  const needed = Math.min(faulty + 1, having.size + failed)
  return having.size === 0 || having.size < needed ? undefined : needed
}

function readInfo(text: string): MigrationInfo | undefined {
  let info: unknown
  try {
    info = parseJsonExactly(text)
  } catch {
    return undefined
  }
  if (!isObject(info) || !Array.isArray(info.record_time_range)) return undefined
  const ranges: MigrationInfo['ranges'] = new Map()
  for (const range of info.record_time_range) {
    const [first, last] = isObject(range)
      ? [parseInstant(String(range.min)), parseInstant(String(range.max))]
      : []
    if (first === undefined || last === undefined) return undefined
    ranges.set(String((range as { synchronizer_id: unknown }).synchronizer_id), { first, last })
  }
  const previous = info.previous_migration_id
  const isNumber = typeof previous === 'number' || typeof previous === 'bigint'
  return {
    previousMigrationId: isNumber ? BigInt(previous) : undefined,
    isComplete: info.complete === true,
    ranges,
  }
}
