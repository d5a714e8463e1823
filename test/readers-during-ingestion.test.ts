import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDb } from '../src/db/open.ts'
import { prepareLine } from '../src/history/encode.ts'
import { openHistory } from '../src/history/history.ts'
import { readPage } from '../src/history/pages.ts'
import { forEachEngine } from './support/engines.ts'
import { openTestHistory, position } from './support/histories.ts'
import { startTestNode } from './support/node.ts'
import { importUpdate, plainLines, transaction } from './support/sample-items.ts'

const UPDATES = 700
const FIRST_BATCH = 60

type Item = { update_id: string; migration_id: number; record_time: string }
type Page = { transactions: Item[] }

async function readPageOver(
  url: string,
  pageSize: number,
  last: Item | undefined,
): Promise<string> {
  const after = last && {
    after_migration_id: last.migration_id,
    after_record_time: last.record_time,
  }
  const body = JSON.stringify({ page_size: pageSize, ...(after ? { after } : {}) })
  const response = await fetch(url, { method: 'POST', body })
  assert.equal(response.status, 200)
  return response.text()
}

forEachEngine((engine) => {
  test(`readers during ingestion see no gap and no repeat, and a page never changes, on ${engine.name}`, async (t) => {
    const lines = [
      ...plainLines(UPDATES / 2),
      ...plainLines(UPDATES / 2, { migrationId: 2 }).map((line) =>
        line.replaceAll('"1220', '"1221'),
      ),
    ]
    const ids = lines.map((line) => JSON.parse(line).update_id)
    const target = await engine.newTarget(t)
    const node = await startTestNode(t, { target, lines: lines.slice(0, FIRST_BATCH) })

    async function write(): Promise<void> {
      const sizes = [1, 1, 1, 30, 1, 7, 1, 1, 60]
      for (let at = FIRST_BATCH, n = 0; at < lines.length; n += 1) {
        const size = sizes[n % sizes.length] as number
        await node.history.append(lines.slice(at, at + size).map(prepareLine))
        at += size
        // Lets readers in; a writer that is always busy would leave them nothing to see.
        await new Promise(setImmediate)
      }
    }

    async function read(version: number, pageSize: number): Promise<void> {
      const url = `${node.urls.scan}/v${version}/updates`
      const seen: string[] = []
      const full: { last: Item | undefined; text: string }[] = []
      let last: Item | undefined
      while (seen.length < lines.length) {
        const text = await readPageOver(url, pageSize, last)
        const { transactions } = JSON.parse(text) as Page
        if (transactions.length === pageSize) full.push({ last, text })
        seen.push(...transactions.map((item) => item.update_id))
        assert.deepEqual(seen, ids.slice(0, seen.length))
        last = transactions.at(-1) ?? last
      }
      for (const { last: before, text } of full.slice(0, 50)) {
        assert.equal(await readPageOver(url, pageSize, before), text)
      }
    }

    const readers = [1, 7, 25, 100].flatMap((pageSize) => [read(1, pageSize), read(2, pageSize)])
    await Promise.all([write(), read(0, 25), ...readers])
  })

  test(`a follower sees within a second what the writer has appended on ${engine.name}`, async (t) => {
    const target = await engine.newTarget(t)
    const lines = plainLines(130)
    const writer = await startTestNode(t, { target, lines: lines.slice(0, 30) })
    const db = await openDb(target)
    t.after(() => db.close())
    const follower = await openHistory({ db, cacheBytes: 1_000_000, isFollower: true })
    let seen = 0
    for (let at = 30; at < lines.length; at += 20) {
      await writer.history.append(lines.slice(at, at + 20).map(prepareLine))
      const deadline = performance.now() + 1000
      while (seen < at + 20) {
        assert.ok(performance.now() < deadline, 'within a second')
        seen = (await follower.latestView()).updates
        await new Promise(setImmediate)
      }
    }
  })
})

forEachEngine((engine) => {
  if (engine.name !== 'postgres') return
  test('a second node on one PostgreSQL database follows the first', async (t) => {
    const target = await engine.newTarget(t)
    const writer = await startTestNode(t, { target, lines: plainLines(30) })
    const follower = await startTestNode(t, { target, empty: false })
    assert.equal(follower.isSeeded, false)
    const url = `${follower.urls.scan}/v1/updates`
    await writer.history.append(plainLines(40, { from: 30 }).map(prepareLine))
    const deadline = performance.now() + 1000
    let count = 0
    while (count < 70) {
      assert.ok(performance.now() < deadline, 'within a second')
      count = (JSON.parse(await readPageOver(url, 1000, undefined)) as Page).transactions.length
    }
    const found = await fetch(`${url}/${'122000000045'}`)
    assert.equal(found.status, 200)
    await found.arrayBuffer()
  })
})

forEachEngine((engine) => {
  test(`a page of v0 holds no import update that is newer than its view on ${engine.name}`, async (t) => {
    const line = (item: object) => prepareLine(JSON.stringify(item))
    const history = await openTestHistory(t, engine)
    await history.append([line(importUpdate('i1', '01')), line(importUpdate('i2', '02'))])
    const views = [history.view]
    await history.append([line(importUpdate('i3', '03')), ...plainLines(2).map(prepareLine)])
    views.push(history.view)
    await history.append([
      ...plainLines(1, { from: 2 }).map(prepareLine),
      line(importUpdate('j1', '01', { migration_id: 2 })),
      line(transaction({ migration_id: 2 })),
    ])
    views.push(history.view)
    const counts: number[] = []
    for (const view of views) {
      let count = 0
      const request = {
        version: 0,
        encoding: 'compact_json',
        after: undefined,
        pageSize: 100,
      } as const
      for await (const runs of readPage({ db: history.db, cache: history.cache, view }, request)) {
        for (const run of runs) count += run.updates
      }
      counts.push(count)
    }
    assert.deepEqual(counts, [2, 5, 8])
    assert.deepEqual(history.view.last?.migrationId, position(2, '').migrationId)
  })
})
