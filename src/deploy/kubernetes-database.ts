import {
  type DatabaseServer,
  PASSWORD_ENTRY,
  POSTGRES_DIRECTORY,
  POSTGRES_IMAGE,
  POSTGRES_PORT,
  POSTGRES_USER,
  type Volume,
} from './database-server.ts'
import type { PodSettings } from './pod.ts'

/** A server that closes its connections in order needs longer than the thirty seconds of a cluster. */
const STOP_SECONDS = 60
const PROBE = { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }

export function volumeClaim({ name, size, storageClass }: Volume): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
      resources: { requests: { storage: size } },
    },
  }
}

/** A small PostgreSQL server with its volume. The node makes its databases itself. */
export function databaseManifests(server: DatabaseServer, pod: PodSettings): object[] {
  const labels = { 'app.kubernetes.io/name': server.host }
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: server.host, labels },
      spec: {
        selector: labels,
        ports: [{ name: 'postgres', port: server.port, targetPort: 'postgres' }],
      },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: server.host, labels },
      spec: {
        serviceName: server.host,
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels: { ...pod.labels, ...labels }, annotations: pod.annotations },
          spec: podSpec(server, pod),
        },
        volumeClaimTemplates: [volumeClaim(server.volume)],
      },
    },
  ]
}

function podSpec(server: DatabaseServer, pod: PodSettings): object {
  const isReady = { exec: { command: ['pg_isready', '-U', server.user, '-d', 'postgres'] } }
  return {
    ...pod.pod,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: STOP_SECONDS,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: POSTGRES_USER,
      runAsGroup: POSTGRES_USER,
      fsGroup: POSTGRES_USER,
      seccompProfile: { type: 'RuntimeDefault' },
      ...pod.podSecurity,
    },
    ...(pod.initContainers.length === 0 ? {} : { initContainers: pod.initContainers }),
    containers: [
      {
        name: 'postgres',
        image: POSTGRES_IMAGE,
        args: server.serverArguments,
        env: [
          { name: 'POSTGRES_USER', value: server.user },
          { name: 'POSTGRES_INITDB_ARGS', value: '--data-checksums' },
          // A fresh volume holds lost+found, and a data directory must begin empty.
          { name: 'PGDATA', value: `${POSTGRES_DIRECTORY}/pgdata` },
          {
            name: 'POSTGRES_PASSWORD',
            valueFrom: { secretKeyRef: { name: server.secretName, key: PASSWORD_ENTRY } },
          },
        ],
        ports: [{ name: 'postgres', containerPort: POSTGRES_PORT }],
        readinessProbe: { ...isReady, ...PROBE },
        livenessProbe: { ...isReady, initialDelaySeconds: 30, ...PROBE },
        ...pod.container,
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          ...pod.containerSecurity,
        },
        volumeMounts: [
          { name: server.volume.name, mountPath: POSTGRES_DIRECTORY },
          ...pod.volumeMounts,
        ],
      },
    ],
    ...(pod.volumes.length === 0 ? {} : { volumes: pod.volumes }),
  }
}
