// The scan API of a history as a node serves it, alone: measured and logged as in a node, or neither.
// Two such programs differ in nothing else, so the one tells what the other's metrics and logging cost.
//
//   node scan-server.ts FILE CACHE_BYTES measured|bare

import type { FastifyBaseLogger } from 'fastify'
import { createLogs } from '../src/base/log.ts'
import { openDb } from '../src/db/open.ts'
import { openHistory } from '../src/history/history.ts'
import { methodNotAllowed, plainErrors } from '../src/http/plain-error.ts'
import { measureRequests, operationIds } from '../src/http/request-metrics.ts'
import { createServer, listen, registerRoutes } from '../src/http/server.ts'
import { measureAppends, measureDb, measureHistory, measurePages } from '../src/measure.ts'
import { appLabels } from '../src/metrics/app-labels.ts'
import { startProcessMetrics } from '../src/metrics/process.ts'
import { createRegistry } from '../src/metrics/registry.ts'
import { metricsRoutes } from '../src/metrics/routes.ts'
import { scanOpenApi } from '../src/scan/openapi.ts'
import { scanRoutes } from '../src/scan/routes.ts'

const PREFIX = '/api/scan'
const VERSION = 'bench'

const silent = () => {}
const noLogger: FastifyBaseLogger = {
  level: 'silent',
  ...{ fatal: silent, error: silent, warn: silent, info: silent, debug: silent, trace: silent },
  ...{ silent, child: () => noLogger },
}

async function main(file: string, cacheBytes: number, isMeasured: boolean): Promise<void> {
  const registry = createRegistry({ nativeHistograms: true })
  const scan = registry.with(appLabels.scan)
  if (isMeasured) startProcessMetrics({ registry, build: { version: VERSION, commit: VERSION } })
  const opened = await openDb({ engine: 'sqlite', path: file })
  const db = isMeasured ? measureDb(registry, opened, 'app') : opened
  const onAppend = isMeasured ? { onAppend: measureAppends(scan) } : {}
  const history = await openHistory({ db, cacheBytes, ...onAppend })
  if (isMeasured) measureHistory(scan, { history, isStalled: () => false })
  const logs = createLogs({ level: 'info', pretty: false })
  const app = createServer({
    logger: isMeasured ? logs.named('annals.scan') : noLogger,
    errors: plainErrors,
  })
  if (isMeasured) {
    const operations = operationIds(scanOpenApi(VERSION), PREFIX)
    measureRequests(app, { registry: scan, service: 'scan', operations })
  }
  await registerRoutes(app, {
    prefix: PREFIX,
    routes: (scope) =>
      scanRoutes(scope, {
        history,
        pageSizeMax: 2_147_483_647,
        compressedCacheBytes: cacheBytes / 4,
        softwareVersion: VERSION,
        listScans: () => [],
        ...(isMeasured ? { onPage: measurePages(scan) } : {}),
      }),
    methodNotAllowed,
  })
  await app.register(metricsRoutes(registry))
  const url = await listen(app, { host: '127.0.0.1', port: 0 })
  process.once('SIGTERM', async () => {
    await app.close()
    await opened.close()
    process.exit()
  })
  process.stdout.write(`${JSON.stringify({ scanUrl: `${url}${PREFIX}` })}\n`)
}

const [, , file = '', cacheBytes, mode] = process.argv
await main(file, Number(cacheBytes), mode === 'measured')
