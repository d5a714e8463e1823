import { setTimeout as wait } from 'node:timers/promises'
import { prepareLine } from '../history/encode.ts'
import type { History } from '../history/history.ts'
import { IMPORT_RECORD_TIME } from '../history/position.ts'
import { importedContracts } from '../ledger/imports.ts'
import type { Ledger } from '../ledger/ledger.ts'

/**
 * The history follows the ledger: every update, in the ledger's order, through the history's one
 * door. There is no cursor to keep: the last position of the history says where to go on, since
 * record times rise strictly, so that a crash at any instant leaves neither gap nor repeat.
 */
export type Following = {
  /** Resolves when the history holds everything that the ledger held at the call. */
  caughtUp(): Promise<void>
  /** The ledger's last offset that the history holds; 0 while it finds out. */
  readonly offset: bigint
  /** Why the history stands still, if it does. */
  failure(): string | undefined
  close(): Promise<void>
}

/** Updates appended in one transaction. */
const BATCH_UPDATES = 500
/** Another process that shares the database may submit; its updates are looked for this often. */
const POLL_MS = 100
/** After a failure the store gets this long to recover. */
const RETRY_MS = 500

/** The history already holds a later migration than the ledger's. */
export class HistoryAhead extends Error {
  override name = 'HistoryAhead'
}

export function startFollowing(options: {
  ledger: Ledger
  history: History
  onError: (error: unknown) => void
  /** Told how long after its commit the newest update was in the history. */
  onFollowed?: (seconds: number) => void
}): Following {
  const { ledger, history, onError, onFollowed } = options
  const stop = new AbortController()
  const waiting = new Set<() => void>()
  let failure: string | undefined
  let cursor = -1n

  async function run(): Promise<void> {
    await appendImports(history, ledger)
    cursor = await findCursor(history, ledger)
    while (!stop.signal.aborted) {
      wake()
      const { movedAt } = ledger
      const batch = await ledger.entriesAfter(cursor, BATCH_UPDATES)
      const last = batch.at(-1)
      if (last === undefined) {
        failure = undefined
        await waitForMore(ledger, cursor, stop.signal)
        continue
      }
      // Refused commands have offsets too, and nothing to tell the history.
      const lines = batch.flatMap((entry) => ('item' in entry ? [prepareLine(entry.item)] : []))
      if (lines.length > 0) await history.append(lines)
      cursor = last.offset
      onFollowed?.((performance.now() - movedAt) / 1000)
      failure = undefined
    }
  }

  async function runForEver(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await run()
      } catch (error) {
        if (stop.signal.aborted) return
        const reason = `The history does not follow the ledger: ${(error as Error).message}`
        // It is tried again and again; the same reason needs telling once.
        if (reason !== failure) onError(error)
        failure = reason
        await wait(RETRY_MS, undefined, { signal: stop.signal }).catch(() => {})
        await history.refresh().catch(() => {})
      }
    }
  }

  function wake(): void {
    for (const check of waiting) check()
  }

  const running = runForEver()
  return {
    async caughtUp() {
      const end = await ledger.refresh()
      if (cursor >= end) return
      await new Promise<void>((resolve) => {
        const check = () => {
          if (cursor < end && !stop.signal.aborted) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
      })
    },
    get offset() {
      return cursor < 0n ? 0n : cursor
    },
    failure: () => failure,
    async close() {
      stop.abort()
      await running
      wake()
    },
  }
}

async function waitForMore(ledger: Ledger, cursor: bigint, signal: AbortSignal): Promise<void> {
  if (ledger.db.engine === 'sqlite') {
    await ledger.waitAfter(cursor, signal)
    return
  }
  const pause = AbortSignal.any([signal, AbortSignal.timeout(POLL_MS)])
  await ledger.waitAfter(cursor, pause)
  if (!signal.aborted) await ledger.refresh()
}

/**
 * A migration begins in the history with the contracts that it carried over, by update id. What is
 * there already is not appended again.
 */
async function appendImports(history: History, ledger: Ledger): Promise<void> {
  const { last } = history.view
  const isBegun = last !== undefined && last.migrationId === ledger.migrationId
  if (last === undefined || last.migrationId > ledger.migrationId) return
  if (isBegun && last.recordTime !== IMPORT_RECORD_TIME) return
  const after = isBegun ? last.updateId : ''
  const recordTime = IMPORT_RECORD_TIME
  for await (const items of importedContracts(ledger, { after, recordTime })) {
    await history.append(items.map(prepareLine))
  }
}

/** The offset of the ledger's last update that the history holds. */
async function findCursor(history: History, ledger: Ledger): Promise<bigint> {
  const { last } = history.view
  if (last === undefined || last.migrationId < ledger.migrationId) return 0n
  if (last.migrationId > ledger.migrationId) {
    throw new HistoryAhead(
      `it already holds migration ${last.migrationId}, and the ledger is at migration ${ledger.migrationId}`,
    )
  }
  return ledger.offsetAt(last.recordTime)
}
