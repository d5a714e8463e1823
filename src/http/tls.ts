import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import {
  createSecureContext,
  getCiphers,
  type SecureContextOptions,
  type Server,
  type TlsOptions,
} from 'node:tls'

/** A PEM text, or the file that holds one. */
export type Pem = { readonly path: string } | { readonly pem: string }

export type ServerTls = {
  readonly certChain: Pem
  readonly privateKey: Pem
  readonly trustCollection: Pem | undefined
  readonly clientAuth: 'none' | 'optional' | 'require'
  readonly minimumVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly ciphers: readonly string[] | undefined
  readonly groups: readonly string[] | undefined
}

/** Files that cannot serve TLS; the message is for the operator. */
export class TlsError extends Error {
  override name = 'TlsError'
}

/** Reads and checks the files, so that a bad pair is a sentence at the start and not a failed handshake later. */
export function readTlsOptions(tls: ServerTls): TlsOptions {
  const cert = readPem(tls.certChain, 'certificate chain')
  const key = readPem(tls.privateKey, 'private key')
  checkPair(cert, key, tls)
  const options: TlsOptions & SecureContextOptions = {
    cert,
    key,
    minVersion: tls.minimumVersion,
    requestCert: tls.clientAuth !== 'none',
    rejectUnauthorized: tls.clientAuth === 'require',
  }
  if (tls.trustCollection !== undefined)
    options.ca = readPem(tls.trustCollection, 'trust collection')
  if (tls.ciphers !== undefined) options.ciphers = readCiphers(tls.ciphers)
  if (tls.groups !== undefined) options.ecdhCurve = tls.groups.map(groupName).join(':')
  try {
    createSecureContext(options)
  } catch (error) {
    throw new TlsError(
      `The TLS settings cannot be used: ${(error as Error).message}. Check the files and the named groups.`,
    )
  }
  return options
}

/** An optional certificate may be missing, but one that nobody vouches for is refused. */
export function refuseUntrustedClients(server: Server): void {
  server.on('secureConnection', (socket) => {
    const hasCertificate = Object.keys(socket.getPeerCertificate() ?? {}).length > 0
    if (hasCertificate && !socket.authorized) socket.destroy()
  })
}

export type Certificates = {
  /** Takes over renewed files; false when they are the same or cannot be used, which is logged. */
  reload(): boolean
  close(): void
}

/** Certificates are renewed weeks before they expire; this is often enough. */
const LOOK_INTERVAL_MS = 10_000

/** Follows the files of a running server, so that a renewed certificate needs no restart. */
export function followCertificates(server: Server, tls: ServerTls, log: Log): Certificates {
  let version = versionOf(tls)
  const reload = () => {
    try {
      const found = versionOf(tls)
      if (found === version) return false
      server.setSecureContext(readTlsOptions(tls))
      version = found
      log.info({}, 'the TLS certificates were read again')
      return true
    } catch (error) {
      log.error(
        { reason: (error as Error).message },
        'renewed TLS certificates cannot be used; the old ones stay',
      )
      return false
    }
  }
  const timer = setInterval(reload, LOOK_INTERVAL_MS).unref()
  return { reload, close: () => clearInterval(timer) }
}

type Log = Record<'info' | 'error', (record: object, message: string) => void>

/** When the files were last written. */
function versionOf(tls: ServerTls): string {
  return [tls.certChain, tls.privateKey, tls.trustCollection]
    .map((pem) => (pem !== undefined && 'path' in pem ? statSync(pem.path).mtimeMs : 0))
    .join(' ')
}

function readPem(pem: Pem, what: string): string {
  if ('pem' in pem) return pem.pem
  try {
    return readFileSync(pem.path, 'utf8')
  } catch (error) {
    throw new TlsError(`The ${what} ${pem.path} cannot be read: ${(error as Error).message}.`)
  }
}

function checkPair(cert: string, key: string, tls: ServerTls): void {
  const certName = nameOf(tls.certChain)
  const keyName = nameOf(tls.privateKey)
  if (!/-----BEGIN PRIVATE KEY-----/.test(key)) {
    throw new TlsError(
      `${keyName} is not a private key in PKCS#8 PEM without a password (it must begin with "-----BEGIN PRIVATE KEY-----"). Convert it with: openssl pkcs8 -topk8 -nocrypt -in old.key -out new.key`,
    )
  }
  let certificate: X509Certificate
  let isPair: boolean
  try {
    certificate = new X509Certificate(cert)
    isPair = certificate.checkPrivateKey(createPrivateKey(key))
  } catch (error) {
    throw new TlsError(
      `${certName} and ${keyName} cannot be read as a certificate and its key: ${(error as Error).message}.`,
    )
  }
  if (!isPair)
    throw new TlsError(`The private key ${keyName} does not belong to the certificate ${certName}.`)
  if (Date.parse(certificate.validTo) < Date.now()) {
    throw new TlsError(`The certificate ${certName} expired on ${certificate.validTo}; renew it.`)
  }
}

function nameOf(pem: Pem): string {
  return 'path' in pem ? pem.path : 'the configured text'
}

/** Suites have one name in the standard and, before TLS 1.3, another in OpenSSL. */
function readCiphers(names: readonly string[]): string {
  const known = new Set(getCiphers().map((name) => name.toUpperCase()))
  return names
    .map((name) => {
      const translated =
        name.startsWith('TLS_') && name.includes('_WITH_') ? openSslName(name) : name
      if (!known.has(translated.toUpperCase())) {
        throw new TlsError(
          `The cipher suite ${name} is not known to this version of OpenSSL; leave it out.`,
        )
      }
      return translated
    })
    .join(':')
}

/** TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 → ECDHE-RSA-AES128-GCM-SHA256 */
function openSslName(name: string): string {
  const [exchange = '', cipher = ''] = name.slice('TLS_'.length).split('_WITH_')
  const short = cipher
    .replace(/AES_(\d+)/, 'AES$1')
    .replace('CHACHA20_POLY1305_SHA256', 'CHACHA20_POLY1305')
    .replaceAll('_', '-')
  return `${exchange.replaceAll('_', '-')}-${short}`.replace(/^RSA-/, '')
}

/** The runtime property uses the names of the standard; OpenSSL knows some by older ones. */
function groupName(name: string): string {
  return GROUP_NAMES[name.toLowerCase()] ?? name
}

const GROUP_NAMES: Record<string, string> = {
  secp256r1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
  x25519: 'X25519',
  x448: 'X448',
}
