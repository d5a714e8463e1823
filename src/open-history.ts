import type { NodeConfig } from './config/node-config.ts'
import { contendForWriterLock, type HeldWriterLock, holdWriterLock } from './db/writer-lock.ts'
import { isStalled, writerCheck } from './health/writer-check.ts'
import { type History, openHistory } from './history/history.ts'
import type { Surroundings } from './listen.ts'
import { measureAppends, measureHistory } from './measure.ts'
import { appLabels } from './metrics/app-labels.ts'
import type { OpenDatabase } from './open-databases.ts'

/** The right to write the history, which may come and go while the node runs. */
export type WriterPlace = {
  isHeld(): boolean
  /** Told of every change, and at once how it stands. */
  watch(listener: (isHeld: boolean) => void): void
}

export type NodeHistory = {
  history: History
  /** Whether another node was the writer when this one started. */
  isFollower: boolean
  writer: WriterPlace
}

/** On PostgreSQL several nodes may share a history; the one that holds the lock writes. */
export async function openNodeHistory(
  config: NodeConfig,
  { db, target }: OpenDatabase,
  { around, parts }: { around: Surroundings; parts: AsyncDisposableStack },
): Promise<NodeHistory> {
  const { health } = around
  const registry = around.registry.with(appLabels.scan)
  const log = around.logs.named('annals.history')
  const listeners: ((isHeld: boolean) => void)[] = []
  let lock: HeldWriterLock | undefined
  let opened: History | undefined
  const tell = (isHeld: boolean) => {
    for (const listener of listeners) listener(isHeld)
  }
  // Another node may have written while the lock was away.
  const onHeld = () => {
    log.info('the lock of the history is held')
    opened?.setFollower(false).then(
      () => tell(true),
      (err) => log.warn({ err }, 'the history could not be read again'),
    )
  }
  if (target.engine === 'postgres') {
    lock =
      config.historyWriter === 'mirror'
        ? await contendForWriterLock({ ...target, onHeld, onLost })
        : await holdWriterLock({ ...target, onRegained: onHeld })
    parts.defer(() => lock?.release())
  }
  const isHeld = () => target.engine === 'sqlite' || lock?.state() === 'held'
  const isFollower = !isHeld()
  const history = await openHistory({
    db,
    cacheBytes: config.scan.cacheBytes,
    isFollower,
    onAppend: measureAppends(registry),
  })
  opened = history
  const writer = {
    appendingSince: () => history.appendingSince,
    // Of several mirrors any may copy; that another one does is as it should be.
    place: () => {
      const state = lock?.state() ?? 'held'
      return config.historyWriter === 'mirror' && state === 'taken' ? 'held' : state
    },
  }
  if (!isFollower || config.historyWriter === 'mirror') health.add(writerCheck(writer))
  measureHistory(registry, { history, isStalled: () => isStalled(writer) })
  return {
    history,
    isFollower,
    writer: {
      isHeld,
      watch(listener) {
        listeners.push(listener)
        listener(isHeld())
      },
    },
  }

  function onLost(): void {
    log.warn('the lock of the history is lost; another node may take over')
    tell(false)
    opened?.setFollower(true).catch(() => {
      // The store is away; the next reader asks it again.
    })
  }
}
