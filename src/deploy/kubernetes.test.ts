import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { withFiles } from '../../test/support/config-files.ts'
import {
  deploymentOf,
  ON_POSTGRES,
  PASSWORD_FILE,
  valuesFiles,
} from '../../test/support/deployments.ts'
import { readConfig } from '../config/config.ts'
import type { NodeConfig } from '../config/node-config.ts'
import { ALL_PARTS } from '../config/parts.ts'
import { databaseNotes } from './database-server.ts'
import { kubernetesYaml } from './kubernetes.ts'
import type { DeployRequest } from './request.ts'

// biome-ignore lint/suspicious/noExplicitAny: manifests are read the way a reader of YAML would.
type Manifest = any

const EXAMPLES = Object.fromEntries(
  ['validator', 'participant', 'postgres'].map((file) => [
    `${file}-values.yaml`,
    readFileSync(join(import.meta.dirname, `../../examples/${file}-values.yaml`), 'utf8'),
  ]),
)
const APPS = { 'validator-values.yaml': EXAMPLES['validator-values.yaml'] as string }

function manifestsOf(request: DeployRequest): Manifest[] {
  return parseAllDocuments(kubernetesYaml(request)).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS()
  })
}

function only(manifests: Manifest[], kind: string, name = 'annals'): Manifest {
  const found = manifests.filter(
    (manifest) => manifest.kind === kind && manifest.metadata.name === name,
  )
  assert.equal(found.length, 1, `one ${kind} ${name}`)
  return found[0]
}

function containerOf(manifests: Manifest[], name = 'annals'): Manifest {
  return only(manifests, 'StatefulSet', name).spec.template.spec.containers[0]
}

const SHAPES: Record<string, string> = {
  ConfigMap: 'v1',
  Service: 'v1',
  StatefulSet: 'apps/v1',
  ServiceMonitor: 'monitoring.coreos.com/v1',
}
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** What a cluster would refuse. */
function assertShapes(manifests: Manifest[]): void {
  const names = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  assert.equal(new Set(names).size, names.length, 'no manifest comes twice')
  for (const manifest of manifests) {
    assert.equal(manifest.apiVersion, SHAPES[manifest.kind])
    assert.match(manifest.metadata.name, DNS_LABEL)
    if (manifest.kind === 'Service') assertService(manifest, manifests)
    if (manifest.kind === 'StatefulSet') assertStatefulSet(manifest, manifests)
    if (manifest.kind === 'ConfigMap') {
      for (const [key, text] of Object.entries(manifest.data)) {
        assert.match(key, /^[-._a-zA-Z0-9]+$/)
        assert.equal(typeof text, 'string')
      }
    }
    if (manifest.kind === 'ServiceMonitor') {
      const service = only(manifests, 'Service')
      for (const [label, value] of Object.entries(manifest.spec.selector.matchLabels)) {
        assert.equal(service.metadata.labels[label], value)
      }
      for (const { port, interval } of manifest.spec.endpoints) {
        assert.ok(service.spec.ports.some(({ name }: { name: string }) => name === port))
        assert.match(interval, /^[1-9]\d*s$/)
      }
    }
  }
}

function assertService({ metadata, spec }: Manifest, manifests: Manifest[]): void {
  const { template } = only(manifests, 'StatefulSet', metadata.name).spec
  for (const [label, value] of Object.entries(spec.selector)) {
    assert.equal(template.metadata.labels[label], value)
  }
  for (const { port, targetPort } of spec.ports) {
    assert.ok(Number.isInteger(port) && port > 0 && port < 65536)
    assert.ok(
      template.spec.containers[0].ports.some(({ name }: { name: string }) => name === targetPort),
    )
  }
}

function assertStatefulSet({ spec }: Manifest, manifests: Manifest[]): void {
  assert.equal(spec.replicas, 1)
  only(manifests, 'Service', spec.serviceName)
  assert.deepEqual(
    Object.entries(spec.selector.matchLabels).filter(
      ([label, value]) => spec.template.metadata.labels[label] !== value,
    ),
    [],
  )
  const claims = (spec.volumeClaimTemplates ?? []).map((claim: Manifest) => {
    assert.match(claim.spec.resources.requests.storage, /^\d/)
    assert.deepEqual(claim.spec.accessModes, ['ReadWriteOnce'])
    return claim.metadata.name
  })
  const volumes = [
    ...claims,
    ...(spec.template.spec.volumes ?? []).map((volume: Manifest) => volume.name),
  ]
  assert.equal(new Set(volumes).size, volumes.length)
  const [container] = spec.template.spec.containers
  const paths = container.volumeMounts.map((mount: Manifest) => {
    assert.ok(volumes.includes(mount.name), `the volume ${mount.name} exists`)
    return mount.mountPath
  })
  assert.equal(new Set(paths).size, paths.length)
  for (const name of volumes) assert.match(name, DNS_LABEL)
  for (const { name } of container.ports) assert.match(name, /^[a-z0-9-]{1,15}$/)
  for (const variable of container.env ?? []) {
    assert.ok(typeof variable.value === 'string' || typeof variable.valueFrom === 'object')
  }
}

test('a node on defaults is one replica with a volume, four ports and both probes', () => {
  const manifests = manifestsOf(deploymentOf({}))
  assertShapes(manifests)
  const { spec } = only(manifests, 'StatefulSet')
  assert.equal(spec.volumeClaimTemplates[0].metadata.name, 'data')
  assert.deepEqual(
    only(manifests, 'Service').spec.ports.map(({ port }: { port: number }) => port),
    [7575, 5012, 5003, 10013],
  )
  const container = containerOf(manifests)
  assert.deepEqual(container.readinessProbe.httpGet, { path: '/readyz', port: 'validator' })
  assert.deepEqual(container.livenessProbe.httpGet, { path: '/livez', port: 'validator' })
  assert.equal(container.args.includes('--secrets'), false)
  assert.equal(
    manifests.some(({ kind }) => kind === 'ServiceMonitor'),
    false,
  )
})

test('the reference examples become a node and a database server', () => {
  const manifests = manifestsOf(deploymentOf(EXAMPLES))
  assertShapes(manifests)
  const [claim] = only(manifests, 'StatefulSet', 'postgres').spec.volumeClaimTemplates
  assert.deepEqual(claim.spec.resources.requests, { storage: '50Gi' })
  assert.equal(claim.spec.storageClassName, 'standard-rwo')
  assert.deepEqual(
    containerOf(manifests, 'postgres').env.find(
      ({ name }: { name: string }) => name === 'POSTGRES_PASSWORD',
    ).valueFrom,
    { secretKeyRef: { name: 'postgres-secrets', key: 'postgresPassword' } },
  )
  // Everything that lasts is in the database.
  assert.equal(only(manifests, 'StatefulSet').spec.volumeClaimTemplates, undefined)
  const secrets = only(manifests, 'StatefulSet').spec.template.spec.volumes.flatMap(
    ({ secret }: Manifest) => (secret === undefined ? [] : [secret.secretName]),
  )
  assert.deepEqual(secrets, [
    'postgres-secrets',
    'splice-app-validator-ledger-api-auth',
    'splice-app-wallet-ui-auth',
    'splice-app-cns-ui-auth',
    'splice-app-validator-onboarding-validator',
  ])
})

test('values files are handed over to the letter', () => {
  const { data } = only(manifestsOf(deploymentOf(EXAMPLES)), 'ConfigMap', 'annals-values')
  assert.equal(data['validator-values.yaml'], EXAMPLES['validator-values.yaml'])
  assert.equal(data['participant-values.yaml'], EXAMPLES['participant-values.yaml'])
  const awkward = '# ends without a line\r\ncontactPoint: "ops \\t $HOME"  \n\n\n# é'
  const map = only(
    manifestsOf(deploymentOf({ 'validator-values.yaml': awkward })),
    'ConfigMap',
    'annals-values',
  )
  assert.equal(map.data['validator-values.yaml'], awkward)
})

test('two files of one name stay apart, in order', () => {
  const request = deploymentOf(APPS)
  const [given] = request.values
  assert.ok(given)
  const twice = { ...request, values: [given, { ...given, path: 'other/validator-values.yaml' }] }
  assert.deepEqual(
    containerOf(manifestsOf(twice)).args.filter((arg: string) => arg.endsWith('.yaml')),
    ['validator-1.yaml', 'validator-2.yaml'].map((name) => `/etc/annals/values/${name}`),
  )
})

/** The configuration that a node in the container would have. */
function readInContainer(request: DeployRequest, env: Record<string, string>): NodeConfig {
  const manifests = manifestsOf(request)
  const { data } = only(manifests, 'ConfigMap', 'annals-values')
  const args: string[] = containerOf(manifests).args
  using directory = withFiles({ ...data, ...PASSWORD_FILE })
  const paths = (flag: string) =>
    args.flatMap((arg, index) =>
      args[index - 1] === flag ? [arg.replace('/etc/annals/values', directory.dir)] : [],
    )
  const { config, problems } = readConfig(
    {
      cwd: directory.dir,
      env,
      validatorValues: paths('-f'),
      participantValues: paths('-p'),
      secrets: args.includes('--secrets') ? 'secrets' : undefined,
      flags: {
        'annals.bindAddress': { flag: '--bind', value: args[args.indexOf('--bind') + 1] ?? '' },
        'annals.dataDir': { flag: '--data', value: args[args.indexOf('--data') + 1] ?? '' },
      },
    },
    { parts: ALL_PARTS },
  )
  assert.ok(config, problems.map(({ message }) => message).join('\n'))
  return config
}

const JOINING = {
  MIGRATION_ID: '3',
  SPONSOR_SV_URL: 'https://sv.sv-1.example.net',
  TRUSTED_SCAN_URL: 'https://scan.sv-1.example.net',
}

for (const [title, files, env] of [
  ['defaults', {}, {}],
  ['PostgreSQL', { ...valuesFiles(ON_POSTGRES), ...PASSWORD_FILE }, {}],
  ['variables', {}, { LOG_LEVEL: 'DEBUG' }],
  ['a network that variables alone name', {}, JOINING],
  [
    'tokens of the ledger API',
    valuesFiles({ participant: { auth: { jwksUrl: 'https://a.example', targetAudience: 'a' } } }),
    {},
  ],
  ['ports of its own', valuesFiles({ validator: { annals: { ports: { scan: 6012 } } } }), {}],
] as const) {
  test(`a node in the container reads what was checked, with an open address: ${title}`, () => {
    const request = deploymentOf(files, env)
    const variables = Object.fromEntries(
      (containerOf(manifestsOf(request)).env ?? []).map(({ name, value }: Manifest) => [
        name,
        value,
      ]),
    )
    assert.deepEqual(variables, env)
    const inside = readInContainer(request, variables)
    assert.equal(inside.listen.bindAddress, '0.0.0.0')
    assert.equal(inside.dataDir, '/var/lib/annals')
    const comparable = ({ dataDir, listen, ...config }: NodeConfig) =>
      JSON.stringify(
        {
          ...config,
          listen: { ...listen, bindAddress: '' },
          identity: { ...config.identity, given: true },
        },
        (_, value) => (typeof value === 'bigint' ? String(value) : value),
      ).replaceAll(dataDir, '')
    assert.equal(comparable(inside), comparable(request.config))
  })
}

test('an SQLite node keeps its files on a volume of the size and class of the database', () => {
  const files = valuesFiles({
    validator: {
      db: { volumeSize: '20Gi', volumeStorageClass: 'fast', pvcTemplateName: 'history' },
    },
  })
  const request = deploymentOf(files)
  const manifests = manifestsOf(request)
  assertShapes(manifests)
  const [claim] = only(manifests, 'StatefulSet').spec.volumeClaimTemplates
  assert.equal(claim.metadata.name, 'history')
  assert.equal(claim.spec.storageClassName, 'fast')
  assert.equal(claim.spec.resources.requests.storage, '20Gi')
  assert.equal(manifests.filter(({ kind }) => kind === 'StatefulSet').length, 1)
  assert.match(databaseNotes(request)[0] ?? '', /neither app uses PostgreSQL/)
})

test('a database elsewhere is not deployed, and the operator is told', () => {
  const outside = {
    validator: { persistence: { host: 'db.example.com' } },
    participant: { persistence: { host: 'db.example.com', schema: 'participant' } },
  }
  const request = deploymentOf(valuesFiles(outside))
  const manifests = manifestsOf(request)
  assertShapes(manifests)
  assert.equal(manifests.filter(({ kind }) => kind === 'StatefulSet').length, 1)
  assert.match(databaseNotes(request)[0] ?? '', /db\.example\.com is not deployed/)
  const asked = deploymentOf(valuesFiles({ ...outside, postgres: { db: { volumeSize: '9Gi' } } }))
  assert.equal(manifestsOf(asked).filter(({ kind }) => kind === 'StatefulSet').length, 1)
  assert.match(databaseNotes(asked)[0] ?? '', /not the name of a service/)
  const here = { host: 'localhost', schema: 'participant' }
  const local = deploymentOf(valuesFiles({ participant: { persistence: here } }))
  assert.match(databaseNotes(local)[0] ?? '', /the container itself/)
})

test('a service of the database listens on the port that the apps ask for', () => {
  const values = {
    validator: { persistence: { host: 'pg', port: 6000 } },
    participant: { persistence: { host: 'pg', port: 6000, schema: 'participant' } },
    postgres: { extraArgs: ['-c', 'shared_buffers=1GB'] },
  }
  const manifests = manifestsOf(deploymentOf(valuesFiles(values)))
  assertShapes(manifests)
  assert.equal(only(manifests, 'Service', 'pg').spec.ports[0].port, 6000)
  assert.deepEqual(containerOf(manifests, 'pg').args.slice(-2), ['-c', 'shared_buffers=1GB'])
})

test('metrics.enable makes one monitor for each release', () => {
  const monitors = (validator: object, participant: object) => {
    const files = valuesFiles({
      validator: { metrics: validator },
      participant: { metrics: participant },
    })
    const manifests = manifestsOf(deploymentOf(files))
    assertShapes(manifests)
    return manifests
      .filter(({ kind }) => kind === 'ServiceMonitor')
      .map(({ metadata, spec }) => [metadata.labels.release, spec.endpoints[0].interval])
  }
  assert.deepEqual(monitors({ enable: false }, { enable: false }), [])
  assert.deepEqual(monitors({ enable: true, interval: '1m' }, { enable: true }), [
    ['prometheus-grafana-monitoring', '30s'],
  ])
  assert.deepEqual(monitors({ enable: true, release: 'a' }, { enable: true, release: 'b' }), [
    ['a', '30s'],
    ['b', '30s'],
  ])
})

test('enableHealthProbes: false leaves the probes out', () => {
  const files = valuesFiles({ participant: { enableHealthProbes: false } })
  const container = containerOf(manifestsOf(deploymentOf(files)))
  assert.equal(container.readinessProbe, undefined)
  assert.equal(container.livenessProbe, undefined)
})

test('the process gets the time of the app that needs longer', () => {
  const delay = (validator: number, participant: number) =>
    containerOf(
      manifestsOf(
        deploymentOf(
          valuesFiles({
            validator: { livenessProbeInitialDelaySeconds: validator },
            participant: { livenessProbeInitialDelaySeconds: participant },
          }),
        ),
      ),
    ).livenessProbe.initialDelaySeconds
  assert.equal(delay(90, 30), 90)
  assert.equal(delay(30, 90), 90)
})

test('keys of the pod are taken over, the validator before the participant', () => {
  const files = valuesFiles({
    validator: {
      resources: { limits: { memory: '2Gi' } },
      nodeSelector: { disk: 'ssd' },
      pod: {
        annotations: { team: 'ops' },
        labels: { tier: 'ledger', 'app.kubernetes.io/name': 'x' },
      },
      securityContexts: { pod: { fsGroup: 5 }, validator: { readOnlyRootFilesystem: false } },
      extraVolumes: [{ name: 'extra', emptyDir: {} }],
      extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
    },
    participant: {
      resources: { limits: { memory: '9Gi' } },
      tolerations: [{ operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      pod: { annotations: { team: 'other', also: 'this' } },
      extraVolumes: [{ name: 'extra', emptyDir: {} }],
      extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
    },
    postgres: { resources: { limits: { memory: '1Gi' } }, tolerations: [] },
  })
  const manifests = manifestsOf(deploymentOf(files))
  assertShapes(manifests)
  const { metadata, spec } = only(manifests, 'StatefulSet').spec.template
  assert.deepEqual(metadata.labels, { tier: 'ledger', 'app.kubernetes.io/name': 'annals' })
  assert.equal(metadata.annotations.team, 'ops')
  assert.equal(metadata.annotations.also, 'this')
  assert.deepEqual(spec.nodeSelector, { disk: 'ssd' })
  assert.deepEqual(spec.tolerations, [{ operator: 'Exists' }])
  assert.deepEqual(spec.affinity, { nodeAffinity: {} })
  assert.equal(spec.securityContext.fsGroup, 5)
  assert.equal(spec.securityContext.runAsUser, 1001)
  assert.equal(spec.containers[0].securityContext.readOnlyRootFilesystem, false)
  assert.deepEqual(spec.containers[0].resources, { limits: { memory: '2Gi' } })
})

test('variables of the values that come from the cluster stay references', () => {
  const files = valuesFiles({
    validator: {
      additionalEnvVars: [
        {
          name: 'ONBOARDING_SECRET',
          valueFrom: { secretKeyRef: { name: 'joining', key: 'text' } },
        },
        { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ],
    },
  })
  const manifests = manifestsOf(deploymentOf(files))
  assert.deepEqual(containerOf(manifests).env, [
    {
      name: 'ONBOARDING_SECRET',
      valueFrom: { secretKeyRef: { name: 'joining', key: 'text' } },
    },
    { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ])
})

test('a port that is to be picked is refused', () => {
  const request = deploymentOf(valuesFiles({ validator: { annals: { ports: { scan: 0 } } } }))
  assert.throws(() => kubernetesYaml(request), /annals\.ports\.scan is 0/)
})

test('certificates come from a secret, where the configuration looks for them', () => {
  const request = {
    ...deploymentOf(valuesFiles({ validator: { contactPoint: 'ops' } })),
    files: [
      { written: 'tls/server.crt', path: '/home/me/tls/server.crt' },
      { written: '/certs/ca.crt', path: '/certs/ca.crt' },
    ],
  }
  const manifests = manifestsOf(request)
  assertShapes(manifests)
  const { spec } = only(manifests, 'StatefulSet').spec.template
  const volume = (name: string) => spec.volumes.find((found: Manifest) => found.name === name)
  assert.deepEqual(volume('annals-values').projected.sources[1].secret, {
    name: 'annals-files',
    items: [{ key: '1-server.crt', path: 'tls/server.crt' }],
  })
  assert.deepEqual(volume('annals-files-1').secret.items, [{ key: '2-ca.crt', path: 'ca.crt' }])
  assert.match(kubernetesYaml(request), /--from-file=1-server\.crt=\/home\/me\/tls\/server\.crt/)
  const above = { ...request, files: [{ written: '../tls/ca.crt', path: '/tls/ca.crt' }] }
  assert.throws(() => kubernetesYaml(above), /Write an absolute path/)
  assert.throws(() => kubernetesYaml({ ...request, values: [] }), /without values files/)
})
