// What metrics and logging cost: pages per second with them and without, and the time of a scrape.

import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { readUsage, startProgram } from './child.ts'
import { type LoadJob, type LoadResult, startLoad } from './load.ts'
import { type NodeProcess, startByCommand, waitUntilReady } from './node-process.ts'
import { type PageRow, planPages, printPageRequest } from './pages-plan.ts'
import type { BenchOptions, Section } from './section.ts'
import { type Aim, median, type SectionReport, type Table } from './table.ts'

const CONNECTIONS = 8
const PATH = '/api/scan/v1/updates'
const SIZES = [1, 100]
/** The same for both servers, and room for all pages that are asked for. */
const CACHE_BYTES = 256 * 1024 * 1024
/** A ratio near 1 needs more turns than one that is far from it. */
const TURNS_PER_ROUND = 8
const SCRAPES_PER_ROUND = 20
const RATIO_WANTED = 0.95
const SCRAPE_MS_WANTED = 10
const PROTOBUF =
  'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'

export const metricsSection: Section = {
  name: 'metrics',
  summary: 'pages per second with metrics and logging against without; the time of a scrape',
  run: measureMetrics,
}

type Servers = Record<'on' | 'off', NodeProcess>
type Turns = { result: LoadResult; cpuSeconds: number }[]

async function measureMetrics(options: BenchOptions): Promise<SectionReport> {
  const { workspace } = options
  const dataDirectory = await workspace.dataDirectory()
  await using parts = new AsyncDisposableStack()
  const start = async (mode: 'measured' | 'bare') => {
    const copy = workspace.path(`${mode}.sqlite`)
    copyFileSync(join(dataDirectory, 'app.sqlite'), copy)
    const program = startProgram('./scan-server.ts', [copy, String(CACHE_BYTES), mode])
    parts.defer(() => program.stop())
    return waitUntilReady(program)
  }
  const servers: Servers = { on: await start('measured'), off: await start('bare') }
  const load = startLoad()
  parts.defer(() => load.stop())
  const rows: Table['rows'] = []
  const aims: Aim[] = []
  for (const size of SIZES) {
    const job = await planJob(options, size)
    const turns = await takeTurns(options, { load, job, servers })
    const rates = (name: 'on' | 'off') => turns[name].map(({ result }) => rateOf(result))
    const ratio = median(rates('on').map((rate, i) => rate / (rates('off')[i] as number)))
    rows.push({
      size,
      on: median(rates('on')),
      off: median(rates('off')),
      ratio,
      cpuOn: cpuOf(turns.on),
      cpuOff: cpuOf(turns.off),
      share: median(turns.off.map(({ result }) => result.loadShare)),
    })
    const aim = `page ${size}: rate with metrics and logging, part of that without`
    aims.push({ aim, measured: ratio, wanted: RATIO_WANTED, isUpperBound: false })
  }
  const node = await startByCommand(dataDirectory)
  parts.defer(() => node.stop())
  const job = await planJob(options, Math.min(100, options.count))
  const scrapes = await measureScrapes(options, { load, node, job })
  for (const { format, ms } of scrapes) {
    const aim = `milliseconds of the event loop for a scrape, ${format}`
    aims.push({ aim, measured: ms, wanted: SCRAPE_MS_WANTED, isUpperBound: true })
  }
  return { tables: [costTable(rows), scrapeTable(scrapes)], aims }
}

type Job = Omit<LoadJob, 'port' | 'milliseconds'>

async function planJob({ workspace }: BenchOptions, size: number): Promise<Job> {
  const expected = await workspace.expected()
  const row: PageRow = {
    ...{ cache: 'hot', size, order: 'sequential' },
    ...{ encoding: 'compact_json', coding: 'identity' },
  }
  const pages = planPages(row, expected.count)
  return {
    method: 'POST',
    requests: pages.map((page) => ({
      path: PATH,
      body: printPageRequest(row, page, expected),
      acceptEncoding: row.coding,
    })),
    lengths: pages.map(({ from, to }) => expected.page(row.encoding, from, to).length),
    connections: CONNECTIONS,
  }
}

/** One after the other, each time the other one first; the first turn of each warms up. */
async function takeTurns(
  options: BenchOptions,
  context: { load: ReturnType<typeof startLoad>; job: Job; servers: Servers },
): Promise<Record<'on' | 'off', Turns>> {
  const { load, job, servers } = context
  const turns: Record<'on' | 'off', Turns> = { on: [], off: [] }
  const milliseconds = options.sliceMs * 2
  for (let turn = 0; turn <= options.rounds * TURNS_PER_ROUND; turn += 1) {
    options.say(`metrics, turn ${turn}`)
    for (const name of turn % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
      const { port, pid } = servers[name]
      const before = readUsage(pid)?.cpuSeconds ?? Number.NaN
      const result = await load.run({ ...job, port, milliseconds })
      const cpuSeconds = (readUsage(pid)?.cpuSeconds ?? Number.NaN) - before
      if (turn > 0) turns[name].push({ result, cpuSeconds })
    }
  }
  return turns
}

function rateOf({ pages, seconds }: LoadResult): number {
  return pages / seconds
}

/** Microseconds of the processor for a page, over all turns: the system counts in hundredths of a second. */
function cpuOf(turns: Turns): number | undefined {
  const cpu = turns.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
  const pages = turns.reduce((sum, { result }) => sum + result.pages, 0)
  return Number.isFinite(cpu) ? (cpu / pages) * 1e6 : undefined
}

type Scrape = { format: string; ms: number; series: number; kilobytes: number }

/**
 * The node measures its scrapes itself, all of which run on the event loop; a scrape's own time stands
 * in the next one.
 */
async function measureScrapes(
  options: BenchOptions,
  context: { load: ReturnType<typeof startLoad>; node: NodeProcess; job: Job },
): Promise<Scrape[]> {
  const { load, node, job } = context
  options.say('metrics, scrapes')
  const { metricsUrl } = node
  await touchRoutes(node)
  const scrape = async (accept: string) =>
    Buffer.from(await (await fetch(metricsUrl, { headers: { accept } })).arrayBuffer())
  const secondsSoFar = (page: Buffer) =>
    Number(/^annals_metrics_scrape_duration_seconds_sum (\S+)$/m.exec(String(page))?.[1])
  const text: number[] = []
  const both: number[] = []
  const sizes = { text: 0, protobuf: 0 }
  let series = 0
  let isLoading = true
  const loading = (async () => {
    while (isLoading) await load.run({ ...job, port: node.port, milliseconds: options.sliceMs })
  })()
  try {
    let last = secondsSoFar(await scrape('text/plain'))
    for (let i = 0; i < options.rounds * SCRAPES_PER_ROUND; i += 1) {
      for (const times of [text, both]) {
        if (times === both) sizes.protobuf = (await scrape(PROTOBUF)).length
        const page = await scrape('text/plain')
        sizes.text = page.length
        series = String(page).match(/^[a-z]/gm)?.length ?? 0
        const now = secondsSoFar(page)
        times.push((now - last) * 1000)
        last = now
      }
    }
  } finally {
    isLoading = false
    await loading
  }
  // The page before a pair holds the text's own time, that after it the protobuf's as well.
  const textMs = median(text)
  return [
    { format: 'text', ms: textMs, series, kilobytes: sizes.text / 1000 },
    { format: 'protobuf', ms: median(both) - textMs, series, kilobytes: sizes.protobuf / 1000 },
  ]
}

/** Begins the series of many routes and outcomes, as a node that has run for a while has them. */
async function touchRoutes({ scanUrl, ledgerUrl }: NodeProcess): Promise<void> {
  const urls = ['v0', 'v1', 'v2'].flatMap((version) => [
    `${scanUrl}/${version}/updates`,
    `${scanUrl}/${version}/updates/none`,
  ])
  const ledger = ['users', 'users/a', 'users/a/rights', 'idps', 'idps/a', 'parties', 'version']
  urls.push(...ledger.map((path) => `${ledgerUrl}/v2/${path}`))
  urls.push(...['readyz', 'livez', 'status', 'version', 'nothing'].map((p) => `${scanUrl}/${p}`))
  for (const url of urls) {
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE']) {
      await (await fetch(url, { method })).arrayBuffer()
    }
  }
}

function costTable(rows: Table['rows']): Table {
  return {
    title: 'Metrics and logging: pages per second with them (on) and without (off)',
    columns: [
      { key: 'size', title: 'page' },
      { key: 'on', title: 'on/s', digits: 1 },
      { key: 'off', title: 'off/s', digits: 1 },
      { key: 'ratio', title: 'on / off', digits: 3 },
      { key: 'cpuOn', title: 'CPU us on', digits: 1 },
      { key: 'cpuOff', title: 'CPU us off', digits: 1 },
      { key: 'share', title: 'load share', digits: 2 },
    ],
    rows,
    notes: [
      'Both serve the scan API alone, in the same way; on has the metrics of requests, pages, database and process and the log of a node, off has none of them.',
      `${CONNECTIONS} connections, hot, measured in turns; the ratio is the median of the turns' ratios. CPU is that of the server's process for a page.`,
      'A load share near 1 means that the load, not the server, is the limit; then the CPU time tells more than the rate.',
    ],
  }
}

function scrapeTable(rows: Scrape[]): Table {
  return {
    title: 'A scrape of the node under load',
    columns: [
      { key: 'format', title: 'format' },
      { key: 'ms', title: 'event loop ms', digits: 2 },
      { key: 'series', title: 'samples' },
      { key: 'kilobytes', title: 'kB', digits: 1 },
    ],
    rows,
    notes: [
      'Median of what the node itself measures: to collect and to write, all on the event loop.',
    ],
  }
}
