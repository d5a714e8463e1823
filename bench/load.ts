// Load from a process of its own, so that making requests takes no time from a server's thread. Run as
// a program it reads jobs from standard input, one JSON line each, and prints their results.

import { createInterface } from 'node:readline'
import { type Child, startProgram } from './child.ts'
import { openConnection } from './http-connection.ts'

export type LoadRequest = {
  path: string
  body: string
  acceptEncoding: string
  headers?: Record<string, string>
}

export type LoadJob = {
  port: number
  method: 'GET' | 'POST'
  /** Each connection goes through all of them in order, starting at its own place. */
  requests: LoadRequest[]
  /** The length of each answer's body: another one is an error. */
  lengths: number[]
  connections: number
  milliseconds: number
}

export type LoadResult = {
  pages: number
  seconds: number
  p50Ms: number
  p99Ms: number
  /** The part of one core that making the load took; near 1, the load is the limit. */
  loadShare: number
}

export type Load = { run(job: LoadJob): Promise<LoadResult>; stop(): Promise<void> }

export function startLoad(): Load {
  const child: Child = startProgram('./load.ts', [])
  return {
    async run(job) {
      child.send(JSON.stringify(job))
      const answer = JSON.parse(await child.nextLine())
      if (answer.error !== undefined) throw new Error(answer.error)
      return answer
    },
    stop: () => child.stop(),
  }
}

async function runJob(job: LoadJob): Promise<LoadResult> {
  const requests = job.requests.map((request) => printRequest(job, request))
  const connections = await Promise.all(
    Array.from({ length: job.connections }, () => openConnection(job.port)),
  )
  const times: number[] = []
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  const deadline = startedAt + job.milliseconds
  await Promise.all(
    connections.map(async (connection, i) => {
      let next = Math.floor((i * requests.length) / job.connections)
      for (let now = performance.now(); now < deadline; ) {
        const length = await connection.request(requests[next] as Buffer)
        if (length !== job.lengths[next]) {
          throw new Error(`Page ${next} has ${length} bytes instead of ${job.lengths[next]}.`)
        }
        next = (next + 1) % requests.length
        const before = now
        now = performance.now()
        times.push(now - before)
      }
    }),
  )
  const seconds = (performance.now() - startedAt) / 1000
  const { user, system } = process.cpuUsage(cpu)
  for (const connection of connections) connection.close()
  times.sort((a, b) => a - b)
  const at = (part: number) => times[Math.floor((times.length - 1) * part)] as number
  return {
    pages: times.length,
    seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    loadShare: (user + system) / 1e6 / seconds,
  }
}

function printRequest(
  { method }: LoadJob,
  { path, body, acceptEncoding, headers = {} }: LoadRequest,
): Buffer {
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const content =
    method === 'GET'
      ? ''
      : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept-encoding: ${acceptEncoding}\r\n${more.join('')}${content}\r\n${method === 'GET' ? '' : body}`,
  )
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const result = await runJob(JSON.parse(line)).catch((error: Error) => ({
      error: error.message,
    }))
    process.stdout.write(`${JSON.stringify(result)}\n`)
  }
}

if (import.meta.main) await main()
