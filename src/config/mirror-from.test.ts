import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorsOf, readFiles } from '../../test/support/config-files.ts'

const FROM = 'annals:\n  mirror:\n    from: ["https://scan.sv-1.example.net"]\n'

test('a network is copied without joining it, and without anything else', () => {
  const { config, problems } = readFiles({ 'validator-values.yaml': FROM })
  assert.deepEqual(problems, [])
  assert.equal(config?.historyWriter, 'mirror')
  assert.equal(config?.network, undefined)
  assert.deepEqual(config?.mirror, { from: ['https://scan.sv-1.example.net'], agreement: 'f+1' })
})

test('who joins a network copies that one', () => {
  const joining = 'scanAddress: "https://scan.sv-2.example.net"\n'
  const errors = errorsOf(readFiles({ 'validator-values.yaml': joining + FROM }))
  assert.ok(
    errors.some(({ message }) =>
      /annals\.mirror\.from is for a node that joins no network/.test(message),
    ),
  )
})

test('a list of nobody is refused, and so is an agreement that is none', () => {
  const nobody = errorsOf(
    readFiles({ 'validator-values.yaml': 'annals:\n  mirror:\n    from: []\n' }),
  )
  assert.match(String(nobody[0]?.message), /annals\.mirror\.from is empty/)
  const odd = errorsOf(
    readFiles({ 'validator-values.yaml': 'annals:\n  mirror:\n    agreement: most\n' }),
  )
  assert.equal(odd.length, 1)
})
