import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { migrate, readMigrations } from '../src/db/migrate.ts'
import { openDb } from '../src/db/open.ts'
import { prepareLine } from '../src/history/encode.ts'
import { openHistory } from '../src/history/history.ts'
import { startNodeProcess } from './support/command.ts'
import { newDirectory } from './support/node.ts'
import { plainLines } from './support/sample-items.ts'

const UPDATES = 100_000
const BATCH = 5000
/** Above the idle size. Compressing in threads leaves its own working memory with the allocator. */
const GROWTH_BYTES_MAX = {
  identity: 150 * 1024 * 1024,
  gzip: 250 * 1024 * 1024,
  zstd: 250 * 1024 * 1024,
}
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

test(`a page of ${UPDATES} updates takes little memory, however slowly it is read`, async (t) => {
  const directory = newDirectory(t)
  await fill(directory)
  for (const [coding, growthBytesMax] of Object.entries(GROWTH_BYTES_MAX)) {
    const { child, urls } = await startNodeProcess(t, ['--data', directory])
    const pid = child.pid as number
    const warmUp = await fetch(`${urls.scanUrl}/v1/updates`, {
      method: 'POST',
      body: '{"page_size":1}',
    })
    await warmUp.text()
    const idle = residentBytes(pid)
    let peak = 0
    const bytes = await readPausing(`${urls.scanUrl}/v1/updates`, coding, () => {
      peak = Math.max(peak, residentBytes(pid))
    })
    if (coding === 'identity') assert.ok(bytes > 50_000_000, `${bytes} bytes`)
    const told = `${coding}: grew by ${Math.round((peak - idle) / 1e6)} MB from ${Math.round(idle / 1e6)} MB`
    assert.ok(peak - idle < growthBytesMax, told)
    t.diagnostic(told)
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  }
})
