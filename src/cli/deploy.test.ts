import assert from 'node:assert/strict'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { withFiles } from '../../test/support/config-files.ts'
import { ON_POSTGRES, valuesFiles } from '../../test/support/deployments.ts'
import { deployCommand } from './deploy.ts'
import type { CommandError } from './output.ts'

async function deploy(
  files: Record<string, string>,
  args: string[],
  env: Record<string, string> = {},
): Promise<{ output: string; told: string }> {
  using directory = withFiles(files)
  const stdout = new PassThrough({ encoding: 'utf8' })
  const stderr = new PassThrough({ encoding: 'utf8' })
  const command = deployCommand({ env, terminal: { stdout, stderr, isInteractive: false } })
  const placed = args.map((arg) =>
    arg in files || arg === 'secrets' ? join(directory.dir, arg) : arg,
  )
  await command.parseAsync(placed, { from: 'user' }).catch((error) => {
    error.message += `\n${stderr.read()}`
    throw error
  })
  return { output: stdout.read() ?? '', told: stderr.read() ?? '' }
}

const VALUES = ['-f', 'validator-values.yaml', '-p', 'participant-values.yaml']

test('the image is annals in this version unless another is named', async () => {
  assert.match((await deploy({}, ['compose'])).output, /image: annals:\d+\.\d+\.\d+/)
  const named = await deploy({}, ['kubernetes', '--image', 'registry.example/annals:1'])
  assert.match(named.output, /image: registry\.example\/annals:1/)
})

test('a wrong configuration prints nothing and says why', async () => {
  const files = valuesFiles({ validator: { enableWalet: true } })
  await assert.rejects(
    deploy(files, ['kubernetes', '-f', 'validator-values.yaml']),
    (error: CommandError) => error.name === 'CommandError' && error.exitCode === 2,
  )
})

test('the operator is told what is not deployed', async () => {
  const { told } = await deploy(valuesFiles(ON_POSTGRES), ['kubernetes', ...VALUES])
  assert.match(told, /The database server postgres is not deployed/)
})

/** Secrets in every place that a configuration has for them; short ones too. */
const PLANTED = {
  password: 'planted-password-1',
  client: 'planted-client-secret-2',
  onboarding: 'planted-onboarding-3',
  override: 'pl4',
  listed: 'planted-listed-5',
  hocon: 'planted-hocon-6',
  referred: 'planted-referred-7',
  envFile: 'planted-env-file-8',
  token: 'planted-token-9',
}

function plantedFiles(): Record<string, string> {
  const auth = 'secrets/splice-app-validator-ledger-api-auth'
  return {
    ...valuesFiles({
      validator: {
        svSponsorAddress: 'https://sv.example.com',
        scanAddress: 'https://scan.example.com',
        validatorPartyHint: 'acme-validator-1',
        nodeIdentifier: 'acme-validator-1',
        validatorWalletUsers: ['auth0|1'],
        migration: { id: '3' },
        onboardingSecretFrom: { secretKeyRef: { name: 'joining', key: 'secret' } },
        persistence: {
          host: 'postgres',
          secretOverrides: { postgresPassword: PLANTED.override },
        },
        auth: { audience: 'validator', jwksUrl: 'https://idp.example.com/jwks' },
        additionalEnvVars: [
          { name: 'SPLICE_APP_POSTGRES_PASSWORD', value: PLANTED.listed },
          {
            name: 'VALIDATOR_AUTH_CLIENT_SECRET',
            valueFrom: {
              secretKeyRef: { name: 'splice-app-validator-ledger-api-auth', key: 'client-secret' },
            },
          },
        ],
      },
      participant: {
        persistence: { host: 'postgres', schema: 'participant' },
        auth: {
          jwksUrl: 'https://idp.example.com/jwks',
          targetAudience: 'https://ledger.example.com',
        },
      },
      postgres: {
        persistence: { secretOverrides: { postgresPassword: PLANTED.password } },
      },
    }),
    '.env': `ONBOARDING_SECRET=${PLANTED.envFile}\nLOG_LEVEL=WARN\n`,
    'secrets/postgres-secrets/postgresPassword': PLANTED.password,
    [`${auth}/ledger-api-user`]: 'user@clients',
    [`${auth}/url`]: 'https://idp.example.com/.well-known/openid-configuration',
    [`${auth}/client-id`]: 'client',
    [`${auth}/client-secret`]: PLANTED.client,
    [`${auth}/audience`]: 'https://ledger.example.com',
    [`${auth}/token`]: PLANTED.token,
    'secrets/joining/secret': PLANTED.onboarding,
  }
}

const PLANTED_VARIABLES = {
  SPLICE_DB_PASSWORD: PLANTED.password,
  ADDITIONAL_CONFIG_STORAGE: `canton.participants.participant.storage.config.properties.password = "${PLANTED.hocon}"`,
  ADDITIONAL_CONFIG_USER:
    'canton.participants.participant.storage.config.properties.password = $' + '{?OF_THE_SHELL}',
  OF_THE_SHELL: PLANTED.referred,
  UNRELATED: 'not-for-the-node',
}

for (const target of ['kubernetes', 'compose']) {
  test(`no text of a secret is printed: ${target}`, async () => {
    const args = [...VALUES, '--postgres-values', 'postgres-values.yaml']
    const sources = ['--env-file', '.env', '--secrets', 'secrets', '--lenient']
    const { output, told } = await deploy(
      plantedFiles(),
      [target, ...args, ...sources],
      PLANTED_VARIABLES,
    )
    assert.match(output, /postgres-secrets/)
    for (const text of [...Object.values(PLANTED), 'not-for-the-node']) {
      assert.equal(output.includes(text), false, `${text} is printed`)
      assert.equal(told.includes(text), false, `${text} is told`)
      assert.equal(output.includes(Buffer.from(text).toString('base64')), false)
    }
  })
}

test('values that hold a secret, and secret variables, come from secrets of the operator', async () => {
  const args = [...VALUES, '--postgres-values', 'postgres-values.yaml', '--env-file', '.env']
  const { output } = await deploy(plantedFiles(), ['kubernetes', ...args, '--secrets', 'secrets'], {
    OF_THE_SHELL: 'planted-referred-7',
  })
  assert.match(
    output,
    /kubectl create secret generic annals-values --from-file=validator-values\.yaml=\S+validator-values\.yaml/,
  )
  const manifests = parseAllDocuments(output).map((document) => document.toJS())
  const { data } = manifests.find(({ kind }) => kind === 'ConfigMap')
  assert.deepEqual(Object.keys(data).sort(), ['participant-values.yaml'])
  const { spec } = manifests.find(
    ({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === 'annals',
  ).spec.template
  assert.deepEqual(spec.containers[0].env.slice(-2), [
    { name: 'LOG_LEVEL', value: 'WARN' },
    {
      name: 'ONBOARDING_SECRET',
      valueFrom: { secretKeyRef: { name: 'annals-environment', key: 'ONBOARDING_SECRET' } },
    },
  ])
})

test('a secret in a key of the pod stops the command', async () => {
  const init = { name: 'init', image: 'busybox', args: [PLANTED.client] }
  const files = {
    ...valuesFiles({ validator: { extraInitContainers: [init] } }),
    'secrets/splice-app-validator-ledger-api-auth/ledger-api-user': 'user@clients',
    'secrets/splice-app-validator-ledger-api-auth/token': PLANTED.client,
  }
  await assert.rejects(
    deploy(files, ['kubernetes', '-f', 'validator-values.yaml', '--secrets', 'secrets']),
    /would hold the text of a secret/,
  )
})
