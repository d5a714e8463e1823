import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COIN, openWorld, RULES } from './support/coin-world.ts'
import { newDirectory, post, startTestNode, testConfig } from './support/node.ts'
import { createScanApp } from './support/scan-app.ts'
import { createScanClient } from './support/scan-client.ts'

/** What the deployed networks begin with. */
const NETWORK = {
  burstAmount: 400_000,
  burstWindowMs: 1_200_000,
  extraTrafficPrice: '60',
  minTopupAmount: 200_000,
  readVsWriteScalingFactor: 4,
}

type Rules = {
  amulet_rules_update: {
    contract: {
      payload: {
        configSchedule: {
          initialValue: { decentralizedSynchronizer: { fees: { extraTrafficPrice: string } } }
        }
      }
    }
  }
}

test('rules, rounds, preapprovals and the governing party are told, and left out for who has them', async (t) => {
  const { node, party } = await openWorld(t, { seed: 'facts', simTime: true })
  const scan = createScanClient(node.urls.scan)
  const dso = party('DSO')
  assert.deepEqual((await scan.get('/v0/dso-party-id')).body, { dso_party_id: dso })

  const { amulet_rules_update: rules } = (await scan.post('/v0/amulet-rules', {})).body
  assert.match(rules.contract.template_id, /^[0-9a-f]{64}:Splice\.AmuletRules:AmuletRules$/)
  assert.match(rules.domain_id, /^global-domain::1220/)
  assert.deepEqual(
    rules.contract.payload.configSchedule.initialValue.decentralizedSynchronizer.fees,
    {
      baseRateTrafficLimits: {
        burstAmount: '40000000000',
        burstWindow: { microseconds: '1200000000' },
      },
      extraTrafficPrice: '16.6700000000',
      readVsWriteScalingFactor: '4',
      minTopupAmount: '200000',
    },
  )
  const cached = {
    cached_amulet_rules_contract_id: rules.contract.contract_id,
    cached_amulet_rules_domain_id: rules.domain_id,
  }
  assert.deepEqual((await scan.post('/v0/amulet-rules', cached)).body, {
    amulet_rules_update: { domain_id: rules.domain_id },
  })

  const { body } = await scan.post('/v0/open-and-issuing-mining-rounds', {})
  const [id, round] = Object.entries(body.open_mining_rounds)[0] as [string, typeof rules]
  assert.equal(round.contract.contract_id, id)
  assert.match(round.contract.payload.amuletPrice, /^0\.1\d{9}$/)
  assert.deepEqual(body.issuing_mining_rounds, {})
  assert.ok(body.time_to_live_in_microseconds >= 0n)
  const known = { cached_open_mining_round_contract_ids: [id, '00ff'] }
  const less = (await scan.post('/v0/open-and-issuing-mining-rounds', known)).body
  assert.deepEqual(less.open_mining_rounds, { [id]: { domain_id: round.domain_id } })

  const found = await scan.get(`/v0/transfer-preapprovals/by-party/${party('carol')}`)
  assert.equal(found.body.transfer_preapproval.contract.payload.receiver, party('carol'))
  const none = await scan.get(`/v0/transfer-preapprovals/by-party/${party('alice')}`)
  assert.equal(none.status, 404)
  assert.match(none.body.error, /No transfer preapproval found/)
})

test('requests that cannot be read are refused with the field', async (t) => {
  const { node } = await openWorld(t)
  const scan = createScanClient(node.urls.scan)
  for (const [path, body, reason] of [
    ['/v0/amulet-rules', { cached_amulet_rules_contract_id: 7 }, /contract_id must be a string/],
    ['/v0/amulet-rules', [], /must be a JSON object/],
    [
      '/v0/open-and-issuing-mining-rounds',
      { cached_open_mining_round_contract_ids: 'x' },
      /must be a list of contract ids/,
    ],
  ] as const) {
    const answer = await scan.post(path, body)
    assert.equal(answer.status, 400)
    assert.match(answer.body.error, reason)
  }
  for (const [path, status] of [
    ['/v0/domains/nonsense/members/PAR::a::1220/traffic-status', 400],
    ['/v0/domains/global-domain::1220/members/a::1220/traffic-status', 400],
    ['/v0/domains/global-domain::1220/members/PAR::a::1220/traffic-status', 404],
  ] as const) {
    assert.equal((await scan.get(path)).status, status, path)
  }
})

test('a node without a network says so', async (t) => {
  const empty = await startTestNode(t)
  const { history, ledger } = empty
  assert.ok(ledger)
  const network = { ledger, dso: 'DSO::1220' }
  for (const [options, reason] of [
    [{ network }, /no coin network/],
    [{}, /no ledger of its own/],
  ] as const) {
    const app = await createScanApp(t, history, options)
    for (const [method, path] of [
      ['POST', '/v0/amulet-rules'],
      ['POST', '/v0/open-and-issuing-mining-rounds'],
      ['GET', '/v0/dso-party-id'],
      ['GET', '/v0/transfer-preapprovals/by-party/alice::1220'],
      ['GET', '/v0/domains/global-domain::1220/members/PAR::a::1220/traffic-status'],
    ] as const) {
      const payload = method === 'POST' ? { payload: {} } : {}
      const answer = await app.inject({ method, url: `/api/scan${path}`, ...payload })
      assert.equal(answer.statusCode, 404)
      assert.match(answer.json().error, reason)
    }
  }
})

test('a node uses its base rate, then what it bought, then none, and is told so; both survive a restart', async (t) => {
  const dataDirectory = newDirectory(t)
  const ledger = { secondSynchronizer: true, traffic: NETWORK }
  const options = { dataDirectory, simTime: true, seed: 'traffic', config: { ledger } }
  const world = await openWorld(t, options)
  const { node, ask, party, submit, tap } = world
  const scan = createScanClient(node.urls.scan)
  const { participantId } = (await ask('participant_admin', '/v2/parties/participant-id')).body
  const { body: first } = await scan.post('/v0/amulet-rules', {})
  const { domain_id: domainId } = first.amulet_rules_update
  const path = `/v0/domains/${domainId}/members/PAR::${participantId}/traffic-status`
  const status = async () => (await scan.get(path)).body.traffic_status
  const before = await status()
  assert.equal(before.target.total_purchased, before.actual.total_limit)
  assert.ok(
    before.target.total_purchased >= NETWORK.minTopupAmount,
    'the seeded network has bought',
  )
  assert.equal(before.actual.total_consumed, 0)

  const alice = party('alice')
  const many = Array.from({ length: 40 }, () => tap(alice, '1'))
  let last = await submit('alice', [alice], many)
  for (let n = 0; n < 100 && last.status === 200; n += 1)
    last = await submit('alice', [alice], many)
  assert.equal(last.status, 400)
  const { code, errorCategory, cause, context } = last.body
  assert.equal(code, 'SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT')
  assert.equal(errorCategory, 9)
  assert.match(String(cause), /Buy traffic, or wait until the base rate has refilled/)
  assert.equal((context as Record<string, string>).member, `PAR::${participantId}`)
  const after = await status()
  assert.ok(after.actual.total_consumed > 0)
  const metrics = await (await fetch(node.urls.metrics)).text()
  assert.match(metrics, /annals_traffic_refused_total\S* 1\n/)
  assert.match(metrics, /annals_traffic_spent_bytes_total\{.*source="extra".*\} [1-9]/)
  await node.close()

  const again = await openWorld(t, options)
  const moved = createScanClient(again.node.urls.scan)
  assert.deepEqual((await moved.get(path)).body.traffic_status, after)
  const refused = await again.submit('alice', [alice], many, { commandId: 'again' })
  assert.equal(refused.status, 400)
  const authorization = `Bearer ${await again.tokenOf('alice')}`
  await post(`${again.node.urls.ledger}/v2/time`, { advance: '20m' }, { authorization })
  const paid = await again.submit('alice', [alice], many.slice(0, 20), { commandId: 'later' })
  assert.equal(paid.status, 200, JSON.stringify(paid.body))
  assert.deepEqual((await moved.get(path)).body.traffic_status, after, 'of the base rate')
  assert.ok((await again.active('alice', alice, COIN)).length > 20)
  assert.equal((await again.active('participant_admin', party('DSO'), RULES)).length, 1)
})

test('the parameters of traffic come from the configuration of the first start alone', async (t) => {
  const dataDirectory = newDirectory(t)
  const priceOf = async (extraTrafficPrice: string) => {
    const traffic = { ...NETWORK, extraTrafficPrice }
    const { ledger } = testConfig(t, { dataDirectory })
    const config = { ledger: { ...ledger, traffic } }
    const node = await startTestNode(t, { dataDirectory, empty: false, config })
    const { body } = await post(`${node.urls.scan}/v0/amulet-rules`, {})
    await node.close()
    const { contract } = (body as Rules).amulet_rules_update
    return contract.payload.configSchedule.initialValue.decentralizedSynchronizer.fees
      .extraTrafficPrice
  }
  assert.equal(await priceOf('60'), '60.0000000000')
  assert.equal(await priceOf('1'), '60.0000000000')
})
