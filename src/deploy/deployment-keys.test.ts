import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import {
  deploymentOf,
  ON_POSTGRES,
  PASSWORD_FILE,
  type Values,
  valuesFiles,
} from '../../test/support/deployments.ts'
import { VALUES_KEYS, type ValuesFile } from '../config/keys.ts'
import { composeYaml } from './compose.ts'
import { kubernetesManifests, kubernetesYaml } from './kubernetes.ts'

/** Two values of each key that only matters where a node is deployed. */
const FLIPS: Record<string, readonly [unknown, unknown]> = {
  'metrics.enable': [false, true],
  'metrics.release': ['one', 'two'],
  'metrics.interval': ['30s', '1m'],
  livenessProbeInitialDelaySeconds: [1000, 2000],
  enableHealthProbes: [true, false],
  imagePullPolicy: ['Always', 'Never'],
  resources: [{ limits: { memory: '1Gi' } }, { limits: { memory: '2Gi' } }],
  affinity: [{ nodeAffinity: {} }, { podAffinity: {} }],
  nodeSelector: [{ disk: 'slow' }, { disk: 'fast' }],
  tolerations: [[{ key: 'one' }], [{ key: 'two' }]],
  priorityClassName: ['low', 'high'],
  pod: [{ annotations: { team: 'one' } }, { annotations: { team: 'two' } }],
  appLabels: [{ team: 'one' }, { team: 'two' }],
  serviceAccountName: ['one', 'two'],
  automountServiceAccountToken: [false, true],
  securityContexts: [{ pod: { fsGroup: 1 } }, { pod: { fsGroup: 2 } }],
  enableReloader: [false, true],
  extraInitContainers: [[{ name: 'one' }], [{ name: 'two' }]],
  extraVolumes: [[{ name: 'one', emptyDir: {} }], [{ name: 'two', emptyDir: {} }]],
  extraVolumeMounts: [[{ name: 'one', mountPath: '/one' }], [{ name: 'one', mountPath: '/two' }]],
  'db.volumeSize': ['20Gi', '30Gi'],
  'db.volumeStorageClass': ['slow', 'fast'],
  'db.pvcTemplateName': ['pg-data', 'disk'],
  'db.maxConnections': [300, 100],
  'db.maxWalSize': ['2GB', '4GB'],
  'persistence.secretName': ['postgres-secrets', 'other-secrets'],
  'persistence.secretOverrides.postgresPassword': [undefined, 'not-to-be-printed'],
  'extraArgs[]': [
    ['-c', 'work_mem=4MB'],
    ['-c', 'work_mem=8MB'],
  ],
}

const SECRETS = {
  ...PASSWORD_FILE,
  'secrets/other-secrets/postgresPassword': 'not-to-be-printed',
}

function withKey(values: Values, path: string, value: unknown): Values {
  const copy = structuredClone(values) as Record<string, unknown>
  const steps = path.replace('[]', '').split('.')
  let at = copy
  for (const step of steps.slice(0, -1)) {
    at[step] ??= {}
    at = at[step] as Record<string, unknown>
  }
  if (value !== undefined) at[steps.at(-1) as string] = value
  return copy
}

/** A configuration in which the key matters: a server, and a monitor of the app whose key it is. */
function filesWith(file: ValuesFile, path: string, value: unknown): Record<string, string> {
  const isMetrics = path.startsWith('metrics.')
  const base: Record<ValuesFile, Values> = {
    validator: ON_POSTGRES.validator,
    participant: ON_POSTGRES.participant,
    postgres: {},
  }
  const start = isMetrics ? withKey(base[file], 'metrics.enable', true) : base[file]
  return { ...valuesFiles({ ...base, [file]: withKey(start, path, value) }), ...SECRETS }
}

for (const file of Object.keys(VALUES_KEYS) as ValuesFile[]) {
  for (const { path } of VALUES_KEYS[file].filter(({ part }) => part === 'deployment')) {
    test(`${path} of the ${file} values shows in what is deployed`, () => {
      const flip = FLIPS[path]
      assert.ok(flip, `${path} has two values in the table above`)
      const outputs = flip.map((value) => {
        const request = deploymentOf(filesWith(file, path, value))
        const manifests = kubernetesManifests(request)
        // The values themselves and their hash would always differ.
        const rest = manifests.filter((manifest) => Reflect.get(manifest, 'kind') !== 'ConfigMap')
        const comment = kubernetesYaml(request).split('\n---\n')[0]
        return stringify([comment, rest]).replace(/values-hash: .*/, '')
      })
      assert.notEqual(outputs[0], outputs[1])
      assert.doesNotMatch(outputs.join('\n'), /not-to-be-printed/)
    })
  }
}

test('the keys that a compose file can know show there too', () => {
  for (const [file, path] of [
    ['participant', 'enableHealthProbes'],
    ['participant', 'livenessProbeInitialDelaySeconds'],
    ['postgres', 'db.pvcTemplateName'],
    ['postgres', 'db.maxConnections'],
    ['postgres', 'db.maxWalSize'],
    ['postgres', 'persistence.secretName'],
    ['postgres', 'extraArgs[]'],
  ] as const) {
    const [before, after] = (FLIPS[path] ?? []).map((value) =>
      parse(composeYaml(deploymentOf(filesWith(file, path, value)))),
    )
    assert.notDeepEqual(before, after, path)
  }
})
