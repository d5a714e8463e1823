// The scan API of a data directory as a node serves it, but with neither metrics nor logging: the
// reference for what those cost. A program of the bench, not a way to run the product.

import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { openDb } from '../src/db/open.ts'
import { openHistory } from '../src/history/history.ts'
import { methodNotAllowed, plainErrors } from '../src/http/plain-error.ts'
import { createServer, listen, registerRoutes } from '../src/http/server.ts'
import { scanRoutes } from '../src/scan/routes.ts'

const silent = () => {}
const noLogger: FastifyBaseLogger = {
  level: 'silent',
  ...{ fatal: silent, error: silent, warn: silent, info: silent, debug: silent, trace: silent },
  ...{ silent, child: () => noLogger },
}

async function main(file: string, cacheBytes: number): Promise<void> {
  const db = await openDb({ engine: 'sqlite', path: file })
  const history = await openHistory({ db, cacheBytes })
  const app: FastifyInstance = createServer({
    logger: noLogger,
    errors: plainErrors,
  })
  // A node answers with the same header.
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('access-control-allow-origin', '*')
    done()
  })
  await registerRoutes(app, {
    prefix: '/api/scan',
    routes: (scope) =>
      scanRoutes(scope, {
        history,
        pageSizeMax: 2_147_483_647,
        compressedCacheBytes: cacheBytes / 4,
        softwareVersion: 'bench',
        listScans: () => [],
      }),
    methodNotAllowed,
  })
  const url = await listen(app, { host: '127.0.0.1', port: 0 })
  process.once('SIGTERM', async () => {
    await app.close()
    await db.close()
  })
  process.stdout.write(`${JSON.stringify({ scanUrl: `${url}/api/scan` })}\n`)
}

await main(process.argv[2] as string, Number(process.argv[3]))
