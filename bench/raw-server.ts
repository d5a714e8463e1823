// The reference: node:http with nothing behind it. It reads a request's body and sends the bytes of a
// file from memory, which it read when first asked. Run with the directory of the files.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Child, startProgram } from './child.ts'

export type ReferenceServer = { port: number; forget?(): void; stop(): Promise<void> }

export async function startRawServer(directory: string): Promise<ReferenceServer> {
  const child: Child = startProgram('./raw-server.ts', [directory])
  const { port } = JSON.parse(await child.nextLine())
  return { port, forget: () => child.send('forget'), stop: () => child.stop() }
}

function main(directory: string): void {
  const files = new Map<string, Buffer>()
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      const name = request.url as string
      let page = files.get(name)
      if (page === undefined) {
        page = readFileSync(join(directory, name))
        files.set(name, page)
      }
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': page.length })
      response.end(page)
    })
  })
  process.stdin.on('data', () => files.clear())
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
  })
}

if (import.meta.main) main(process.argv[2] as string)
