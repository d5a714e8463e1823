import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import {
  deploymentOf,
  ON_POSTGRES,
  PASSWORD_FILE,
  valuesFiles,
} from '../../test/support/deployments.ts'
import { composeYaml } from './compose.ts'
import type { DeployRequest } from './request.ts'

// biome-ignore lint/suspicious/noExplicitAny: the file is read the way a reader of YAML would.
function composeOf(request: DeployRequest): any {
  return parse(composeYaml(request))
}

const START = ['start', '--empty', '--bind', '0.0.0.0', '--data', '/var/lib/annals']
const SERVER = { ...ON_POSTGRES, postgres: { db: { volumeSize: '50Gi' } } }

test('a node on defaults has a volume, loopback ports and a health check', () => {
  const file = composeOf(deploymentOf({}))
  const { annals } = file.services
  assert.deepEqual(
    annals.ports,
    [7575, 5012, 5003, 10013].map((port) => `\${HOST_BIND_IP:-127.0.0.1}:${port}:${port}`),
  )
  assert.deepEqual(file.volumes, { data: {} })
  assert.deepEqual(annals.volumes, [{ type: 'volume', source: 'data', target: '/var/lib/annals' }])
  assert.match(annals.healthcheck.test.join(' '), /http:\/\/127\.0\.0\.1:5003\/readyz/)
  assert.deepEqual(annals.command, START)
  assert.equal(file.configs, undefined)
  assert.deepEqual(Object.keys(file.services), ['annals'])
})

test('values files are named, not copied', () => {
  const file = composeOf(deploymentOf(valuesFiles(ON_POSTGRES)))
  assert.deepEqual(file.configs['validator-values.yaml'], { file: 'validator-values.yaml' })
  assert.ok(
    file.services.annals.configs.some(
      ({ target }: { target: string }) => target === '/etc/annals/values/validator-values.yaml',
    ),
  )
  assert.deepEqual(file.services.annals.command.slice(0, START.length + 2), [
    ...START,
    '-f',
    '/etc/annals/values/validator-values.yaml',
  ])
})

test('the node waits for the server, and both read the password from one file', () => {
  const file = composeOf(deploymentOf({ ...valuesFiles(SERVER), ...PASSWORD_FILE }))
  const { annals, postgres } = file.services
  assert.deepEqual(annals.depends_on, { postgres: { condition: 'service_healthy' } })
  assert.deepEqual(file.secrets, {
    'postgres-secrets_postgresPassword': { file: 'secrets/postgres-secrets/postgresPassword' },
  })
  assert.deepEqual(annals.secrets, [
    {
      source: 'postgres-secrets_postgresPassword',
      target: 'postgres-secrets/postgresPassword',
    },
  ])
  assert.deepEqual(annals.command.slice(-2), ['--secrets', '/run/secrets'])
  assert.equal(
    postgres.environment.POSTGRES_PASSWORD_FILE,
    '/run/secrets/postgres-secrets_postgresPassword',
  )
  assert.deepEqual(postgres.command, ['-c', 'max_connections=300', '-c', 'max_wal_size=2GB'])
  assert.deepEqual(file.volumes, { data: {}, 'pg-data-postgres': {} })
})

test('without a file the password comes from a variable', () => {
  const file = composeOf(deploymentOf(valuesFiles(SERVER)))
  assert.deepEqual(file.secrets, {
    'postgres-secrets_postgresPassword': { environment: 'SPLICE_DB_PASSWORD' },
  })
  assert.equal(file.services.annals.secrets[0].target, 'postgres-secrets/postgresPassword')
})

test('a file of Secret manifests is handed over whole', () => {
  const manifest = `apiVersion: v1
kind: Secret
metadata: { name: postgres-secrets }
stringData: { postgresPassword: not-to-be-printed }
`
  const file = composeOf(deploymentOf({ ...valuesFiles(SERVER), 'secrets.yaml': manifest }))
  assert.deepEqual(file.services.annals.secrets, [
    { source: 'manifests-1', target: 'manifests-1.yaml' },
  ])
  assert.deepEqual(file.secrets['manifests-1'], { file: 'secrets.yaml' })
  // The server cannot read manifests.
  assert.deepEqual(file.secrets['postgres-secrets_postgresPassword'], {
    environment: 'SPLICE_DB_PASSWORD',
  })
})

test('variables are passed on by name, a file of variables by path', () => {
  const request = deploymentOf({ '.env': 'LOG_LEVEL=WARN\n' }, { TARGET_TRAFFIC_THROUGHPUT: '0' })
  const { annals } = composeOf(request).services
  assert.deepEqual(annals.env_file, ['.env'])
  assert.deepEqual(annals.environment, ['TARGET_TRAFFIC_THROUGHPUT'])
})

test('a server on another port listens there', () => {
  const persistence = { host: 'db', port: 6000, schema: 'participant' }
  const values = { participant: { persistence }, postgres: { db: { maxConnections: 50 } } }
  const { db } = composeOf(deploymentOf(valuesFiles(values))).services
  assert.deepEqual(db.command.slice(-2), ['-p', '6000'])
  assert.deepEqual(db.healthcheck.test.slice(-2), ['-p', '6000'])
})

test('enableHealthProbes: false also switches off the check of the image', () => {
  const request = deploymentOf(valuesFiles({ participant: { enableHealthProbes: false } }))
  assert.deepEqual(composeOf(request).services.annals.healthcheck, { disable: true })
})

test('a dollar sign in a text stays one', () => {
  const request = { ...deploymentOf({}), image: 'registry/$team/annals' }
  assert.equal(composeOf(request).services.annals.image, 'registry/$$team/annals')
})

test('certificates are mounted where the configuration looks for them', () => {
  const files = [
    { written: 'tls/server.crt', path: '/home/me/tls/server.crt' },
    { written: '/certs/ca.crt', path: '/certs/ca.crt' },
  ]
  const { annals } = composeOf({ ...deploymentOf(valuesFiles(ON_POSTGRES)), files }).services
  assert.deepEqual(
    annals.volumes.slice(1).map(({ source, target }: Record<string, string>) => [source, target]),
    [
      ['/home/me/tls/server.crt', '/etc/annals/values/tls/server.crt'],
      ['/certs/ca.crt', '/certs/ca.crt'],
    ],
  )
})
