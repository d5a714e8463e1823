import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { forEachEngine } from './support/engines.ts'
import { startKeySetServer } from './support/key-set-server.ts'
import { startLedgerProcess } from './support/ledger-process.ts'
import { AUDIENCE, ISSUER, makeKeys, tokenOf } from './support/ledger-tokens.ts'
import { moveBody } from './support/ledger-world.ts'

/** What the decisions promise to nodes that share a database. */
const SEEN_WITHIN_MS = 1000

forEachEngine((engine) => {
  if (engine.name !== 'postgres') return

  test('a move on one node is seen by another process on the same database within a second', async (t) => {
    const keys = await makeKeys()
    const jwksUrl = await startKeySetServer(t, {
      default: [keys.k0.jwk],
      idp1: [keys.k1.jwk],
      idp2: [keys.k2.jwk],
    })
    const target = await engine.newTarget(t)
    const options = { target, jwksUrl: jwksUrl('default'), audience: AUDIENCE.default }
    const one = await startLedgerProcess(options)
    t.after(() => one.kill())
    const two = await startLedgerProcess(options)
    t.after(() => two.kill())

    const admin = await tokenOf(keys, 'admin')
    const tokens = { idp1: await tokenOf(keys, 'idp1-bob'), idp2: await tokenOf(keys, 'idp2-bob') }
    const send = async (node: { url: string }, method: string, path: string, body: object) => {
      const response = await fetch(node.url + path, {
        method,
        headers: { authorization: `Bearer ${admin}` },
        body: JSON.stringify(body),
      })
      assert.equal(response.status, 200, await response.text())
    }
    const statusOf = async (node: { url: string }, provider: 'idp1' | 'idp2') => {
      const headers = { authorization: `Bearer ${tokens[provider]}` }
      const response = await fetch(`${node.url}/v2/authenticated-user`, { headers })
      await response.arrayBuffer()
      return response.status
    }
    for (const id of ['idp1', 'idp2'] as const) {
      const config = { issuer: ISSUER[id], jwksUrl: jwksUrl(id), audience: AUDIENCE[id] }
      const identityProviderConfig = { identityProviderId: id, ...config }
      await send(one, 'POST', '/v2/idps', { identityProviderConfig })
    }
    await send(two, 'POST', '/v2/users', { user: { id: 'bob', identityProviderId: 'idp1' } })

    let [source, destination]: ['idp1' | 'idp2', 'idp1' | 'idp2'] = ['idp1', 'idp2']
    for (let round = 0; round < 4; round++) {
      for (const node of [one, two]) {
        await until(async () => (await statusOf(node, source)) === 200)
        assert.equal(await statusOf(node, destination), 403)
      }
      await send(one, 'PATCH', '/v2/users/bob/identity-provider-id', moveBody(source, destination))
      const movedAt = performance.now()
      assert.equal(await statusOf(one, source), 403, 'the next request on the same node knows')
      assert.equal(await statusOf(one, destination), 200)
      await until(async () => (await statusOf(two, source)) === 403)
      await until(async () => (await statusOf(two, destination)) === 200)
      const seenAfterMs = performance.now() - movedAt
      assert.ok(seenAfterMs < SEEN_WITHIN_MS, `seen after ${seenAfterMs} ms`)
      ;[source, destination] = [destination, source]
    }
  })
})

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await wait(5)
}
