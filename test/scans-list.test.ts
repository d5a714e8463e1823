import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { NodeConfig } from '../src/config/node-config.ts'
import type { RunningNode } from '../src/node.ts'
import { startTestNode, testConfig } from './support/node.ts'

// Who is in the list of scans, and that copies find their way by it.

type List = { domainId: string; scans: { publicUrl: string; svName: string }[] }[]

/** A public address in front of a scan, as a load balancer has it: it is known before the node runs. */
async function openPublicAddress(t: TestContext) {
  let target = ''
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = 'GET', url = '' } = request
    const body = method === 'POST' ? { body: Buffer.concat(chunks) } : {}
    try {
      const answer = await fetch(`${target}${url}`, { method, ...body })
      response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()))
    } catch {
      response.writeHead(503).end()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    leadTo(node: RunningNode) {
      target = new URL(node.urls.scan).origin
    },
  }
}

async function startPublic(
  t: TestContext,
  options: { config?: Partial<NodeConfig>; empty?: boolean } = {},
) {
  const address = await openPublicAddress(t)
  const base = testConfig(t)
  const node = await startTestNode(t, {
    ...options,
    config: { ...options.config, scan: { ...base.scan, publicUrl: address.url } },
  })
  address.leadTo(node)
  return { node, url: address.url, svName: base.identity.nodeIdentifier }
}

const copyOf = (url: string): Partial<NodeConfig> => ({
  historyWriter: 'mirror',
  mirror: { from: [url], agreement: 'f+1' },
})

async function listOf({ urls }: RunningNode): Promise<List> {
  const answer = await fetch(`${urls.scan}/v0/scans`)
  return ((await answer.json()) as { scans: List }).scans
}

const addressesOf = (list: List) => list.flatMap(({ scans }) => scans.map((scan) => scan.publicUrl))

async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = Date.now() + 15_000
  while (!(await condition())) {
    assert.ok(Date.now() < giveUpAt, `in vain waited for: ${what}`)
    await wait(20)
  }
}

/** Waits until the copy has everything that the original has. */
async function untilCopied(original: RunningNode, copy: RunningNode): Promise<void> {
  const { updates } = original.history.view
  assert.ok(updates > 0)
  await until(async () => copy.history.view.updates === updates, 'the whole copy')
}

test('a node that was not told its address lists nobody, and is copied by the address of the seed', async (t) => {
  const node = await startTestNode(t, { empty: false })
  assert.deepEqual(await listOf(node), [])
  const seed = new URL(node.urls.scan).origin
  const copy = await startTestNode(t, { config: copyOf(seed) })
  await untilCopied(node, copy)
  assert.deepEqual(addressesOf(await listOf(copy)), [seed])
})

test('a node with a public address lists itself, and is copied by it', async (t) => {
  const { node, url, svName } = await startPublic(t, { empty: false })
  const domainId = node.ledger?.synchronizers[0] as string
  const list = [{ domainId, scans: [{ publicUrl: url, svName }] }]
  assert.deepEqual(await listOf(node), list)
  const copy = await startTestNode(t, { config: copyOf(node.urls.scan) })
  await untilCopied(node, copy)
  await until(async () => addressesOf(await listOf(copy))[0] === url, 'the public address')
  assert.deepEqual(await listOf(copy), list)
})

test('a copy with a public address lists itself beside its peers, and is copied in turn', async (t) => {
  const first = await startPublic(t, { empty: false })
  const copy = await startPublic(t, { config: copyOf(first.url) })
  await untilCopied(first.node, copy.node)
  const domainId = first.node.ledger?.synchronizers[0] as string
  const { svName } = copy
  assert.deepEqual(await listOf(copy.node), [
    {
      domainId,
      scans: [
        { publicUrl: first.url, svName },
        { publicUrl: copy.url, svName },
      ],
    },
  ])
  const next = await startTestNode(t, { config: copyOf(copy.url) })
  await untilCopied(first.node, next)
  assert.ok(addressesOf(await listOf(next)).includes(first.url))
})
