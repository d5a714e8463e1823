import type { Registry } from '../metrics/registry.ts'
import type { Operation } from './operations.ts'

/** How a read of the network ended. What the proxy itself refuses is no read. */
export type ReadOutcome = 'agreed' | 'refused' | 'no-agreement' | 'failed'

export type OnRead = (operation: Operation['id'], outcome: ReadOutcome) => void

export function measureProxy(registry: Registry): OnRead {
  const reads = registry.counter({
    name: 'annals_scan_proxy_reads_total',
    help: 'Reads of the network for apps.',
    labels: ['operation', 'outcome'],
  })
  return (operation, outcome) => reads.labels({ operation, outcome }).inc()
}
