import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { FREE_PORTS, runCommand, startCommand, startNodeProcess } from './support/command.ts'
import { newDirectory } from './support/node.ts'

const run = promisify(execFile)
/** A Node that a machine may have besides the one that the package brings. */
const OTHER_NODES = ['/usr/bin/node', '/usr/local/bin/node'].filter(
  (path) => existsSync(path) && path !== process.execPath,
)

async function countUpdates(scanUrl: string): Promise<number> {
  const response = await fetch(`${scanUrl}/v0/updates`, {
    method: 'POST',
    body: '{"page_size":100000}',
  })
  return ((await response.json()) as { transactions: unknown[] }).transactions.length
}

async function stop(
  child: { kill(signal: NodeJS.Signals): boolean },
  signal: NodeJS.Signals = 'SIGTERM',
) {
  const gone = once(child as never, 'exit')
  child.kill(signal)
  return (await gone) as [number | null, string | null]
}

test('--json prints one line when ready, and the four ports answer', async (t) => {
  const { child, urls, lines } = await startNodeProcess(t, ['--data', newDirectory(t)])
  assert.deepEqual(Object.keys(urls), [
    'event',
    'ledgerUrl',
    'scanUrl',
    'validatorUrl',
    'metricsUrl',
  ])
  for (const url of [
    `${urls.ledgerUrl}/livez`,
    `${urls.scanUrl}/readyz`,
    `${urls.validatorUrl}/readyz`,
    urls.metricsUrl,
  ]) {
    const answer = await fetch(url)
    assert.equal(answer.status, 200, url)
    await answer.text()
  }
  assert.deepEqual(await stop(child), [0, null])
  assert.equal(lines.length, 1)
})

test('the first start seeds a network, the second keeps what is there, --empty seeds nothing', async (t) => {
  const data = newDirectory(t)
  const empty = await startNodeProcess(t, ['--data', join(data, 'empty'), '--empty'])
  assert.equal(await countUpdates(empty.urls.scanUrl), 0)
  assert.deepEqual(await stop(empty.child), [0, null])
  const counts: number[] = []
  for (let round = 0; round < 2; round += 1) {
    const { child, urls } = await startNodeProcess(t, ['--data', join(data, 'seeded')])
    counts.push(await countUpdates(urls.scanUrl))
    assert.deepEqual(await stop(child, 'SIGINT'), [0, null])
  }
  assert.ok((counts[0] as number) > 10)
  assert.equal(counts[1], counts[0])
})

test('the curl line of the banner works as printed', async (t) => {
  const child = startCommand(t, ['start', '--data', newDirectory(t), ...FREE_PORTS])
  let banner = ''
  for await (const chunk of child.stdout ?? []) {
    banner += chunk
    if (/Ctrl-C\n$/.test(banner)) break
  }
  const [, line] = /^Try:\s+(curl .*)$/m.exec(banner) ?? []
  assert(line !== undefined, banner)
  if (existsSync('/usr/bin/curl')) {
    const { stdout } = await run('/bin/sh', ['-c', line])
    assert.equal(JSON.parse(stdout).transactions.length, 2)
  }
  assert.deepEqual(await stop(child, 'SIGINT'), [0, null])
})

for (const node of OTHER_NODES) {
  test(`the program runs, and stops, when it is started by ${node}`, async (t) => {
    const version = await runCommand(t, ['--version'], { node })
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/)
    const { child, urls } = await startNodeProcess(t, ['--data', newDirectory(t)], { node })
    assert.ok((await countUpdates(urls.scanUrl)) > 10)
    assert.deepEqual(await stop(child), [0, null])
    const wrong = await runCommand(t, ['nonsense'], { node })
    assert.equal(wrong.code, 2)
  })
}

/** Asks for the whole example many times over, until one answer does not fit into the buffers, and reads none of it. */
async function startSlowRead(scanUrl: string): Promise<IncomingMessage> {
  const asked = request(`${scanUrl}/v1/updates`, { method: 'POST' })
  asked.end('{"page_size":1000000,"ledger_value_encoding":"protobuf_json"}')
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  return response
}

async function startWithLargeHistory(t: TestContext) {
  const data = newDirectory(t)
  const file = join(data, 'large.ndjson')
  const { plainLines } = await import('./support/sample-items.ts')
  writeFileSync(
    file,
    plainLines(12_000)
      .map((line) => line.replace('"workflow_id":"', `"workflow_id":"${'w'.repeat(2000)}`))
      .join('\n'),
  )
  const imported = await runCommand(t, ['import', '--data', join(data, 'd'), file])
  assert.equal(imported.code, 0, imported.stderr)
  return startNodeProcess(t, ['--data', join(data, 'd')])
}

test("a signal lets a slow reader's page finish, then everything closes", async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { child, urls } = await startWithLargeHistory(t)
    const response = await startSlowRead(urls.scanUrl)
    const gone = once(child, 'exit')
    child.kill(signal)
    // Refusing new work shows that the stop has begun.
    await untilRefused(urls.scanUrl)
    let bytes = 0
    let text = ''
    for await (const chunk of response) {
      bytes += chunk.length
      text = `${text}${chunk}`.slice(-10)
    }
    assert.ok(bytes > 24_000_000)
    assert.match(text, /\]\}$/)
    assert.deepEqual(await gone, [0, null])
  }
})

async function untilRefused(url: string): Promise<void> {
  for (;;) {
    try {
      await (await fetch(`${url}/livez`, { headers: { connection: 'close' } })).text()
    } catch {
      return
    }
  }
}

test('a second signal ends the node at once', async (t) => {
  const { child, urls } = await startWithLargeHistory(t)
  const response = await startSlowRead(urls.scanUrl)
  response.on('error', () => {})
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await untilRefused(urls.scanUrl)
  const startedAt = performance.now()
  // A second signal that comes very soon counts as the first.
  const again = setInterval(() => child.kill('SIGTERM'), 100)
  const [code] = await gone
  clearInterval(again)
  assert.equal(code, 1)
  assert.ok(performance.now() - startedAt < 3_000)
})

test('a taken port is one sentence that says the remedy', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const data = newDirectory(t)
  const outcome = await runCommand(t, [
    'start',
    '--data',
    data,
    ...FREE_PORTS,
    '--scan-port',
    String(port),
  ])
  assert.equal(outcome.code, 1)
  assert.equal(outcome.stdout, '')
  const sentence = outcome.stderr.split('\n').filter((line) => line.startsWith('annals: '))
  assert.equal(sentence.length, 1, outcome.stderr)
  assert.match(sentence[0] as string, new RegExp(`Port ${port} .*in use.*--scan-port`))
  assert.doesNotMatch(outcome.stderr, /\n\s+at /)
})

test('a directory that cannot be written, or is in use, is one sentence', async (t) => {
  const directory = newDirectory(t)
  const file = join(directory, 'file')
  writeFileSync(file, '')
  const below = await runCommand(t, ['start', ...FREE_PORTS, '--data', join(file, 'below')])
  assert.equal(below.code, 1)
  assert.match(below.stderr, /annals: The data directory .* cannot be written .*--data\.\n$/)
  assert.doesNotMatch(below.stderr, /\n\s+at /)

  const data = join(directory, 'data')
  const { child } = await startNodeProcess(t, ['--data', data])
  for (const args of [
    ['start', ...FREE_PORTS],
    ['import', 'examples/history.ndjson'],
    ['export'],
    ['verify'],
  ]) {
    const outcome = await runCommand(t, [...args, '--data', data])
    assert.equal(outcome.code, 1, args[0])
    assert.match(
      outcome.stderr,
      new RegExp(`annals: .*in use by process ${child.pid}.*\\.\n$`),
      args[0],
    )
    assert.doesNotMatch(outcome.stderr, /\n\s+at /)
  }
  assert.deepEqual(await stop(child), [0, null])
})
