import type { Registry } from '../metrics/registry.ts'
import type { Dissent } from './dissent.ts'
import type { Peers } from './peers.ts'
import type { SyncState } from './sync.ts'

/** Declared once for a node that is a mirror; docs/metrics.md names them all. */
export function measureMirror(
  registry: Registry,
  mirror: {
    peers: Peers
    sync(): SyncState | undefined
    behindSeconds(): number | null
  },
): { onDissent(dissent: Dissent): void } {
  const { peers } = mirror
  const gauge = (name: string, help: string, value: () => number) => {
    registry.gauge({ name, help, collect: (each) => each.set(value()) })
  }
  gauge('annals_mirror_copying', '1 while this node copies, 0 while it follows another.', () =>
    mirror.sync() === undefined ? 0 : 1,
  )
  gauge('annals_mirror_stalled', '1 while nothing can be copied.', () =>
    mirror.sync()?.stalled === undefined ? 0 : 1,
  )
  gauge(
    'annals_mirror_split',
    '1 while more scans contradict each other than may be faulty.',
    () => (mirror.sync()?.isSplit ? 1 : 0),
  )
  gauge(
    'annals_mirror_behind_seconds',
    'How far the copy is behind the network.',
    () => mirror.behindSeconds() ?? Number.NaN,
  )
  gauge(
    'annals_mirror_peers',
    'Scans that the network is known to have.',
    () => peers.sizes().known,
  )
  gauge(
    'annals_mirror_agreeing',
    'Scans that stood behind the last page.',
    () => mirror.sync()?.agreeing ?? 0,
  )
  gauge(
    'annals_mirror_page_size',
    'Updates that are asked for at a time.',
    () => mirror.sync()?.pageSize ?? 0,
  )
  const perPeer = (name: string, help: string, value: (r: PeerNumbers) => number) => {
    registry.gauge({
      name,
      help,
      labels: ['scan'],
      collect(each) {
        for (const record of peers.records()) {
          each.labels({ scan: new URL(record.peer.base).host }).set(value(record))
        }
      },
    })
  }
  perPeer('annals_mirror_peer_answers', 'Answers of a scan since the start.', (r) => r.answers)
  perPeer('annals_mirror_peer_failures', 'Failures of a scan since the start.', (r) => r.failures)
  const dissents = registry.counter({
    name: 'annals_mirror_dissents_total',
    help: 'Answers that enough other scans contradicted.',
    labels: ['scan'],
  })
  return {
    onDissent: ({ peer }) => dissents.labels({ scan: new URL(peer.base).host }).inc(),
  }
}

type PeerNumbers = { answers: number; failures: number }
