import assert from 'node:assert/strict'
import { once } from 'node:events'
import { cpSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { MirrorStatus } from '../src/mirror/status.ts'
import type { Cleanup } from './support/engines.ts'
import {
  type FaultProxy,
  PROXY_FAULTS,
  startExpiredServer,
  startFaultProxy,
} from './support/fault-proxy.ts'
import { newDirectory } from './support/node.ts'
import { type RunningCommand, runCommand, startCommand } from './support/node-process.ts'
import { plainLines } from './support/sample-items.ts'

// Four scans and a mirror, each a process of its own; between them proxies that break answers.

const UPDATES = 600

test('a mirror of four scans as processes', { timeout: 180_000 }, async (t) => {
  const network = await startNetwork(t)
  const [first, second, , liar] = network.proxies as [
    FaultProxy,
    FaultProxy,
    FaultProxy,
    FaultProxy,
  ]
  const truth = await wholeHistory(network.scans[0] as RunningCommand)
  const seed = await startSeed(t, network.proxies)
  const directory = newDirectory(t)
  const values = join(directory, 'values.yaml')
  writeFileSync(values, `annals:\n  mirror:\n    from: ["${seed.url}"]\n`)
  const args = ['-f', values, '--data', join(directory, 'data')]

  // It is killed in the middle, while one scan does everything wrong.
  liar.misbehave(...PROXY_FAULTS)
  for (const proxy of network.proxies) proxy.delayMs = 50
  let mirror = await startCommand(t, args)
  await until(async () => (await statusOf(mirror)).updates > 0)
  await mirror.stop('SIGKILL')

  // It starts again without the seed, and ends with the truth.
  await seed.stop()
  for (const proxy of network.proxies) proxy.delayMs = 0
  liar.misbehave('lie')
  mirror = await startCommand(t, args)
  await until(async () => (await statusOf(mirror)).phase === 'following')
  assert.deepEqual(await wholeHistory(mirror), truth)

  await t.test('it is ready, and lists the scans that it knows', async () => {
    await until(
      async () => (await fetch(mirror.urls.validator.replace('/api/validator', '/readyz'))).ok,
    )
    const listed = await fetch(`${mirror.urls.scan}/v0/scans`)
    const { scans } = (await listed.json()) as { scans: { scans: { publicUrl: string }[] }[] }
    const urls = scans[0]?.scans.map(({ publicUrl }) => publicUrl)
    assert.deepEqual(new Set(urls), new Set(network.proxies.map(({ url }) => url)))
  })

  await t.test('a dissent is shown with its evidence in every way', async () => {
    // The liar is asked now and then; where nothing is missing there is nothing to lie about.
    const status = await copyAgain(t, network.proxies)
    const dissent = status.dissents.find(({ address }) => address.startsWith(liar.url))
    assert.match(String(dissent?.found), /lie /)
    assert.doesNotMatch(String(dissent?.agreed), /lie /)
  })

  await t.test('two liars of four stop it, and honest answers let it go on', async () => {
    const other = newDirectory(t)
    first.misbehave('lie')
    second.misbehave('lie')
    liar.misbehave()
    const from = JSON.stringify(network.proxies.map(({ url }) => url))
    writeFileSync(join(other, 'values.yaml'), `annals:\n  mirror:\n    from: ${from}\n`)
    const stopped = await startCommand(t, [
      '-f',
      join(other, 'values.yaml'),
      '--data',
      join(other, 'data'),
    ])
    await until(async () => (await statusOf(stopped)).phase === 'stalled')
    const { reason, updates } = await statusOf(stopped)
    assert.equal(updates, 0)
    assert.match(String(reason), /contradict each other/)
    const { stdout, code } = await runCommand(['mirror', 'status', '--url', stopped.urls.scan])
    assert.equal(code, 1)
    assert.match(stdout, /stalled: More scans contradict each other/)
    const ready = await fetch(stopped.urls.validator.replace('/api/validator', '/readyz'))
    assert.equal(ready.status, 503)
    assert.match(await ready.text(), /mirror/)
    first.misbehave()
    second.misbehave()
    await until(async () => (await statusOf(stopped)).phase === 'following')
    assert.deepEqual(await wholeHistory(stopped), truth)
    await stopped.stop()
  })

  await t.test(
    'a stored copy is compared with the network, and the first difference told',
    async () => {
      await mirror.stop()
      liar.misbehave('lie')
      const against = ['--no-discovery', '--against', ...network.proxies.map(({ url }) => url)]
      const same = await runCommand(['verify', '--data', join(directory, 'data'), ...against])
      assert.match(same.stdout, /The network says the same: 600 updates compared/, same.stderr)
      const lines = plainLines(UPDATES)
      lines[400] = (lines[400] as string).replace('"workflow_id":""', '"workflow_id":"other"')
      const forged = await importLines(t, lines)
      const different = await runCommand(['verify', '--data', forged, ...against])
      assert.equal(different.code, 1)
      assert.match(different.stderr, /Update 1220\w+ at 1,.* differs[\s\S]*other/)
    },
  )

  await t.test('a one-off copy ends with the last update before a time', async () => {
    const data = join(newDirectory(t), 'data')
    const from = ['--no-discovery', '--from', ...network.proxies.map(({ url }) => url)]
    const until = ['--until', '2025-01-01T00:01:39.500Z']
    const { stdout, stderr } = await runCommand([
      'mirror',
      '--json',
      '--data',
      data,
      ...until,
      ...from,
    ])
    const result = JSON.parse(stdout.trim().split('\n').at(-1) as string)
    assert.equal(result.copied, 100, stderr)
    assert.equal(result.last.recordTime, '2025-01-01T00:01:39.000000Z')
  })

  await t.test('scans that refuse pages are asked backwards', async () => {
    for (const proxy of network.proxies) proxy.misbehave('incomplete')
    const data = join(newDirectory(t), 'data')
    const from = ['--no-discovery', '--from', ...network.proxies.map(({ url }) => url)]
    const { stdout, stderr } = await runCommand(['mirror', '--json', '--data', data, ...from])
    const result = JSON.parse(stdout.trim().split('\n').at(-1) as string)
    assert.equal(result.copied, UPDATES, stderr)
    for (const proxy of network.proxies) proxy.misbehave()
    const copy = await startCommand(t, ['--data', data])
    assert.deepEqual(await wholeHistory(copy), truth)
    await copy.stop()
  })

  await t.test('a scan with an expired certificate is one that does not answer', async () => {
    const urls = [await startExpiredServer(t), ...network.proxies.slice(0, 3).map(({ url }) => url)]
    const data = join(newDirectory(t), 'data')
    const { stdout, stderr } = await runCommand([
      'mirror',
      '--json',
      '--data',
      data,
      '--no-discovery',
      '--from',
      ...urls,
    ])
    const result = JSON.parse(stdout.trim().split('\n').at(-1) as string)
    assert.equal(result.copied, UPDATES, stderr)
  })
})

/** Copies everything again, so that the liar is asked about something. */
async function copyAgain(t: Cleanup, proxies: FaultProxy[]): Promise<MirrorStatus> {
  const directory = newDirectory(t)
  const from = JSON.stringify(proxies.map(({ url }) => url))
  writeFileSync(join(directory, 'values.yaml'), `annals:\n  mirror:\n    from: ${from}\n`)
  const node = await startCommand(t, [
    '-f',
    join(directory, 'values.yaml'),
    '--data',
    join(directory, 'data'),
  ])
  await until(async () => (await statusOf(node)).phase === 'following')
  await until(async () => (await statusOf(node)).dissents.length > 0)
  const page = await fetch(node.urls.scan.replace('/api/scan', '/mirror'))
  assert.match(String(page.headers.get('content-security-policy')), /default-src 'none'/)
  assert.match(await page.text(), /&quot;workflow_id&quot;:&quot;lie /)
  assert.match(
    await (await fetch(node.urls.metrics)).text(),
    /annals_mirror_dissents_total\{.*\} [1-9]/,
  )
  const { stdout } = await runCommand(['mirror', 'status', '--json', '--url', node.urls.scan])
  await node.stop()
  return JSON.parse(stdout)
}

async function startNetwork(t: Cleanup) {
  const data = await importLines(t, plainLines(UPDATES))
  const scans = await Promise.all(
    [0, 1, 2, 3].map((n) => {
      const directory = `${data}-${n}`
      cpSync(data, directory, { recursive: true })
      return startCommand(t, ['--data', directory])
    }),
  )
  const proxies = await Promise.all(scans.map(({ urls }) => startFaultProxy(t, urls.scan)))
  return { scans, proxies }
}

async function importLines(t: Cleanup, lines: string[]): Promise<string> {
  const data = join(newDirectory(t), 'data')
  const { code, stderr } = await runCommand(['import', '--data', data, '-'], {
    input: lines.join('\n'),
  })
  assert.equal(code, 0, stderr)
  return data
}

/** Knows the scans and nothing else. */
async function startSeed(t: Cleanup, proxies: FaultProxy[]) {
  const scans = proxies.map(({ url }, n) => ({ publicUrl: url, svName: `SV ${n}` }))
  const body = JSON.stringify({ scans: [{ domainId: 'global-domain::1220abcd', scans }] })
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/api/scan/v0/scans' ? 200 : 404
    response.end(request.url === '/api/scan/v0/scans' ? body : '{"error":"not here"}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    if (!server.listening) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  t.after(stop)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop }
}

async function wholeHistory({ urls }: { urls: { scan: string } }): Promise<string[]> {
  const texts: string[] = []
  for (const version of [0, 1, 2]) {
    for (const encoding of ['compact_json', 'protobuf_json']) {
      const body = JSON.stringify({ page_size: 10_000, ledger_value_encoding: encoding })
      const response = await fetch(`${urls.scan}/v${version}/updates`, { method: 'POST', body })
      texts.push(await response.text())
    }
  }
  return texts
}

async function statusOf({ urls }: RunningCommand): Promise<MirrorStatus> {
  const response = await fetch(`${urls.scan}/v0/annals/mirror`)
  assert.equal(response.status, 200)
  return (await response.json()) as MirrorStatus
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, 'the condition comes true')
    await wait(50)
  }
}
