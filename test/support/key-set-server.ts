import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JWK } from 'jose'
import type { Cleanup } from './engines.ts'

/** Serves key sets under their names on a loopback port. */
export async function startKeySetServer(
  t: Cleanup,
  sets: Record<string, JWK[]>,
): Promise<(name: string) => string> {
  const server = createServer((request, response) => {
    const keys = sets[request.url?.slice(1) ?? '']
    response.writeHead(keys === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ keys }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return (name) => `http://127.0.0.1:${port}/${name}`
}
