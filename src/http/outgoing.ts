import { Agent, type Dispatcher, ProxyAgent, fetch as undiciFetch } from 'undici'
import { type Exchange, exchangeThrough } from './exchange.ts'

export type Proxy = {
  readonly host: string
  readonly port: number
  /** Patterns of hosts that are reached directly: case-insensitive, `*` is any text. */
  readonly bypass: readonly string[]
}

/** The one way out: every call to another server goes through this. */
export type Outgoing = {
  fetch: typeof globalThis.fetch
  /** For large answers. */
  exchange: Exchange
  close(): Promise<void>
}

const CONNECT_TIMEOUT_MS = 10_000

/** Calls go through the proxy with CONNECT, but for the hosts that bypass it. */
export function createOutgoing(proxy: Proxy | undefined): Outgoing {
  const direct = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } })
  const tunnel =
    proxy === undefined
      ? direct
      : new ProxyAgent({
          uri: `http://${proxy.host}:${proxy.port}`,
          connect: { timeout: CONNECT_TIMEOUT_MS },
        })
  const patterns = (proxy?.bypass ?? []).map(bypassPattern)
  const routeOf = (host: string): Dispatcher =>
    patterns.some((pattern) => pattern.test(host)) ? direct : tunnel
  return {
    fetch: ((input: string | URL, init: object = {}) =>
      undiciFetch(input, {
        ...init,
        dispatcher: routeOf(new URL(input).hostname),
      })) as typeof globalThis.fetch,
    exchange: exchangeThrough(routeOf),
    async close() {
      await Promise.all([...new Set([direct, tunnel])].map((agent) => agent.destroy()))
    },
  }
}

function bypassPattern(pattern: string): RegExp {
  const text = pattern
    .split('*')
    .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*')
  return new RegExp(`^${text}$`, 'i')
}
