import { isObject } from '../values/json.ts'
import type { Encoding } from './encode.ts'
import type { History } from './history.ts'
import { findOrdinals, type UpdateKey } from './keys-store.ts'
import { readEach } from './pages.ts'
import type { Version } from './versions.ts'

/** The transaction that has the id or the external hash, as JSON; undefined when there is none. */
export async function findTransaction(
  history: History,
  key: UpdateKey,
  form: { version: Version; encoding: Encoding },
): Promise<Buffer | undefined> {
  const source = { cache: history.cache, view: await history.latestView() }
  for (const ordinal of await findOrdinals(history.db, key)) {
    if (ordinal >= source.view.updates) continue
    for await (const [update] of readEach(source, form, ordinal, ordinal + 1)) {
      if (update !== undefined && hasKey(update.bytes, key)) return update.bytes
    }
  }
  return undefined
}

/** Keys are found by their hash, so the update has the last word. */
function hasKey(bytes: Buffer, key: UpdateKey): boolean {
  const item: unknown = JSON.parse(bytes.toString())
  if (!isObject(item)) return false
  return item[key.kind === 'id' ? 'update_id' : 'external_transaction_hash'] === key.text
}
