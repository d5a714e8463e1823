import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ConnectionOptions, connect } from 'node:tls'
import { type Certificate, makeCertificate } from '../../test/support/certificates.ts'
import type { Cleanup } from '../../test/support/engines.ts'
import { newDirectory } from '../../test/support/node.ts'
import {
  followCertificates,
  readTlsOptions,
  refuseUntrustedClients,
  type ServerTls,
  TlsError,
} from './tls.ts'

const authority = makeCertificate({ name: 'authority', isAuthority: true })
const serverCertificate = makeCertificate({ name: 'server', issuer: authority })
const clientCertificate = makeCertificate({ name: 'client', issuer: authority })
const stranger = makeCertificate({ name: 'stranger' })

function tlsOf(certificate: Certificate, changes: Partial<ServerTls> = {}): ServerTls {
  return {
    certChain: { pem: certificate.cert },
    privateKey: { pem: certificate.key },
    trustCollection: { pem: authority.cert },
    clientAuth: 'none',
    minimumVersion: 'TLSv1.2',
    ciphers: undefined,
    groups: undefined,
    ...changes,
  }
}

async function startServer(t: Cleanup, tls: ServerTls) {
  const server = createServer(readTlsOptions(tls), (_request, response) => response.end('hello'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { server, port }
}

/** The cipher suite of a connection. Sends a request, so that a refusal of the client's certificate, which comes after the handshake, is seen. */
function ask(port: number, options: ConnectionOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca: authority.cert, ...options }, () => {
      socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    })
    socket.once('data', () => {
      resolve(socket.getCipher().standardName)
      socket.destroy()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
  })
}

test('a client that trusts the authority is served', async (t) => {
  const { port } = await startServer(t, tlsOf(serverCertificate))
  await ask(port)
  await assert.rejects(ask(port, { ca: stranger.cert }))
})

test('mutual TLS refuses a client without a certificate of the authority', async (t) => {
  const { port } = await startServer(t, tlsOf(serverCertificate, { clientAuth: 'require' }))
  await ask(port, { cert: clientCertificate.cert, key: clientCertificate.key })
  await assert.rejects(ask(port))
  await assert.rejects(ask(port, { cert: stranger.cert, key: stranger.key }))
})

test('an optional client certificate may be missing, but not be untrusted', async (t) => {
  const { server, port } = await startServer(
    t,
    tlsOf(serverCertificate, { clientAuth: 'optional' }),
  )
  refuseUntrustedClients(server)
  await ask(port)
  await ask(port, { cert: clientCertificate.cert, key: clientCertificate.key })
  await assert.rejects(ask(port, { cert: stranger.cert, key: stranger.key }))
})

test('the minimum version is honoured', async (t) => {
  const { port } = await startServer(t, tlsOf(serverCertificate, { minimumVersion: 'TLSv1.3' }))
  await ask(port, { minVersion: 'TLSv1.3' })
  await assert.rejects(ask(port, { maxVersion: 'TLSv1.2' }))
})

test('only the chosen cipher suites are offered, by their standard names', async (t) => {
  const ciphers = ['TLS_AES_256_GCM_SHA384', 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256']
  const { port } = await startServer(t, tlsOf(serverCertificate, { ciphers }))
  const modern = await ask(port, { minVersion: 'TLSv1.3' })
  assert.equal(modern, 'TLS_AES_256_GCM_SHA384')
  await assert.rejects(ask(port, { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' }))
  const old = await ask(port, { maxVersion: 'TLSv1.2' })
  assert.equal(old, 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256')
  await assert.rejects(
    ask(port, { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384' }),
  )
})

test('only the chosen key exchange groups are taken', async (t) => {
  const { port } = await startServer(t, tlsOf(serverCertificate, { groups: ['secp384r1'] }))
  await ask(port, { ecdhCurve: 'P-384' })
  await assert.rejects(ask(port, { ecdhCurve: 'X25519' }))
})

const pkcs1 = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
  type: 'pkcs1',
  format: 'pem',
}) as string

const refusals: [string, Partial<ServerTls>, RegExp][] = [
  [
    'a key of another certificate',
    { privateKey: { pem: clientCertificate.key } },
    /does not belong/,
  ],
  ['a key that is not PKCS#8', { privateKey: { pem: pkcs1 } }, /PKCS#8.*openssl pkcs8/],
  ['a certificate that is none', { certChain: { pem: 'nonsense' } }, /cannot be read/],
  [
    'a file that is not there',
    { certChain: { path: 'missing.pem' } },
    /missing\.pem cannot be read/,
  ],
  [
    'an unknown cipher suite',
    { ciphers: ['TLS_NULL_WITH_NOTHING'] },
    /TLS_NULL_WITH_NOTHING is not known/,
  ],
  ['an unknown group', { groups: ['no-such-group'] }, /cannot be used/],
]

for (const [name, changes, message] of refusals) {
  test(`refused at the start: ${name}`, () => {
    assert.throws(
      () => readTlsOptions(tlsOf(serverCertificate, changes)),
      (error) => error instanceof TlsError && message.test(error.message),
    )
  })
}

test('refused at the start: an expired certificate', () => {
  const expired = makeCertificate({ name: 'server', issuer: authority, validForDays: -1 })
  assert.throws(() => readTlsOptions(tlsOf(expired)), /expired on .* renew it/)
})

test('renewed files are taken over without a restart, unusable ones are not', async (t) => {
  const directory = newDirectory(t)
  const paths = { cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') }
  let written = Date.now() / 1000
  const write = (certificate: Certificate, cert = certificate.cert) => {
    writeFileSync(paths.cert, cert)
    writeFileSync(paths.key, certificate.key)
    written += 10
    for (const path of Object.values(paths)) utimesSync(path, written, written)
  }
  write(serverCertificate)
  const tls = tlsOf(serverCertificate, {
    certChain: { path: paths.cert },
    privateKey: { path: paths.key },
  })
  const { server, port } = await startServer(t, tls)
  const logged: string[] = []
  const log = { info: () => {}, error: (record: object) => logged.push(JSON.stringify(record)) }
  const certificates = followCertificates(server, tls, log)
  t.after(() => certificates.close())
  const serialOf = async () => {
    let serial = ''
    await ask(port, {
      checkServerIdentity(_host, peer) {
        serial = peer.serialNumber
        return undefined
      },
    })
    return serial
  }
  const before = await serialOf()
  assert.equal(certificates.reload(), false)
  write(makeCertificate({ name: 'server', issuer: authority }))
  assert.equal(certificates.reload(), true)
  const renewed = await serialOf()
  assert.notEqual(renewed, before)
  write(serverCertificate, 'nonsense')
  assert.equal(certificates.reload(), false)
  assert.equal(logged.length, 1)
  assert.equal(await serialOf(), renewed)
})
