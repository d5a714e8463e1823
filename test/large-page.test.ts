import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { migrate, readMigrations } from '../src/db/migrate.ts'
import { openDb } from '../src/db/open.ts'
import { prepareLine } from '../src/history/encode.ts'
import { openHistory } from '../src/history/history.ts'
import { startNodeProcess } from './support/command.ts'
import { newDirectory } from './support/node.ts'
import { plainLines } from './support/sample-items.ts'

const UPDATES = 100_000
const BATCH = 5000
/** What the specification of the node allows above its idle size. */
const GROWTH_BYTES_MAX = 150 * 1024 * 1024
const PAUSES = 20

async function fill(directory: string): Promise<void> {
  const db = await openDb({ engine: 'sqlite', path: join(directory, 'app.sqlite') })
  await migrate(db, await readMigrations('app'))
  const history = await openHistory({ db, cacheBytes: 0 })
  for (let from = 0; from < UPDATES; from += BATCH) {
    await history.append(plainLines(BATCH, { from }).map(prepareLine))
  }
  await db.close()
}

function residentBytes(pid: number): number {
  const [, kilobytes = ''] =
    /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** Reads a page and stops now and then until the node has sent all it will send. */
async function readPausing(url: string, coding: string, onPause: () => void): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const asked = request(
    url,
    { method: 'POST', headers: { 'accept-encoding': coding } },
    async (response) => {
      let bytes = 0
      let pauses = 0
      try {
        for await (const chunk of response) {
          bytes += chunk.length
          onPause()
          // Pauses come ever later, so that some fall into the middle of the page.
          if (pauses < PAUSES && bytes > pauses * pauses * 40_000) {
            pauses += 1
            await new Promise((wake) => setTimeout(wake, 20))
          }
        }
        resolve(bytes)
      } catch (error) {
        reject(error)
      }
    },
  )
  asked.on('error', reject)
  asked.end(JSON.stringify({ page_size: UPDATES }))
  return promise
}

test(`a page of ${UPDATES} updates takes little memory, however slowly it is read`, async (t: TestContext) => {
  const directory = newDirectory(t)
  await fill(directory)
  const { child, urls } = await startNodeProcess(t, ['--data', directory])
  const pid = child.pid as number
  const warmUp = await fetch(`${urls.scanUrl}/v1/updates`, {
    method: 'POST',
    body: '{"page_size":1}',
  })
  await warmUp.text()
  const idle = residentBytes(pid)
  let peak = 0
  for (const coding of ['identity', 'gzip', 'zstd']) {
    const bytes = await readPausing(`${urls.scanUrl}/v1/updates`, coding, () => {
      peak = Math.max(peak, residentBytes(pid))
    })
    if (coding === 'identity') assert.ok(bytes > 50_000_000, `${bytes} bytes`)
  }
  const growth = peak - idle
  assert.ok(
    growth < GROWTH_BYTES_MAX,
    `grew by ${Math.round(growth / 1e6)} MB from ${Math.round(idle / 1e6)} MB`,
  )
  t.diagnostic(`grew by ${Math.round(growth / 1e6)} MB from ${Math.round(idle / 1e6)} MB`)
})
