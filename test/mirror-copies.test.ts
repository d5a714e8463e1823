import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { RunningNode } from '../src/node.ts'
import type { Cleanup } from './support/engines.ts'
import { startFaultProxy } from './support/fault-proxy.ts'
import { readManual } from './support/metrics-manual.ts'
import { newDirectory, startTestNode, testConfig } from './support/node.ts'
import { runCommand } from './support/node-process.ts'
import { importUpdate, plainLines, transaction } from './support/sample-items.ts'

// What kinds of histories are copied whole; the scans and the mirror run in this process.

test('a migrated network is copied with its import updates, so that all versions answer alike', async (t) => {
  const contracts = ['00aa', '00ab', '00b0']
  const imports = contracts.map((id) =>
    JSON.stringify(
      importUpdate(id, id, { migration_id: 2, workflow_id: `canton-network-acs-import-${id}` }),
    ),
  )
  const lines = [...plainLines(30), ...imports, ...plainLines(30, { migrationId: 2 })]
  const scans = await startScans(t, lines)
  const mirror = await startMirror(t, scans, 60)
  assert.equal(mirror.history.view.imports, contracts.length)
  assert.deepEqual(await wholeHistory(mirror), await wholeHistory(scans[0] as RunningNode))
})

test('values without labels are copied in both forms as the scans send them', async (t) => {
  const scans = await startScans(t, unlabelledLines(40))
  const mirror = await startMirror(t, scans, 40)
  assert.deepEqual(await wholeHistory(mirror), await wholeHistory(scans[0] as RunningNode))
})

test('a mirror exposes the metrics that the manual lists, with their labels', async (t) => {
  const mirror = await startMirror(t, await startScans(t, plainLines(10)), 10)
  const page = await (await fetch(mirror.urls.metrics)).text()
  const found = [...page.matchAll(/^# TYPE (annals_mirror_\w+) (\w+)$/gm)]
  const listed = [...readManual()].filter(([name]) => name.startsWith('annals_mirror_'))
  assert.deepEqual(
    new Map(found.map(([, name, type]) => [name, type])),
    new Map(listed.map(([name, { type }]) => [name, type])),
  )
  for (const [name, { labels }] of listed) {
    if (name.endsWith('_total')) continue
    const series = new RegExp(`^${name}\\{([^}]*)\\}`, 'm').exec(page)?.[1] ?? ''
    assert.equal(series.includes('scan="127.0.0.1'), labels.includes('scan'), name)
  }
})

test('a mirror is itself copied', async (t) => {
  const scans = await startScans(t, plainLines(80))
  const first = await startMirror(t, scans, 80)
  const second = await startMirror(t, [first], 80)
  assert.deepEqual(await wholeHistory(second), await wholeHistory(first))
})

test('without labels, scans that refuse pages are asked for each compact form', async (t) => {
  const scans = await startScans(t, unlabelledLines(40))
  const proxies = await Promise.all(scans.map(({ urls }) => startFaultProxy(t, urls.scan)))
  for (const proxy of proxies) proxy.misbehave('incomplete')
  const data = newDirectory(t)
  const from = ['--no-discovery', '--from', ...proxies.map(({ url }) => url)]
  const { stdout, stderr } = await runCommand(['mirror', '--json', '--data', data, ...from])
  assert.equal(JSON.parse(stdout.trim().split('\n').at(-1) as string).copied, 40, stderr)
  const copy = await startTestNode(t, { dataDirectory: data })
  assert.deepEqual(await wholeHistory(copy), await wholeHistory(scans[0] as RunningNode))
})

/** As deployed scans print values: lossless without labels, compact with names and trailing nulls. */
function unlabelledLines(count: number): string[] {
  return plainLines(count).map((line, n) => {
    const { update_id: updateId, record_time: recordTime } = JSON.parse(line)
    const item = (argument: unknown) =>
      transaction({
        update_id: updateId,
        record_time: recordTime,
        ...eventsOf(updateId, argument),
      })
    const lossless = {
      record: { fields: [{ value: { party: 'alice::12' } }, { value: { int64: String(n) } }] },
    }
    const compact = { owner: 'alice::12', amount: String(n), note: null }
    return JSON.stringify({ protobuf_json: item(lossless), compact_json: item(compact) })
  })
}

function eventsOf(updateId: string, argument: unknown) {
  const { events_by_id: events } = JSON.parse(JSON.stringify(transaction())) as {
    events_by_id: Record<string, Record<string, unknown>>
  }
  const id = `${updateId}:0`
  const event = { ...Object.values(events)[0], event_id: id, create_arguments: argument }
  return { root_event_ids: [id], events_by_id: { [id]: event } }
}

function startScans(t: Cleanup, lines: string[]): Promise<RunningNode[]> {
  return Promise.all([0, 1, 2, 3].map(() => startTestNode(t, { lines })))
}

async function startMirror(
  t: Cleanup,
  scans: RunningNode[],
  updates: number,
): Promise<RunningNode> {
  const from = scans.map(({ urls }) => urls.scan)
  const { mirror } = testConfig(t)
  const config = { historyWriter: 'mirror', mirror: { ...mirror, from } } as const
  const node = await startTestNode(t, { config, empty: false })
  const deadline = performance.now() + 20_000
  while (node.history.view.updates < updates) {
    assert.ok(performance.now() < deadline, 'everything is copied')
    await wait(20)
  }
  return node
}

async function wholeHistory({ urls }: RunningNode): Promise<string[]> {
  const texts: string[] = []
  for (const version of [0, 1, 2]) {
    for (const encoding of ['compact_json', 'protobuf_json']) {
      const body = JSON.stringify({
        page_size: 10_000,
        ledger_value_encoding: encoding,
        lossless: encoding === 'protobuf_json',
      })
      const response = await fetch(`${urls.scan}/v${version}/updates`, { method: 'POST', body })
      assert.equal(response.status, 200)
      texts.push(await response.text())
    }
  }
  return texts
}
