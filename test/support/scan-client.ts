import { scanOpenApi } from '../../src/scan/openapi.ts'
import { parseJsonExactly } from '../../src/values/json.ts'
import { answerChecker, type OpenApiDocument } from './openapi.ts'

export type ScanAnswer = {
  status: number
  headers: Headers
  text: string
  /** The body as JSON, with exact integers. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever it expects to be there
  body: any
}

export type ScanClient = {
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<ScanAnswer>
  get(path: string, headers?: Record<string, string>): Promise<ScanAnswer>
  request(method: string, path: string, init?: RequestInit): Promise<ScanAnswer>
}

/** Asks a node's scan API, and holds every answer against the OpenAPI document. */
export function createScanClient(scanUrl: string): ScanClient {
  const check = answerChecker(scanOpenApi('test') as unknown as OpenApiDocument)
  async function request(method: string, path: string, init: RequestInit = {}) {
    const response = await fetch(`${scanUrl}${path}`, { ...init, method })
    const text = await response.text()
    const type = response.headers.get('content-type') ?? ''
    const { status, headers } = response
    if (method !== 'HEAD' && method !== 'OPTIONS') {
      check({ method, path: path.split('?')[0] as string, status, body: text, type })
    }
    const body = type.startsWith('application/json') && text !== '' ? parseJsonExactly(text) : text
    return { status, headers, text, body }
  }
  return {
    request,
    get: (path, headers = {}) => request('GET', path, { headers }),
    post: (path, body, headers = {}) =>
      request('POST', path, {
        headers,
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      } as RequestInit),
  }
}
