import type { History } from '../history/history.ts'
import { itemKey } from '../history/item-key.ts'
import { IMPORT_RECORD_TIME } from '../history/position.ts'
import type { PreparePool } from '../history/prepare-pool.ts'
import { isObject, printJsonExactly } from '../values/json.ts'
import type { Peers } from './peers.ts'
import { readAgreed } from './read.ts'

/** As many as a scan rewrites in one answer without making others wait. */
const PAGE_UPDATES = 200
const PAGE_BYTES_MAX = 32 * 1024 * 1024

/**
 * Copies the updates that re-create a migration's active contracts, in the order of their contracts,
 * from where the history ends. Scans show them in the lossless form only. Returns why they are left
 * out, where that is so: an append-only history cannot take them in later, and only /v0/updates shows them.
 */
export async function copyImports(options: {
  migrationId: bigint
  history: History
  peers: Peers
  pool: PreparePool
  signal: AbortSignal
}): Promise<string | undefined> {
  const { migrationId, history, peers, pool, signal } = options
  const info = await readAgreed(peers, {
    method: 'POST',
    path: '/v0/backfilling/migration-info',
    body: `{"migration_id":${migrationId}}`,
    keyOf: importsIn,
    signal,
  })
  if (info.kind === 'none') throw new Error(info.reason)
  if (info.kind === 'refused') return undefined
  const { complete, last } = JSON.parse(importsIn(info.json)) as ImportsIn
  if (last === null) return undefined
  if (!complete) {
    return `The scans do not have all import updates of migration ${migrationId}.`
  }
  for (;;) {
    const end = history.view.last
    const isBegun = end?.migrationId === migrationId && end.recordTime === IMPORT_RECORD_TIME
    if (isBegun && end.updateId >= last) return undefined
    const after = isBegun ? end.updateId : ''
    const page = await readAgreed(peers, {
      method: 'POST',
      path: '/v0/backfilling/import-updates',
      body: `{"migration_id":${migrationId},"after_update_id":${JSON.stringify(after)},"limit":${PAGE_UPDATES}}`,
      keyOf: (json) =>
        itemsOf(json)
          .map((item) => itemKey(printJsonExactly(item)))
          .join(' '),
      bytesMax: PAGE_BYTES_MAX,
      signal,
    })
    if (page.kind !== 'agreed') {
      throw new Error(page.kind === 'none' ? page.reason : `The scans answer ${page.status}.`)
    }
    const lines = itemsOf(page.json).map((item) => `${printJsonExactly(item)}\n`)
    if (lines.length === 0) return undefined
    const bytes = new Uint8Array(Buffer.from(lines.join('')))
    const { updates, refusal } = await pool.prepare({ bytes, firstLine: 1 })
    signal.throwIfAborted()
    await history.append(updates)
    if (refusal !== undefined) {
      return `Import updates of migration ${migrationId} are left out: ${refusal.reason}`
    }
  }
}

type ImportsIn = { complete: boolean; last: string | null }

/** What matters here of a migration's description; the rest may differ between scans at the tip. */
function importsIn(json: unknown): string {
  const info = isObject(json) ? json : {}
  const last = typeof info.last_import_update_id === 'string' ? info.last_import_update_id : null
  const imports: ImportsIn = { complete: info.import_updates_complete === true, last }
  return JSON.stringify(imports)
}

function itemsOf(json: unknown): unknown[] {
  const items = isObject(json) ? json.transactions : undefined
  if (!Array.isArray(items)) throw new TypeError('The answer is not a page of updates.')
  return items
}
