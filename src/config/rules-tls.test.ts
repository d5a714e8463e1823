import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../../test/support/certificates.ts'
import { caseNamed, readFiles, withFiles } from '../../test/support/config-files.ts'
import { readConfig } from './config.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PKCS1 = String(privateKey.export({ type: 'pkcs1', format: 'pem' }))
const PKCS8 = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
const ENCRYPTED = String(
  privateKey.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'PLANTED-passphrase',
  }),
)

type Row = [
  fact: string,
  change: (files: Record<string, string>) => void,
  key: string,
  message: RegExp,
]

const ROWS: Row[] = [
  [
    'a key in the older PKCS#1 form is refused with the remedy',
    (files) => (files['tls/ledger-api.pem'] = PKCS1),
    'tls.private-key-file',
    /PKCS#8/,
  ],
  [
    'a key with a password is refused',
    (files) => (files['tls/ledger-api.pem'] = ENCRYPTED),
    'tls.private-key-file',
    /password/,
  ],
  [
    'a key of another certificate is refused',
    (files) => (files['tls/ledger-api.pem'] = PKCS8),
    'tls.private-key-file',
    /does not belong/,
  ],
  [
    'a key that is cut off is refused',
    (files) => (files['tls/ledger-api.pem'] = PKCS8.slice(0, 200)),
    'tls.private-key-file',
    /cannot be read/,
  ],
  [
    'a certificate that is none is refused',
    (files) => (files['tls/ledger-api.crt'] = 'hello'),
    'tls.cert-chain-file',
    /not a certificate/,
  ],
  [
    'a key in the place of a certificate is refused',
    (files) => (files['tls/ledger-api.crt'] = PKCS8),
    'tls.cert-chain-file',
    /not a certificate/,
  ],
  [
    'a trust collection that is none is refused',
    (files) => (files['tls/root-ca.crt'] = ''),
    'tls.trust-collection-file',
    /not a certificate/,
  ],
  [
    'the pair of the admin client is checked too',
    (files) => (files['tls/admin-client.pem'] = PKCS8),
    'admin-client.private-key-file',
    /does not belong/,
  ],
  [
    'a missing file of the admin client is told',
    (files) => delete files['tls/admin-client.crt'],
    'admin-client.cert-chain-file',
    /does not exist/,
  ],
]

for (const [fact, change, key, message] of ROWS) {
  test(fact, () => {
    const { files, env } = caseNamed('valid-tls-mutual-restricted')
    change(files)
    const { problems } = readFiles(files, env)
    const errors = problems.filter(({ severity }) => severity === 'error')
    assert.equal(errors.length, 1, JSON.stringify(errors.map((problem) => problem.message)))
    assert.ok(errors[0]?.key.endsWith(key))
    assert.match(errors[0]?.message ?? '', message)
    assert.doesNotMatch(JSON.stringify(problems), /PRIVATE KEY-----\\n/)
  })
}

test('a certificate may be given as text', () => {
  const { files, env } = caseNamed('valid-tls-server-only')
  const inline = `canton.participants.participant.ledger-api.tls { cert-chain-file = """${files['tls/ledger-api.crt']}""", private-key-file = "tls/ledger-api.pem" }`
  const { config, problems } = readFiles(files, {
    ...env,
    ADDITIONAL_CONFIG_LEDGER_API_TLS: inline,
  })
  assert.deepEqual(
    problems.filter(({ severity }) => severity === 'error'),
    [],
  )
  assert.ok(config?.listen.ledgerTls !== undefined && 'pem' in config.listen.ledgerTls.certChain)
})

test('files beside the values are found from another working directory', () => {
  const { files, env } = caseNamed('valid-tls-server-only')
  using directory = withFiles(files)
  const values = (name: string) => [join(directory.dir, name)]
  const { config } = readConfig(
    {
      cwd: '/',
      env,
      validatorValues: values('validator-values.yaml'),
      participantValues: values('participant-values.yaml'),
    },
    { parts: [] },
  )
  assert.deepEqual(config?.listen.ledgerTls?.certChain, {
    path: join(directory.dir, 'tls/ledger-api.crt'),
  })
})

test('an expired certificate of the server is refused, as at the start, and one of a client is a warning', () => {
  const { files, env } = caseNamed('valid-tls-mutual-restricted')
  const { cert, key } = makeCertificate({ name: 'old', validForDays: -1 })
  const severityOf = (name: string) => {
    const changed = { ...files, [`tls/${name}.crt`]: cert, [`tls/${name}.pem`]: key }
    return readFiles(changed, env).problems.find(({ rule }) => rule === 'tls-expiry')?.severity
  }
  assert.deepEqual([severityOf('ledger-api'), severityOf('admin-client')], ['error', 'warning'])
})

const TLS = 'canton.participants.participant.ledger-api.tls'

test('names of cipher suites and of groups are checked for their form', () => {
  const { files, env } = caseNamed('valid-tls-server-only')
  const text = env.ADDITIONAL_CONFIG_LEDGER_API_TLS as string
  for (const [ciphers, wrong] of [
    ['[]', true],
    ['["AES128"]', true],
    ['["TLS_NO_SUCH_SUITE"]', true],
    ['["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]', false],
    ['["TLS_AES_256_GCM_SHA384"]', false],
  ] as const) {
    const { config } = readFiles(files, {
      ...env,
      ADDITIONAL_CONFIG_LEDGER_API_TLS: `${text}\n${TLS}.ciphers = ${ciphers}`,
    })
    assert.equal(config === undefined, wrong, ciphers)
  }
  const groups = readFiles(files, { ...env, JAVA_TOOL_OPTIONS: '-Djdk.tls.namedGroups=x25519;bad' })
  assert.ok(groups.problems.some(({ rule }) => rule === 'named-groups'))
})

test('histograms stay native unless the list is empty', () => {
  const read = (text: string) =>
    readFiles({}, { ADDITIONAL_CONFIG_H: `canton.monitoring.metrics.histograms=${text}` }).config
      ?.metrics.nativeHistograms
  assert.equal(read('[]'), false)
  assert.equal(read('[{ name = "*", aggregation { type = exponential } }]'), true)
})
