// Requests per second of the ledger API with a token that is known, next to the same route of a node
// without authentication.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram } from './child.ts'
import { type LoadJob, type LoadResult, startLoad } from './load.ts'
import { startByCommand } from './node-process.ts'
import type { BenchOptions, Section } from './section.ts'
import { median, type SectionReport } from './table.ts'

const CONNECTIONS = 8
const PATH = '/v2/users/participant_admin'
/** Slices of a round, in short turns, so that both nodes share the machine's mood. */
const TURNS = 10
/** The part of the rate that authentication may leave at least. */
const RATIO_WANTED = 0.7

export const tokensSection: Section = {
  name: 'tokens',
  summary: 'requests per second for a user, with a known token and without authentication',
  run: measureTokens,
}

async function measureTokens(options: BenchOptions): Promise<SectionReport> {
  const guarded = options.workspace.path('guarded')
  const open = options.workspace.path('open')
  for (const directory of [guarded, open]) mkdirSync(directory)
  const values = join(open, 'values.yaml')
  writeFileSync(values, 'disableAuth: true\n')
  await using parts = new AsyncDisposableStack()
  const withAuth = await startByCommand(guarded, ['--empty'])
  parts.defer(() => withAuth.stop())
  const without = await startByCommand(open, ['--empty', '-f', values, '-p', values])
  parts.defer(() => without.stop())
  const load = startLoad()
  parts.defer(() => load.stop())

  const jobs = {
    token: await jobFor(withAuth.ledgerUrl, await mintToken(guarded)),
    open: await jobFor(without.ledgerUrl),
  }
  const rates: Record<keyof typeof jobs, number[]> = { token: [], open: [] }
  // The first round warms up; it is not counted.
  for (let round = 0; round <= options.rounds; round += 1) {
    options.say(`tokens, round ${round} of ${options.rounds}`)
    const results: Record<keyof typeof jobs, LoadResult[]> = { token: [], open: [] }
    for (let turn = 0; turn < TURNS; turn += 1) {
      const order = turn % 2 === 0 ? (['token', 'open'] as const) : (['open', 'token'] as const)
      for (const kind of order) {
        results[kind].push(await load.run({ ...jobs[kind], milliseconds: options.sliceMs }))
      }
    }
    if (round === 0) continue
    for (const kind of ['token', 'open'] as const) rates[kind].push(rateOf(results[kind]))
  }
  const ratio = median(rates.token.map((own, i) => own / (rates.open[i] as number)))
  return {
    tables: [
      {
        title: 'Requests per second of GET /v2/users/{user-id}',
        columns: [
          { key: 'token', title: 'known token/s' },
          { key: 'open', title: 'no authentication/s' },
          { key: 'ratio', title: 'ratio', digits: 2 },
        ],
        rows: [{ token: median(rates.token), open: median(rates.open), ratio }],
        notes: [
          `${CONNECTIONS} connections from one load process on the same machine; two nodes measured in turns, medians; the ratio is the median of the rounds' ratios.`,
        ],
      },
    ],
    aims: [
      {
        aim: 'known token: part of the rate without authentication',
        measured: ratio,
        wanted: RATIO_WANTED,
        isUpperBound: false,
      },
    ],
  }
}

async function mintToken(dataDirectory: string): Promise<string> {
  const command = startProgram('../src/cli/main.ts', ['token', '--data', dataDirectory])
  const token = await command.nextLine()
  await command.succeed()
  return token
}

async function jobFor(url: string, token?: string): Promise<Omit<LoadJob, 'milliseconds'>> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(url + PATH, { headers })
  const body = await response.arrayBuffer()
  if (!response.ok) throw new Error(`The node answered ${response.status} to ${PATH}.`)
  const request = { path: PATH, body: '', acceptEncoding: 'identity', headers }
  return {
    port: Number(new URL(url).port),
    method: 'GET',
    requests: [request],
    lengths: [body.byteLength],
    connections: CONNECTIONS,
  }
}

function rateOf(results: LoadResult[]): number {
  const sum = (read: (result: LoadResult) => number) =>
    results.reduce((total, result) => total + read(result), 0)
  return sum(({ pages }) => pages) / sum(({ seconds }) => seconds)
}
