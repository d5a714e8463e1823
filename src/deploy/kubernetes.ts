import { createHash } from 'node:crypto'
import { isAbsolute, posix } from 'node:path'
import {
  CONTAINER_USER,
  CONTAINER_VALUES,
  containerValues,
  DATA_DIRECTORY,
  keepsData,
  type NamedValues,
  nameValues,
  pathInContainer,
  portsOf,
  STOP_SECONDS,
  startArguments,
  VALUES_DIRECTORY,
} from './container.ts'
import { databaseServers, nodeVolume } from './database-server.ts'
import { referredVariables } from './environment.ts'
import { databaseManifests, volumeClaim } from './kubernetes-database.ts'
import { serviceMonitors } from './kubernetes-monitor.ts'
import { type PodSettings, podSettings } from './pod.ts'
import { printDocuments } from './print.ts'
import type { DeployRequest, GivenFile } from './request.ts'
import { type SecretUse, secretsUsed } from './secrets.ts'

const NAME = 'annals'
const LABELS = { 'app.kubernetes.io/name': NAME }
const SECRETS_DIRECTORY = '/etc/annals/secrets'
/** Secrets that the operator makes from what may not be printed. */
const VALUES_SECRET = `${NAME}-values`
const ENVIRONMENT_SECRET = `${NAME}-environment`
const FILES_SECRET = `${NAME}-files`

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
  return printDocuments(preamble(request), kubernetesManifests(request))
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

/** What must be in the cluster before: the secrets, by the commands that make them. */
function preamble(request: DeployRequest): string[] {
  const { settings } = request
  const create = (name: string, sources: readonly string[]) =>
    `  kubectl create secret generic ${name} ${sources.join(' ')}`
  const used = [
    ...secretsUsed(request),
    ...databaseServers(request).map(({ secretName }) => ({
      name: secretName,
      entries: ['postgresPassword'],
      isOptional: false,
    })),
  ]
  const secrets = new Map(
    used.filter(({ isOptional }) => !isOptional).map((use) => [use.name, use]),
  )
  const commands = [...secrets.values()].map(({ name, entries }) =>
    create(
      name,
      entries.map((entry) => `--from-file=${entry}=FILE`),
    ),
  )
  const values = nameValues(request).filter(({ holdsSecret }) => holdsSecret)
  if (values.length > 0) {
    commands.push(
      create(
        VALUES_SECRET,
        values.map(({ name, path }) => `--from-file=${name}=${path}`),
      ),
    )
  }
  const variables = request.variables.filter(({ isSecret }) => isSecret)
  if (variables.length > 0) {
    commands.push(
      create(
        ENVIRONMENT_SECRET,
        variables.map(({ name }) => `--from-file=${name}=FILE`),
      ),
    )
  }
  const files = ownFiles(request, podSettings(request, ['validator', 'participant']))
  if (files.length > 0) {
    commands.push(
      create(
        FILES_SECRET,
        files.map((file, index) => `--from-file=${fileKey(file, index)}=${file.path}`),
      ),
    )
  }
  const overrides = 'persistence.secretOverrides.postgresPassword'
  return [
    'Made by "annals deploy kubernetes" from a checked configuration. Change that and make it again.',
    ...(commands.length === 0
      ? []
      : [
          '',
          'These secrets must be in the namespace; FILE holds the text of the entry:',
          ...commands,
        ]),
    ...(settings.get('postgres', overrides) === undefined
      ? []
      : ['', `The database server takes its password from the secret, not from ${overrides}.`]),
  ]
}

function valuesMap(request: DeployRequest): object {
  const open = nameValues(request).filter(({ holdsSecret }) => !holdsSecret)
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: VALUES_SECRET, labels: LABELS },
    data: {
      ...Object.fromEntries(open.map(({ name, text }) => [name, text])),
      [CONTAINER_VALUES]: containerValues(request),
    },
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
  const beside = ownFiles(request, pod).flatMap((file, index) =>
    isAbsolute(file.written)
      ? []
      : [{ key: fileKey(file, index), path: posix.normalize(file.written) }],
  )
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

/** The files that no volume of the values brings. */
function ownFiles(request: DeployRequest, pod: PodSettings): GivenFile[] {
  const mounted = pod.volumeMounts.map((mount) =>
    String((mount as { mountPath?: unknown } | null)?.mountPath),
  )
  return request.files.filter((file) => {
    const path = pathInContainer(file)
    return !mounted.some((mount) => path === mount || path.startsWith(`${mount}/`))
  })
}

function fileKey({ written }: GivenFile, index: number): string {
  return `${index + 1}-${posix.basename(written).replaceAll(/[^\w.-]/g, '_')}`
}

type FileDirectory = { name: string; directory: string; items: { key: string; path: string }[] }

/** Whole directories are mounted, because a single file would not follow a renewed certificate. */
function fileDirectories(request: DeployRequest, pod: PodSettings): FileDirectory[] {
  const directories = new Map<string, FileDirectory>()
  ownFiles(request, pod).forEach((file, index) => {
    if (!isAbsolute(file.written)) return
    const path = pathInContainer(file)
    const directory = posix.dirname(path)
    const known = directories.get(directory) ?? {
      name: `annals-files-${directories.size + 1}`,
      directory,
      items: [],
    }
    known.items.push({ key: fileKey(file, index), path: posix.basename(path) })
    directories.set(directory, known)
  })
  return [...directories.values()]
}

/** The texts of secrets stay out of it: a hash of a short password would tell it. */
function hashOf(request: DeployRequest): string {
  const hash = createHash('sha256')
  for (const { text, holdsSecret } of request.values) hash.update(holdsSecret ? '' : text)
  return hash.update(containerValues(request)).digest('hex').slice(0, 16)
}
