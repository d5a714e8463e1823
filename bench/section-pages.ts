// Pages per second of POST /v1/updates, next to servers that send the same bytes without making them.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { readUsage } from './child.ts'
import { type LoadResult, startLoad } from './load.ts'
import { tryStartNginx } from './nginx.ts'
import { type NodeProcess, startByCommand, startWithSmallCache } from './node-process.ts'
import { type PageRow, planPages, planRows, printPageRequest } from './pages-plan.ts'
import { type ReferenceServer, startRawServer } from './raw-server.ts'
import type { BenchOptions, Section } from './section.ts'
import { type Aim, median, type SectionReport, type Table } from './table.ts'
import type { Expected } from './workspace.ts'

const CONNECTIONS = 8
const PATH = '/v1/updates'
/** Large pages need longer for a steady rate. */
const SLICE_WEIGHT: Record<number, number> = { 1: 1, 100: 1, 1000: 2 }
/** From here on, more load could not be made, and a rate says little about the server. */
const LOAD_SHARE_LIMIT = 0.9

export const pagesSection: Section = {
  name: 'pages',
  summary: 'pages per second by size, order, cache, encoding and compression; memory under load',
  run: measurePages,
}

type Measured = { row: PageRow; results: Record<string, LoadResult[]>; bytes: number }
type Servers = { node: NodeProcess; raw: ReferenceServer; nginx: ReferenceServer | undefined }

async function measurePages(options: BenchOptions): Promise<SectionReport> {
  const { workspace } = options
  const expected = await workspace.expected()
  const dataDirectory = await workspace.dataDirectory()
  const directory = workspace.path('pages')
  mkdirSync(directory)
  await using parts = new AsyncDisposableStack()
  const raw = await startRawServer(directory)
  parts.defer(() => raw.stop())
  const nginx = await tryStartNginx({ directory, workDirectory: workspace.path('nginx') })
  parts.defer(() => nginx?.stop())
  const load = startLoad()
  parts.defer(() => load.stop())

  const measured: Measured[] = []
  const memory: Table['rows'] = []
  for (const cache of ['hot', 'beyond'] as const) {
    const start = cache === 'hot' ? startByCommand : startWithSmallCache
    const node = await start(dataDirectory)
    try {
      const idle = readUsage(node.pid)
      for (const row of planRows(expected.count)) {
        if (row.cache !== cache) continue
        options.say(`${cache}, page ${row.size}, ${row.order}, ${row.encoding}, ${row.coding}`)
        measured.push(
          await measureRow({
            options,
            row,
            servers: { node, raw, nginx },
            load,
            expected,
            directory,
          }),
        )
      }
      const loaded = readUsage(node.pid)
      if (idle !== undefined && loaded !== undefined) {
        memory.push({
          node: cache === 'hot' ? 'as started by the command' : 'with a cache of 4 MB',
          idle: idle.residentBytes / 1e6,
          loaded: loaded.residentBytes / 1e6,
          peak: loaded.peakBytes / 1e6,
        })
      }
    } catch (error) {
      // What it logged is complete only when it has ended.
      await node.stop()
      throw new Error(`${(error as Error).message} The node's last words: ${node.readLog()}`, {
        cause: error,
      })
    } finally {
      await node.stop()
    }
  }
  const tables = [pagesTable(measured, nginx !== undefined), memoryTable(memory)]
  return { tables, aims: aimsOf(measured) }
}

async function measureRow(context: {
  options: BenchOptions
  row: PageRow
  servers: Servers
  load: ReturnType<typeof startLoad>
  expected: Expected
  directory: string
}): Promise<Measured> {
  const { options, row, servers, load, expected, directory } = context
  const pages = planPages(row, expected.count)
  const bodies = pages.map((page) => printPageRequest(row, page, expected))
  const name = Object.values(row).join('-')
  const files = join(directory, name)
  mkdirSync(files)
  const lengths: number[] = []
  const entries = pages.entries()
  const fetchAll = async () => {
    for (const [i, page] of entries) {
      const answer = await post(`${servers.node.scanUrl}${PATH}`, bodies[i] as string, row.coding)
      checkPage(answer, row, expected.page(row.encoding, page.from, page.to))
      writeFileSync(join(files, String(i)), answer)
      lengths[i] = answer.length
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, fetchAll))
  const nodePath = `${new URL(servers.node.scanUrl).pathname}${PATH}`
  const job = { lengths, connections: CONNECTIONS }
  const toRequest = (path: (i: number) => string) =>
    bodies.map((body, i) => ({ path: path(i), body, acceptEncoding: row.coding }))
  const filePath = (i: number) => `/${name}/${i}`
  const jobs: Record<string, Omit<Parameters<typeof load.run>[0], 'milliseconds'>> = {
    node: { ...job, port: servers.node.port, method: 'POST', requests: toRequest(() => nodePath) },
    raw: { ...job, port: servers.raw.port, method: 'POST', requests: toRequest(filePath) },
  }
  if (servers.nginx !== undefined) {
    const { port } = servers.nginx
    jobs.nginx = { ...job, port, method: 'GET', requests: toRequest(filePath) }
  }
  const milliseconds = options.sliceMs * (SLICE_WEIGHT[row.size] ?? 1)
  const results: Record<string, LoadResult[]> = {}
  // The first turn warms up; it is not counted.
  for (let round = 0; round <= options.rounds; round += 1) {
    for (const [server, task] of Object.entries(jobs)) {
      const isWarmUp = round === 0
      const result = await load.run({
        ...task,
        milliseconds: isWarmUp ? milliseconds / 2 : milliseconds,
      })
      results[server] ??= []
      if (!isWarmUp) results[server].push(result)
    }
  }
  servers.raw.forget?.()
  rmSync(files, { recursive: true })
  return { row, results, bytes: median(lengths) }
}

/** A server whose page differs is not measured. */
function checkPage(answer: Buffer, row: PageRow, expected: Buffer): void {
  const decoded = decode(answer, row)
  if (!decoded.equals(expected)) {
    throw new Error(
      `The node's page (${row.size}, ${row.order}, ${row.encoding}, ${row.coding}) is not the expected one; run the tests first.`,
    )
  }
}

/** What a zstd body holds between its parts: white space, which JSON allows there. */
const ZSTD_SEPARATOR = ' '.repeat(19)

function decode(answer: Buffer, row: PageRow): Buffer {
  if (row.coding === 'identity') return answer
  if (row.coding === 'gzip') return gunzipSync(answer)
  const text = zstdDecompressSync(answer).toString('latin1')
  return Buffer.from(text.replaceAll(ZSTD_SEPARATOR, ''), 'latin1')
}

/** The bytes of an answer as they are on the wire, still compressed. */
function post(url: string, body: string, acceptEncoding: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'accept-encoding': acceptEncoding }
    const sent = request(url, { method: 'POST', headers }, async (response) => {
      try {
        const bytes = Buffer.concat(await response.toArray())
        if (response.statusCode === 200) resolve(bytes)
        else reject(new Error(`The node answered ${response.statusCode}: ${bytes}`))
      } catch (error) {
        reject(error)
      }
    })
    // A connection that breaks can report more than one error.
    sent.on('error', reject)
    sent.end(body)
  })
}

function rate({ pages, seconds }: LoadResult): number {
  return pages / seconds
}

/** The median of the rounds' ratios: neighbours in time share the machine's mood. */
function ratioOf(measured: Measured, reference: string): number | undefined {
  const others = measured.results[reference]
  const own = measured.results.node as LoadResult[]
  return others && median(own.map((result, i) => rate(result) / rate(others[i] as LoadResult)))
}

function pagesTable(measured: Measured[], hasNginx: boolean): Table {
  const rows = measured.map((entry) => {
    const medianOf = (name: string, read: (result: LoadResult) => number) => {
      const results = entry.results[name]
      return results && median(results.map(read))
    }
    const isLimited = (name: string) =>
      (medianOf(name, (result) => result.loadShare) ?? 0) > LOAD_SHARE_LIMIT
    const limited = Object.keys(entry.results).filter(isLimited)
    return {
      ...entry.row,
      kilobytes: entry.bytes / 1000,
      node: medianOf('node', rate),
      p50: medianOf('node', (result) => result.p50Ms),
      p99: medianOf('node', (result) => result.p99Ms),
      raw: medianOf('raw', rate),
      nginx: medianOf('nginx', rate),
      ofNginx: ratioOf(entry, 'nginx'),
      limited: limited.length === 0 ? undefined : limited.join(', '),
      ofRaw: ratioOf(entry, 'raw'),
    }
  })
  const nginxColumns = hasNginx
    ? [
        { key: 'nginx', title: 'nginx/s' },
        { key: 'ofNginx', title: 'x nginx', digits: 2 },
      ]
    : []
  return {
    title: 'Pages per second of POST /v1/updates',
    columns: [
      { key: 'cache', title: 'cache' },
      { key: 'coding', title: 'coding' },
      { key: 'encoding', title: 'encoding' },
      { key: 'size', title: 'page' },
      { key: 'order', title: 'order' },
      { key: 'kilobytes', title: 'kB', digits: 1 },
      { key: 'node', title: 'node/s', digits: 1 },
      { key: 'p50', title: 'p50 ms', digits: 1 },
      { key: 'p99', title: 'p99 ms', digits: 1 },
      { key: 'raw', title: 'raw/s', digits: 1 },
      ...nginxColumns,
      { key: 'limited', title: 'load-bound' },
      { key: 'ofRaw', title: 'x raw', digits: 2 },
    ],
    rows,
    notes: [
      `raw is node:http sending the same bytes from memory after reading the same request${hasNginx ? '; nginx sends them as a static file (one process, GET)' : '; nginx is not installed here'}.`,
      `${CONNECTIONS} connections from one load process on the same machine; servers measured in turns, medians; a ratio is the median of its rounds' ratios.`,
      'Sequential pages follow the cursors from the start; random ones start anywhere. Beyond the cache: decoded frames do not fit, the file is in the page cache of the system.',
      'Load-bound names servers faster than the load process: their rate is a lower bound. Every page was compared with the expected one before it was measured.',
    ],
  }
}

function memoryTable(rows: Table['rows']): Table {
  return {
    title: 'Memory of the node, resident MB',
    columns: [
      { key: 'node', title: 'node' },
      { key: 'idle', title: 'idle' },
      { key: 'loaded', title: 'after load' },
      { key: 'peak', title: 'peak' },
    ],
    rows,
    notes: rows.length === 0 ? ['This system does not tell.'] : [],
  }
}

const AIMS: Record<number, number> = { 100: 0.4, 1000: 0.7 }

function aimsOf(measured: Measured[]): Aim[] {
  return measured.flatMap((entry) => {
    const { cache, coding, encoding, size, order } = entry.row
    const wanted = AIMS[size]
    const isAim = cache === 'hot' && coding === 'identity' && encoding === 'compact_json'
    if (wanted === undefined || !isAim) return []
    return [
      {
        aim: `page ${size}, hot, ${order}: part of the raw server's rate`,
        measured: ratioOf(entry, 'raw') as number,
        wanted,
        isUpperBound: false,
      },
    ]
  })
}
