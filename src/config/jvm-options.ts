import { hostName } from './kinds.ts'

/** Bypass patterns and options come from one line of a file; more than this is a mistake. */
const OPTIONS_MAX = 1000

/** `-Dname=value` options; others are passed over, as a JVM would take them for itself. */
export function parseJvmOptions(line: string): ReadonlyMap<string, string> {
  const properties = new Map<string, string>()
  const words = line.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []
  for (const word of words.slice(0, OPTIONS_MAX)) {
    const bare = word.replace(/["']/g, '')
    const match = /^-D([^=]+)(?:=(.*))?$/.exec(bare)
    if (match !== null) properties.set(match[1] as string, match[2] ?? '')
  }
  return properties
}

export type ProxySettings = {
  readonly host: string
  readonly port: number
  /** Patterns of hosts that are reached directly: case-insensitive, `*` is any text. */
  readonly bypass: readonly string[]
}

export type ProxyFault = { readonly reason: string; readonly property: string }
export type ProxyReading =
  | { readonly proxy: ProxySettings | undefined }
  | { readonly faults: readonly ProxyFault[] }

/** The `http.` pair wins when it is whole, then the `https.` pair, as in the deployed applications. */
export function proxyOf(properties: ReadonlyMap<string, string>): ProxyReading {
  const faults: ProxyFault[] = ['http', 'https']
    .flatMap((scheme) => [`${scheme}.proxyUser`, `${scheme}.proxyPassword`])
    .filter((property) => properties.has(property))
    .map((property) => ({ reason: 'proxy authentication is unsupported', property }))
  const address = addressOf(properties)
  if (address !== undefined && 'reason' in address) faults.push(address)
  if (faults.length > 0) return { faults }
  if (address === undefined || 'reason' in address) return { proxy: undefined }
  return { proxy: { ...address, bypass: bypassOf(properties) } }
}

function addressOf(
  properties: ReadonlyMap<string, string>,
): { host: string; port: number } | ProxyFault | undefined {
  for (const scheme of ['http', 'https']) {
    const host = properties.get(`${scheme}.proxyHost`)
    const port = properties.get(`${scheme}.proxyPort`)
    if (host === undefined && port === undefined) continue
    if (host === undefined || host === '')
      return { reason: 'a port without a host sets no proxy', property: `${scheme}.proxyHost` }
    if ('reason' in hostName.fromText(host))
      return { reason: 'the host must have no scheme and no port', property: `${scheme}.proxyHost` }
    if (port === undefined)
      return { reason: 'a host without a port sets no proxy', property: `${scheme}.proxyPort` }
    if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65535) {
      return {
        reason: 'the port must be an integer from 1 to 65535',
        property: `${scheme}.proxyPort`,
      }
    }
    return { host, port: Number(port) }
  }
  return undefined
}

function bypassOf(properties: ReadonlyMap<string, string>): string[] {
  return ['http.nonProxyHosts', 'https.nonProxyHosts']
    .flatMap((name) => (properties.get(name) ?? '').split('|'))
    .map((pattern) => pattern.trim())
    .filter((pattern, index, all) => pattern !== '' && all.indexOf(pattern) === index)
}
