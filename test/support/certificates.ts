import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** A certificate of the test's own, in PEM, with its key in PKCS#8 PEM. */
export type Certificate = { cert: string; key: string; name: string; privateKey: KeyObject }

const DAY_MS = 86_400_000

/** Signed by `issuer`, or by itself; for localhost and 127.0.0.1. */
export function makeCertificate(options: {
  name: string
  issuer?: Certificate
  isAuthority?: boolean
  validForDays?: number
}): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { name, issuer } = options
  const until = new Date(Date.now() + (options.validForDays ?? 30) * DAY_MS)
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    distinguishedName(issuer?.name ?? name),
    sequence(time(new Date(Date.now() - 60 * DAY_MS)), time(until)),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...extensions(options.isAuthority ?? false))),
  )
  const signature = sign('sha256', body, issuer?.privateKey ?? privateKey)
  const certificate = sequence(body, ECDSA_WITH_SHA256, bitString(signature))
  return {
    name,
    privateKey,
    cert: pem('CERTIFICATE', certificate),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

function extensions(isAuthority: boolean): Buffer[] {
  const constraints = sequence(...(isAuthority ? [tlv(0x01, Buffer.from([0xff]))] : []))
  const names = sequence(
    tlv(0x82, Buffer.from('localhost')),
    tlv(0x87, Buffer.from([127, 0, 0, 1])),
  )
  return [
    sequence(oid(0x55, 0x1d, 0x13), tlv(0x01, Buffer.from([0xff])), octets(constraints)),
    sequence(oid(0x55, 0x1d, 0x11), octets(names)),
  ]
}

/** Distinguished Encoding Rules: tag, length, value. */
function tlv(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts)
  const { length } = value
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), value])
}

const sequence = (...parts: Buffer[]): Buffer => tlv(0x30, ...parts)
const integer = (value: Buffer): Buffer => tlv(0x02, value)
const octets = (value: Buffer): Buffer => tlv(0x04, value)
const bitString = (value: Buffer): Buffer => tlv(0x03, Buffer.from([0]), value)
const oid = (...bytes: number[]): Buffer => tlv(0x06, Buffer.from(bytes))
const explicit = (number: number, value: Buffer): Buffer => tlv(0xa0 + number, value)
const ECDSA_WITH_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))

function distinguishedName(name: string): Buffer {
  return sequence(tlv(0x31, sequence(oid(0x55, 0x04, 0x03), tlv(0x0c, Buffer.from(name)))))
}

/** GeneralizedTime, YYYYMMDDHHMMSSZ. */
function time(date: Date): Buffer {
  return tlv(0x18, Buffer.from(`${date.toISOString().slice(0, 19).replaceAll(/\D/g, '')}Z`))
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').replaceAll(/.{64}(?!$)/g, '$&\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}
