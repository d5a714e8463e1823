import { decodeJwt } from 'jose'
import { NoServiceToken, type TokenSource } from './service-token.ts'

/** How the validator app is known to the OpenID Connect provider: the entries of the ledger API secret. */
export type ClientCredentials = {
  /** The provider's discovery document. */
  url: string
  clientId: string
  clientSecret: { reveal(): string }
  audience: string | undefined
  scope: string | undefined
}

/** Discovery documents and token answers are a few kB. */
const ANSWER_BYTES_MAX = 256 * 1024
/** For providers that do not say how long their tokens live. */
const LIFETIME_MS_DEFAULT = 5 * 60_000
const LIFETIME_SECONDS_MAX = 10 * 365 * 24 * 60 * 60

/** Tokens by the client credentials grant (RFC 6749, 4.4). */
export function clientCredentialsSource(
  credentials: ClientCredentials,
  fetch: typeof globalThis.fetch,
  now: () => number = Date.now,
): TokenSource {
  const { url, clientId, clientSecret, audience, scope } = credentials
  const { origin } = new URL(url)
  return async (signal) => {
    const discovery = await readJson(fetch(url, { signal, redirect: 'error' }), origin)
    const endpoint = discovery.token_endpoint
    if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) {
      throw new NoServiceToken(
        `${origin} has no token endpoint in its discovery document. Check the entry url of the ledger API secret.`,
      )
    }
    const form = new URLSearchParams({ grant_type: 'client_credentials' })
    if (audience !== undefined) form.set('audience', audience)
    if (scope !== undefined) form.set('scope', scope)
    const headers: Record<string, string> = { 'content-type': 'application/x-www-form-urlencoded' }
    if (takesBasic(discovery)) {
      const pair = [clientId, clientSecret.reveal()].map(formEncoded).join(':')
      headers.authorization = `Basic ${Buffer.from(pair).toString('base64')}`
    } else {
      form.set('client_id', clientId)
      form.set('client_secret', clientSecret.reveal())
    }
    const init = { method: 'POST', headers, body: form.toString(), signal }
    const answer = await readJson(fetch(endpoint, { ...init, redirect: 'error' }), origin)
    const token = answer.access_token
    if (typeof token !== 'string' || token === '') {
      throw new NoServiceToken(`${origin} answered without a token.`)
    }
    return { token, lifetimeMs: lifetimeOf(answer, token, now) }
  }
}

type Json = Record<string, unknown>

async function readJson(asked: Promise<Response>, origin: string): Promise<Json> {
  let response: Response
  let text: string
  try {
    response = await asked
    text = await readText(response)
  } catch {
    throw new NoServiceToken(`The OpenID Connect provider ${origin} does not answer.`)
  }
  const json = parse(text)
  if (response.ok && json !== undefined) return json
  const code = typeof json?.error === 'string' ? json.error.slice(0, 100) : ''
  throw new NoServiceToken(
    `The OpenID Connect provider ${origin} gives no token: status ${response.status}${code === '' ? '' : ` (${code})`}. Check client-id, client-secret, audience and scope of the ledger API secret.`,
  )
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new RangeError('the answer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): Json | undefined {
  try {
    const json = JSON.parse(text) as unknown
    return typeof json === 'object' && json !== null ? (json as Json) : undefined
  } catch {
    return undefined
  }
}

/** Without a word about it, a provider takes the header. */
function takesBasic({ token_endpoint_auth_methods_supported: methods }: Json): boolean {
  return !Array.isArray(methods) || methods.includes('client_secret_basic')
}

/** As the form encodes it, which is how RFC 6749 (2.3.1) wants both parts of the header. */
function formEncoded(text: string): string {
  return new URLSearchParams({ v: text }).toString().slice(2)
}

function lifetimeOf(answer: Json, token: string, now: () => number): number {
  const seconds = Number(answer.expires_in)
  if (seconds > 0 && seconds <= LIFETIME_SECONDS_MAX) return seconds * 1000
  try {
    const { exp } = decodeJwt(token)
    return exp === undefined ? LIFETIME_MS_DEFAULT : exp * 1000 - now()
  } catch {
    return LIFETIME_MS_DEFAULT
  }
}
