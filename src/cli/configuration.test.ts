import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { withFiles } from '../../test/support/config-files.ts'
import { type ConfigurationArguments, readConfiguration } from './configuration.ts'

function read(args: ConfigurationArguments) {
  const stderr = new PassThrough()
  const terminal = { stdout: new PassThrough(), stderr, isInteractive: false }
  const config = readConfiguration(args, { env: {}, terminal })
  return { config, told: () => String(stderr.read() ?? '') }
}

test('flags win over the values: address, directory and ports', async () => {
  using directory = withFiles({
    'v.yaml': 'annals: { bindAddress: 10.0.0.1, dataDir: a, ports: { scan: 1, ledger: 2 } }\n',
  })
  const validatorValues = [`${directory.dir}/v.yaml`]
  const plain = await read({ validatorValues }).config
  assert.equal(plain.listen.bindAddress, '10.0.0.1')
  const { listen, dataDir } = await read({
    validatorValues,
    bind: '0.0.0.0',
    data: '/b',
    scanPort: '3',
  }).config
  assert.equal(listen.bindAddress, '0.0.0.0')
  assert.equal(dataDir, '/b')
  assert.deepEqual([listen.ports.scan, listen.ports.ledger], [3, 2])
})

test('a flag that is wrong is told by its name', async () => {
  const { config, told } = read({ bind: 'http://here', metricsPort: '70000' })
  await assert.rejects(config, /nothing was started/)
  const text = told()
  assert.match(text, /--bind is wrong: it is no host name/)
  assert.match(text, /--metrics-port is wrong: it is above 65535/)
})
