import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { newDirectory } from './support/node.ts'

const run = promisify(execFile)
const manual = readFileSync(new URL('../docs/mirror-library.md', import.meta.url), 'utf8')
const library = new URL('../src/mirror/library.ts', import.meta.url).href

async function startScan(t: TestContext, status: number, body: string): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status).end(body))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Runs the manual's example as it stands there, with these scans. */
async function runExample(t: TestContext, scans: [status: number, body: string][]) {
  const code = /```js\n([\s\S]*?)```/.exec(manual)?.[1]
  assert.ok(code)
  let changed = code.replace("'annals/mirror'", `'${library}'`)
  for (const [index, [status, body]] of scans.entries()) {
    const url = await startScan(t, status, body)
    changed = changed.replace(`https://scan.sv-${index + 1}.example.net`, url)
  }
  const file = join(newDirectory(t), 'example.mjs')
  writeFileSync(file, changed)
  return (await run(process.execPath, [file])).stdout.trim()
}

const TRUTH = '{"dso_party_id":"DSO::1220ab"}'
const LIE = '{"dso_party_id":"EVE::1220cd"}'

test('the example of the manual prints what the scans agree on', async (t) => {
  const output = await runExample(t, [
    [200, TRUTH],
    [200, LIE],
    [200, ` ${TRUTH.replace(':', ' : ')}`],
    [200, TRUTH],
  ])
  assert.match(output, /^[23] scans say +\{"dso_party_id" ?: ?"DSO::1220ab"\}$/)
})

test('the example of the manual tells of an agreed refusal, and of none', async (t) => {
  const refusal = '{"error":"There is no such thing."}'
  const refused = await runExample(t, [
    [404, refusal],
    [404, refusal],
    [404, refusal],
    [200, LIE],
  ])
  assert.equal(refused, `the scans agree to refuse: 404 ${refusal}`)
  const none = await runExample(t, [
    [200, TRUTH],
    [503, refusal],
    [500, refusal],
    [200, LIE],
  ])
  assert.match(none, /^nothing is known: /)
})
