import type { DeploymentConfig, ServiceMonitorConfig } from '../config/node-config.ts'

const MS_PER_SECOND = 1000

/**
 * The node has one metrics port for both apps: apps with the same release share a monitor, at the
 * shorter interval, so that nothing is scraped twice into one Prometheus.
 */
export function serviceMonitors(
  { serviceMonitor }: DeploymentConfig,
  { name, labels }: { name: string; labels: Readonly<Record<string, string>> },
): object[] {
  const intervals = new Map<string, number>()
  for (const { enabled, release, intervalMs } of Object.values<ServiceMonitorConfig>(
    serviceMonitor,
  )) {
    if (!enabled) continue
    intervals.set(release, Math.min(intervalMs, intervals.get(release) ?? intervalMs))
  }
  return [...intervals].map(([release, intervalMs], index) => ({
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'ServiceMonitor',
    metadata: {
      name: index === 0 ? name : `${name}-${index + 1}`,
      labels: { ...labels, release },
    },
    spec: {
      selector: { matchLabels: labels },
      endpoints: [
        {
          port: 'metrics',
          path: '/metrics',
          interval: `${Math.max(1, Math.ceil(intervalMs / MS_PER_SECOND))}s`,
          honorLabels: true,
        },
      ],
    },
  }))
}
