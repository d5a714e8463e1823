// The other reference: nginx sending the same pages as static files, where nginx is installed.

import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { startChild } from './child.ts'
import { openConnection } from './http-connection.ts'
import type { ReferenceServer } from './raw-server.ts'

const START_TIMEOUT_MS = 5000
const RETRY_MS = 20

/** Undefined when nginx is not installed or does not start. */
export async function tryStartNginx(options: {
  directory: string
  workDirectory: string
}): Promise<ReferenceServer | undefined> {
  const { workDirectory } = options
  mkdirSync(join(workDirectory, 'temporary'), { recursive: true })
  const port = await findFreePort()
  const file = join(workDirectory, 'nginx.conf')
  writeFileSync(file, configuration({ ...options, port }))
  const child = startChild('nginx', ['-p', workDirectory, '-c', file, '-e', 'stderr'])
  const ended = child.succeed().then(
    () => true,
    () => true,
  )
  const deadline = Date.now() + START_TIMEOUT_MS
  while (Date.now() < deadline) {
    try {
      const connection = await openConnection(port)
      connection.close()
      return { port, stop: () => child.stop() }
    } catch {
      const pause = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), RETRY_MS))
      if (await Promise.race([ended, pause])) return undefined
    }
  }
  await child.stop()
  return undefined
}

/** One process, as the node is one; it runs as whoever started it, so that it may read the files. */
function configuration({
  directory,
  workDirectory,
  port,
}: {
  directory: string
  workDirectory: string
  port: number
}): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(workDirectory, 'temporary', name)};`)
    .join(' ')
  return `daemon off; master_process off; pid ${join(workDirectory, 'nginx.pid')};
events { worker_connections 256; }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
  open_file_cache max=10000 inactive=5s; open_file_cache_valid 60s; ${temporary}
  server { listen 127.0.0.1:${port}; root ${directory}; default_type application/json; }
}
`
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
