import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createByteCache } from '../base/byte-cache.ts'
import { readImportUpdates, readMigrationInfo, readUpdatesBefore } from '../history/backfill.ts'
import type { Encoding } from '../history/encode.ts'
import type { History } from '../history/history.ts'
import { findTransaction } from '../history/lookup.ts'
import type { PageRequest } from '../history/pages.ts'
import type { Version } from '../history/versions.ts'
import { chooseCoding } from '../http/content-coding.ts'
import { badRequest, notFound } from '../http/plain-error.ts'
import { printShortest } from '../values/instant.ts'
import { networkRoutes, type ScanNetwork } from './network-routes.ts'
import { scanOpenApi } from './openapi.ts'
import type { ScanGroup } from './own-scan.ts'
import { type CompressedFrames, createPageBody } from './page-body.ts'
import {
  readBody,
  readCount,
  readEncoding,
  readInt64,
  readPageRequest,
  readString,
  readTime,
} from './requests.ts'
import { type SentPage, sendPage } from './send-page.ts'

export type ScanOptions = {
  history: History
  /** Larger pages are refused. */
  pageSizeMax: number
  /** Compressed frames kept in memory. */
  compressedCacheBytes: number
  softwareVersion: string
  /** This and other scans of the network, for /v0/scans. */
  listScans(): ScanGroup[]
  /** Undefined when the node has no ledger of its own. */
  network?: ScanNetwork | undefined
  onPage?: (request: PageRequest, sent: SentPage) => void
}

/** Ids and hashes that deployed scans could not look up either. */
const UPDATE_ID_LENGTH_MAX = 2066
const HASH_HEX_LENGTH_MAX = 2048
/** As on deployed scans; the answers of these are not streamed. */
const BACKFILL_COUNT_MAX = 1000

/** The Scan protocol; register under `/api/scan`. */
export async function scanRoutes(app: FastifyInstance, options: ScanOptions): Promise<void> {
  const { history } = options
  const frames: CompressedFrames = createByteCache(options.compressedCacheBytes)
  const document = scanOpenApi(options.softwareVersion)

  for (const version of [0, 1, 2] as const) {
    app.post(`/v${version}/updates`, (request, reply) =>
      servePage({ ...options, frames, version }, request, reply),
    )
    app.get(`/v${version}/updates/:update_id`, async (request, reply) => {
      const { update_id: id } = request.params as { update_id: string }
      if (id.length > UPDATE_ID_LENGTH_MAX) {
        throw badRequest(`update_id must not be longer than ${UPDATE_ID_LENGTH_MAX} characters.`)
      }
      const encoding = readQueryEncoding(request, version)
      const found = await findTransaction(history, { kind: 'id', text: id }, { version, encoding })
      if (found === undefined) throw notFound(`Transaction with id ${id} not found.`)
      return deprecate(reply, version, `/api/scan/v2/updates/${encodeURIComponent(id)}`).send(found)
    })
  }

  app.get('/v2/updates/hash/:hash', async (request, reply) => {
    const { hash } = request.params as { hash: string }
    if (hash.length > HASH_HEX_LENGTH_MAX) {
      throw badRequest(`hash must not be longer than ${HASH_HEX_LENGTH_MAX} digits.`)
    }
    const encoding = readQueryEncoding(request, 2)
    const key = { kind: 'hash', text: hash.toLowerCase() } as const
    const found = await findTransaction(history, key, { version: 2, encoding })
    if (found === undefined) throw notFound(`Transaction with hash ${hash} not found.`)
    return reply.type('application/json').send(found)
  })

  app.post('/v0/backfilling/migration-info', async (request, reply) => {
    const body = readBody(request.body as Buffer, '{"migration_id":0}')
    const migrationId = readInt64(body, 'migration_id')
    const info = await readMigrationInfo(history, migrationId)
    if (info === undefined) throw notFound(`No data for migration ${migrationId}.`)
    const ranges = info.ranges.map((range) => ({
      synchronizer_id: range.synchronizerId,
      min: printShortest(range.first),
      max: printShortest(range.last),
    }))
    const last = info.lastImportUpdateId
    return reply
      .type('application/json')
      .send(
        `{"previous_migration_id":${info.previousMigrationId ?? null}` +
          `,"record_time_range":${JSON.stringify(ranges)}` +
          `,"last_import_update_id":${last === undefined ? 'null' : JSON.stringify(last)}` +
          ',"complete":true,"import_updates_complete":true}',
      )
  })

  app.post('/v0/backfilling/updates-before', async (request, reply) => {
    const body = readBody(request.body as Buffer, UPDATES_BEFORE_EXAMPLE)
    const wanted = {
      migrationId: readInt64(body, 'migration_id'),
      synchronizerId: readSynchronizerId(readString(body, 'synchronizer_id')),
      before: readTime(body, 'before'),
      atOrAfter: body.at_or_after == null ? undefined : readTime(body, 'at_or_after'),
      count: readCount(body, 'count', BACKFILL_COUNT_MAX),
    }
    const updates: Buffer[] = []
    for await (const update of readUpdatesBefore(history, wanted)) updates.push(update)
    return reply.type('application/json').send(`{"transactions":[${updates.join(',')}]}`)
  })

  app.post('/v0/backfilling/import-updates', async (request, reply) => {
    const body = readBody(request.body as Buffer, IMPORT_UPDATES_EXAMPLE)
    const updates = await readImportUpdates(history, {
      migrationId: readInt64(body, 'migration_id'),
      afterUpdateId: readString(body, 'after_update_id'),
      limit: readCount(body, 'limit', BACKFILL_COUNT_MAX),
    })
    return reply.type('application/json').send(`{"transactions":[${updates.join(',')}]}`)
  })

  app.get('/v0/backfilling/status', async () => ({ complete: true }))
  app.get('/v0/scans', async () => ({ scans: options.listScans() }))
  app.get('/openapi.json', async () => document)
  await networkRoutes(app, options.network)
}

const UPDATES_BEFORE_EXAMPLE =
  '{"migration_id":0,"synchronizer_id":"global-domain::1220…","before":"2024-09-20T13:31:28Z","count":100}'
const IMPORT_UPDATES_EXAMPLE = '{"migration_id":0,"after_update_id":"","limit":100}'

async function servePage(
  options: ScanOptions & { frames: CompressedFrames; version: 0 | 1 | 2 },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { history, frames, version } = options
  const page = readPageRequest(request.body as Buffer | undefined, options)
  const steps = history.readPage(page)
  // Whatever fails up to here is an ordinary error answer.
  const first = await steps.next()
  const coding = chooseCoding(request.headers['accept-encoding'])
  const body = createPageBody(coding, { frames, form: `${version} ${page.encoding}` })
  deprecate(reply, version, '/api/scan/v2/updates').header('vary', 'accept-encoding')
  if (coding !== 'identity') reply.header('content-encoding', coding)
  reply.hijack()
  reply.raw.setHeaders(new Map(Object.entries(reply.getHeaders()) as [string, string][]))
  try {
    const sent = await sendPage(reply.raw, { first, steps }, body)
    options.onPage?.(page, sent)
  } catch (error) {
    request.log.error({ err: error, correlationId: request.id }, 'a page was cut off')
  }
}

/** Deprecated operations say so, and where their successor is (RFC 9745 and 8288). */
function deprecate(reply: FastifyReply, version: Version, successor: string): FastifyReply {
  reply.header('content-type', 'application/json')
  if (version === 2) return reply
  return reply
    .header('deprecation', DEPRECATED_SINCE)
    .header('link', `<${successor}>; rel="successor-version"`)
}

/** The day that release 0.4.2 of the deployed network deprecated v1, as the header's format wants it. */
const DEPRECATED_SINCE = '@1750809600'

function readQueryEncoding(request: FastifyRequest, version: Version): Encoding {
  const query = request.query as Record<string, unknown>
  const lossless = { true: true, false: false }[String(query.lossless)]
  return readEncoding({ ...query, lossless: lossless ?? query.lossless }, version)
}

function readSynchronizerId(text: string): string {
  if (/^[^:]+::[^:]+$/.test(text)) return text
  throw badRequest(
    'synchronizer_id must be a name and a fingerprint, such as global-domain::1220….',
  )
}
