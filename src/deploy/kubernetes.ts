import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import {
  CONTAINER_USER,
  DATA_DIRECTORY,
  keepsData,
  type NamedValues,
  nameValues,
  portsOf,
  STOP_SECONDS,
  startArguments,
  VALUES_DIRECTORY,
} from './container.ts'
import { databaseServers, nodeVolume } from './database-server.ts'
import { referredVariables } from './environment.ts'
import { databaseManifests, volumeClaim } from './kubernetes-database.ts'
import { fileDirectories, filesBesideValues } from './kubernetes-files.ts'
import { serviceMonitors } from './kubernetes-monitor.ts'
import {
  ENVIRONMENT_SECRET,
  FILES_SECRET,
  secretCommands,
  VALUES_SECRET,
} from './kubernetes-secrets.ts'
import { type PodSettings, podSettings } from './pod.ts'
import { printDocuments } from './print.ts'
import type { DeployRequest } from './request.ts'
import { type SecretUse, secretsUsed } from './secrets.ts'

const NAME = 'annals'
const LABELS = { 'app.kubernetes.io/name': NAME }
const SECRETS_DIRECTORY = '/etc/annals/secrets'
/** Of the reference deployment: a node that starts slowly is waited for, a dead one restarted. */
const READINESS = {
  initialDelaySeconds: 5,
  periodSeconds: 5,
  timeoutSeconds: 3,
  failureThreshold: 5,
}
const LIVENESS = { periodSeconds: 60, timeoutSeconds: 10, failureThreshold: 5 }

/** The manifests of a node, and of its database server where the values describe one. */
export function kubernetesYaml(request: DeployRequest): string {
  return printDocuments(secretCommands(request), kubernetesManifests(request))
}

export function kubernetesManifests(request: DeployRequest): object[] {
  return [
    ...databaseServers(request).flatMap((server) =>
      databaseManifests(server, podSettings(request, ['postgres'])),
    ),
    valuesMap(request),
    service(request),
    statefulSet(request),
    ...serviceMonitors(request.config.deployment, { name: NAME, labels: LABELS }),
  ]
}

function valuesMap(request: DeployRequest): object {
  const open = nameValues(request).filter(({ holdsSecret }) => !holdsSecret)
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: VALUES_SECRET, labels: LABELS },
    data: Object.fromEntries(open.map(({ name, text }) => [name, text])),
  }
}

function service(request: DeployRequest): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: NAME, labels: LABELS },
    spec: {
      selector: LABELS,
      ports: portsOf(request).map(({ name, port }) => ({ name, port, targetPort: name })),
    },
  }
}

/**
 * One replica, because a history has one writer and a data directory one process. A StatefulSet ends
 * the old pod before it starts the new one, which a Deployment does not.
 */
function statefulSet(request: DeployRequest): object {
  const pod = podSettings(request, ['validator', 'participant'])
  const volume = nodeVolume(request)
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: NAME, labels: LABELS },
    spec: {
      serviceName: NAME,
      replicas: 1,
      selector: { matchLabels: LABELS },
      template: {
        metadata: {
          // Labels that select must stay ours. A changed configuration changes the hash, which restarts the node.
          labels: { ...pod.labels, ...LABELS },
          annotations: { ...pod.annotations, 'annals/values-hash': hashOf(request) },
        },
        spec: podSpec(request, pod),
      },
      ...(keepsData(request) ? { volumeClaimTemplates: [volumeClaim(volume)] } : {}),
    },
  }
}

function podSpec(request: DeployRequest, pod: PodSettings): object {
  return {
    ...pod.pod,
    // The variables that a cluster adds for services could be taken for settings.
    enableServiceLinks: false,
    terminationGracePeriodSeconds: STOP_SECONDS,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: CONTAINER_USER,
      runAsGroup: CONTAINER_USER,
      fsGroup: CONTAINER_USER,
      seccompProfile: { type: 'RuntimeDefault' },
      ...pod.podSecurity,
    },
    ...(pod.initContainers.length === 0 ? {} : { initContainers: pod.initContainers }),
    containers: [container(request, pod)],
    volumes: volumes(request, pod),
  }
}

function container(request: DeployRequest, pod: PodSettings): object {
  const secrets = secretsUsed(request)
  const { healthProbes, livenessDelaySeconds } = request.config.deployment
  // Both apps are one process, so that it gets the time of the app that needs longer.
  const initialDelaySeconds = Math.max(
    livenessDelaySeconds.validator,
    livenessDelaySeconds.participant,
  )
  const probe = (path: string) => ({ httpGet: { path, port: 'validator' } })
  const env = environment(request)
  return {
    name: NAME,
    image: request.image,
    args: startArguments(request, secrets.length === 0 ? undefined : SECRETS_DIRECTORY),
    ...(env.length === 0 ? {} : { env }),
    ports: portsOf(request).map(({ name, port }) => ({ name, containerPort: port })),
    ...(healthProbes
      ? {
          readinessProbe: { ...probe('/readyz'), ...READINESS },
          livenessProbe: { ...probe('/livez'), initialDelaySeconds, ...LIVENESS },
        }
      : {}),
    ...pod.container,
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      ...pod.containerSecurity,
    },
    volumeMounts: [
      { name: dataVolumeName(request), mountPath: DATA_DIRECTORY },
      { name: 'annals-tmp', mountPath: '/tmp' },
      { name: 'annals-values', mountPath: VALUES_DIRECTORY, readOnly: true },
      ...secrets.map(({ name }, index) => ({
        name: secretVolumeName(index),
        mountPath: posix.join(SECRETS_DIRECTORY, name),
        readOnly: true,
      })),
      ...fileDirectories(request, pod).map(({ name, directory }) => ({
        name,
        mountPath: directory,
        readOnly: true,
      })),
      ...pod.volumeMounts,
    ],
  }
}

function environment(request: DeployRequest): object[] {
  const variables = request.variables.map(({ name, text, isSecret }) =>
    isSecret
      ? { name, valueFrom: { secretKeyRef: { name: ENVIRONMENT_SECRET, key: name } } }
      : { name, value: text },
  )
  // As in the node, the environment wins over the variables that the values list.
  const known = new Set(variables.map(({ name }) => name))
  return [...referredVariables(request).filter(({ name }) => !known.has(name)), ...variables]
}

function dataVolumeName(request: DeployRequest): string {
  return keepsData(request) ? nodeVolume(request).name : 'annals-data'
}

function secretVolumeName(index: number): string {
  return `annals-secret-${index + 1}`
}

function volumes(request: DeployRequest, pod: PodSettings): unknown[] {
  return [
    ...(keepsData(request) ? [] : [{ name: dataVolumeName(request), emptyDir: {} }]),
    { name: 'annals-tmp', emptyDir: {} },
    { name: 'annals-values', projected: { sources: valuesSources(request, pod) } },
    ...secretsUsed(request).map(({ name, isOptional }: SecretUse, index) => ({
      name: secretVolumeName(index),
      secret: { secretName: name, optional: isOptional },
    })),
    ...fileDirectories(request, pod).map(({ name, items }) => ({
      name,
      secret: { secretName: FILES_SECRET, items },
    })),
    ...pod.volumes,
  ]
}

function valuesSources(request: DeployRequest, pod: PodSettings): object[] {
  const hidden = nameValues(request).filter(({ holdsSecret }) => holdsSecret)
  const beside = filesBesideValues(request, pod)
  return [
    { configMap: { name: VALUES_SECRET } },
    ...(hidden.length === 0
      ? []
      : [{ secret: { name: VALUES_SECRET, items: hidden.map(itemOf) } }]),
    ...(beside.length === 0 ? [] : [{ secret: { name: FILES_SECRET, items: beside } }]),
  ]
}

function itemOf({ name }: NamedValues): object {
  return { key: name, path: name }
}

/** The texts of secrets stay out of it: a hash of a short password would tell it. */
function hashOf(request: DeployRequest): string {
  const hash = createHash('sha256')
  for (const { text, holdsSecret } of request.values) hash.update(holdsSecret ? '' : text)
  return hash.digest('hex').slice(0, 16)
}
