import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PARTICIPANT_APP } from './canton-keys.ts'
import { parseJvmOptions } from './jvm-options.ts'
import { isWritten, type RuleContext, subjectAt, subjectOf, tell } from './rule-context.ts'
import type { Setting } from './settings.ts'

/** A chain has a few kilobytes, a collection of all public roots about 200. */
const PEM_BYTES_MAX = 2 * 1024 * 1024
const WARN_BEFORE_EXPIRY_MS = 30 * 86_400_000
const PEM_MARK = '-----BEGIN '

const TLS_APIS = ['ledger-api', 'admin-api'] as const

/** Names of cipher suites: all of TLS 1.3, and those of TLS 1.2, which name a key exchange too. */
const CIPHER_NAME =
  /^TLS_(?:AES_(?:128|256)_GCM_SHA(?:256|384)|AES_128_CCM(?:_8)?_SHA256|CHACHA20_POLY1305_SHA256|[A-Z0-9_]+_WITH_[A-Z0-9_]+)$/

export function checkTls(context: RuleContext): void {
  for (const api of TLS_APIS) {
    const block = `${PARTICIPANT_APP}.${api}.tls`
    if (context.settings.placeOf('canton', block) === undefined) continue
    checkPair(context, block)
    checkClientAuth(context, block)
    checkPair(context, `${block}.client-auth.admin-client`)
    checkCertificates(
      context,
      context.settings.get('canton', `${block}.trust-collection-file`),
      false,
    )
    checkCiphers(context, block)
  }
  const groups = namedGroups(context)
  for (const app of ['participant', 'validator'] as const) {
    const options = context.settings.get(app, 'additionalJvmOptions')
    if (options !== undefined && groups?.some((group) => !/^[\w-]+$/.test(group)) === true) {
      tell(context, 'error', {
        rule: 'named-groups',
        about: subjectOf(options),
        message:
          'additionalJvmOptions sets jdk.tls.namedGroups wrongly: names of groups are separated by commas, for example x25519,secp256r1.',
      })
      return
    }
  }
}

/** The key exchanges of TLS 1.3, from the options of the participant, else of the validator. */
export function namedGroups({ settings }: Pick<RuleContext, 'settings'>): string[] | undefined {
  for (const app of ['participant', 'validator'] as const) {
    const options = parseJvmOptions(settings.value<string>(app, 'additionalJvmOptions') ?? '')
    const groups = options.get('jdk.tls.namedGroups')
    if (groups !== undefined)
      return groups
        .split(',')
        .map((group) => group.trim())
        .filter((group) => group !== '')
  }
  return undefined
}

function checkClientAuth(context: RuleContext, block: string): void {
  const type = context.settings.get('canton', `${block}.client-auth.type`)
  if (type?.value !== 'require') return
  for (const name of ['cert-chain-file', 'private-key-file']) {
    const path = `${block}.client-auth.admin-client.${name}`
    if (isWritten(context, 'canton', path)) continue
    tell(context, 'error', {
      rule: 'tls',
      about: { ...subjectOf(type), found: undefined, key: path, path },
      message: `${path} is missing: client-auth.type = require needs a certificate and a key for the admin client.`,
      hint: 'client-auth { type = require, admin-client { cert-chain-file = "tls/admin-client.crt", private-key-file = "tls/admin-client.pem" } }',
    })
  }
  if (!isWritten(context, 'canton', `${block}.trust-collection-file`)) {
    tell(context, 'warning', {
      rule: 'tls',
      about: { ...subjectOf(type), found: undefined, path: `${block}.trust-collection-file` },
      message: `${block}.trust-collection-file is missing, so only clients with certificates of public authorities are let in.`,
    })
  }
}

function checkCiphers(context: RuleContext, block: string): void {
  const ciphers = context.settings.get('canton', `${block}.ciphers`)
  if (ciphers === undefined) return
  const list = ciphers.value as string[]
  const wrong = list.find((name) => !CIPHER_NAME.test(name))
  if (wrong !== undefined) {
    tell(context, 'error', {
      rule: 'tls',
      about: subjectOf(ciphers),
      message: `${ciphers.path} names ${JSON.stringify(wrong)}, which is not the name of a cipher suite such as TLS_AES_256_GCM_SHA384.`,
    })
  } else if (
    list.length === 0 &&
    !context.problems.some(({ path }) => path.startsWith(ciphers.path))
  ) {
    tell(context, 'error', {
      rule: 'tls',
      about: subjectOf(ciphers),
      message: `${ciphers.path} is empty, so no client could connect.`,
    })
  }
}

function checkPair(context: RuleContext, block: string): void {
  const { settings } = context
  const chain = settings.get('canton', `${block}.cert-chain-file`)
  const key = settings.get('canton', `${block}.private-key-file`)
  const isServer = !block.endsWith('admin-client')
  const certificate = checkCertificates(context, chain, isServer)
  const keyText = key === undefined ? undefined : readPem(context, key, false)
  if (key !== undefined && keyText !== undefined && certificate !== undefined) {
    checkKey(context, key, keyText, certificate)
  } else if (key !== undefined && keyText !== undefined) {
    checkKey(context, key, keyText, undefined)
  }
  if ((chain === undefined) !== (key === undefined) && !isServer) {
    const name = chain === undefined ? 'cert-chain-file' : 'private-key-file'
    const isTold = context.problems.some(({ path }) => path === `${block}.${name}`)
    if (isTold || isWritten(context, 'canton', `${block}.${name}`)) return
    tell(context, 'error', {
      rule: 'tls',
      about: { ...subjectAt(context, 'canton', `${block}.${name}`), place: (chain ?? key)?.place },
      message: `${block}.${name} is missing: a certificate and its key belong together.`,
    })
  }
}

function checkKey(
  context: RuleContext,
  setting: Setting,
  text: string,
  certificate: X509Certificate | undefined,
): void {
  const fail = (reason: string, hint?: string) =>
    tell(context, 'error', {
      rule: 'tls-key',
      about: subjectOf(setting),
      message: `${setting.path} ${reason}.`,
      ...(hint === undefined ? {} : { hint }),
    })
  if (text.includes('BEGIN ENCRYPTED PRIVATE KEY')) {
    fail(
      'has a password, and a key without one is needed',
      'openssl pkcs8 -in key.pem -topk8 -nocrypt -out key-pkcs8.pem',
    )
  } else if (!text.includes('BEGIN PRIVATE KEY')) {
    fail(
      'is not a private key in PKCS#8 PEM form',
      'openssl pkcs8 -in key.pem -topk8 -nocrypt -out key-pkcs8.pem',
    )
  } else {
    try {
      const key = createPrivateKey(text)
      if (certificate?.checkPrivateKey(key) === false)
        fail('does not belong to the certificate beside it')
    } catch {
      fail('cannot be read as a private key')
    }
  }
}

/** The first certificate of a chain or a collection; a server refuses to start on one that expired. */
function checkCertificates(
  context: RuleContext,
  setting: Setting | undefined,
  mustBeValid: boolean,
): X509Certificate | undefined {
  if (setting === undefined) return undefined
  const text = readPem(context, setting, true)
  if (text === undefined) return undefined
  try {
    const certificate = new X509Certificate(text)
    const end = certificate.validToDate.getTime()
    const isExpired = end < Date.now()
    if (isExpired || end < Date.now() + WARN_BEFORE_EXPIRY_MS) {
      tell(context, isExpired && mustBeValid ? 'error' : 'warning', {
        rule: 'tls-expiry',
        about: subjectOf(setting),
        message: `The certificate of ${setting.path} ${isExpired ? 'expired' : 'expires'} on ${certificate.validTo}. Renew it.`,
      })
    }
    return certificate
  } catch {
    tell(context, 'error', {
      rule: 'tls-certificate',
      about: subjectOf(setting),
      message: `${setting.path} is not a certificate in PEM form.`,
    })
    return undefined
  }
}

/** A path, or the PEM text itself where the reference allows it. */
function readPem(context: RuleContext, setting: Setting, inline: boolean): string | undefined {
  const value = String(setting.value)
  if (inline && value.includes(PEM_MARK)) return value
  const path = resolvePath(context.sources.request, value)
  try {
    const stat = statSync(path)
    if (stat.isFile() && stat.size <= PEM_BYTES_MAX) return readFileSync(path, 'utf8')
  } catch {
    // Told below, like everything else that is no readable file.
  }
  tell(context, 'error', {
    rule: 'tls-file',
    about: subjectOf(setting),
    message: `${setting.path} names a file that does not exist or cannot be read: ${value.includes(PEM_MARK) ? 'a text, not a path' : value}.`,
  })
  return undefined
}

/** Paths count from the working directory, and where nothing is there, from the folder of the validator values. */
export function resolvePath(request: RuleContext['sources']['request'], path: string): string {
  const here = resolve(request.cwd, path)
  const values = request.validatorValues?.[0] ?? request.participantValues?.[0]
  if (values === undefined || existsSync(here)) return here
  const beside = resolve(request.cwd, dirname(values), path)
  return existsSync(beside) ? beside : here
}
