import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { Cleanup } from './engines.ts'

/** What we use of `oidc-provider`, which comes without types. */
type Provider = { callback(): Parameters<typeof createServer>[1] }
type ProviderClass = new (issuer: string, configuration: object) => Provider

export type OidcServer = {
  issuer: string
  jwksUrl: string
  /** A token by client credentials, as official clients ask for it. */
  token(): Promise<string>
  stop(): Promise<void>
  /** Starts again at the same address, with a new key. */
  startWithNewKey(): Promise<void>
}

/** What the client proves itself with. */
export const CLIENT_SECRET = 'a-secret-that-only-this-test-knows'

/** A real OpenID Connect provider on loopback with one confidential client. */
export async function startOidcServer(
  t: Cleanup,
  options: { clientId: string; audience: string; ttlSeconds?: number },
): Promise<OidcServer> {
  const { default: OidcProvider } = (await import('oidc-provider' as string)) as {
    default: ProviderClass
  }
  const clientSecret = CLIENT_SECRET
  let server: Server | undefined
  let port = 0
  let generation = 0

  async function start(): Promise<void> {
    generation += 1
    const { privateKey } = await generateKeyPair('RS256', { extractable: true })
    const jwk = { ...(await exportJWK(privateKey)), kid: `key-${generation}`, use: 'sig' }
    const created = createServer()
    await new Promise<void>((resolve) => created.listen(port, '127.0.0.1', resolve))
    port = (created.address() as AddressInfo).port
    const provider = new OidcProvider(issuer(), configuration(jwk))
    const callback = provider.callback()
    if (callback !== undefined) created.on('request', callback)
    server = created
  }
  async function stop(): Promise<void> {
    const stopped = server
    if (stopped === undefined) return
    server = undefined
    stopped.closeAllConnections()
    await new Promise((resolve) => stopped.close(resolve))
  }
  const issuer = () => `http://127.0.0.1:${port}`
  const configuration = (jwk: object) => ({
    jwks: { keys: [jwk] },
    clients: [
      {
        client_id: options.clientId,
        client_secret: clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ['daml_ledger_api'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => options.audience,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'daml_ledger_api',
          audience: options.audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: options.ttlSeconds ?? 3600,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })

  await start()
  t.after(stop)
  return {
    issuer: issuer(),
    jwksUrl: `${issuer()}/jwks`,
    async token() {
      const discovery = await fetch(`${issuer()}/.well-known/openid-configuration`)
      const { token_endpoint } = (await discovery.json()) as { token_endpoint: string }
      const response = await fetch(token_endpoint, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`${options.clientId}:${clientSecret}`)}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          scope: 'daml_ledger_api',
          audience: options.audience,
        }),
      })
      const { access_token } = (await response.json()) as { access_token: string }
      return access_token
    },
    stop,
    startWithNewKey: start,
  }
}
