import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCron } from '../src/config/cron.ts'
import type { NodeConfig } from '../src/config/node-config.ts'
import { decimal } from '../src/values/decimal.ts'
import { printAmount } from '../src/wallet/decision.ts'
import { decideSweep } from '../src/wallet/sweep.ts'
import { forEachEngine, type TestEngine } from './support/engines.ts'
import { newDirectory } from './support/node.ts'
import { runCommand } from './support/node-process.ts'
import { startWalletNode, until, type WalletNode } from './support/wallet.ts'

type Wallet = NodeConfig['wallet']
type State = {
  name: string
  party: string
  state: string
  why: string
  last_run: string | null
  next_run: string | null
  last_outcome: { kind: string; sentence: string } | null
  last_act: { update_id: string } | null
  failures_in_a_row: number
  dry_run?: string
}
type States = { automations: State[]; warnings: string[] }

const PATH = '/v0/admin/automations'
const ADMIN = 'participant_admin'

/** A node with wallets of alice and bob, started again with what its automations shall do for them. */
async function startAutomatedNode(
  t: Parameters<typeof startWalletNode>[0],
  engine: TestEngine,
  configure: (parties: { alice: string; bob: string; operator: string }) => Partial<Wallet>,
  config: Partial<NodeConfig> = {},
): Promise<WalletNode & { alice: string; bob: string; operator: string }> {
  const dataDirectory = newDirectory(t)
  const target = await engine.newTarget(t)
  const first = await startWalletNode(t, { dataDirectory, target, config })
  const alice = await first.register('alice')
  const bob = await first.register('bob')
  const operator = (await first.get<{ party_id: string }>('', '/v0/validator-user')).party_id
  await first.node.close()
  const wallet = configure({ alice, bob, operator })
  const node = await startWalletNode(t, { dataDirectory, target, wallet, config })
  return { ...node, alice, bob, operator }
}

const sweep = (sender: string, receiver: string, of: object = {}) => ({
  sender,
  receiver,
  maxBalanceUsd: '200',
  minBalanceUsd: '10',
  useTransferPreapproval: false,
  ...of,
})

async function stateOf(node: WalletNode, name: string, party: string): Promise<State> {
  const { automations } = await node.get<States>(ADMIN, PATH)
  const found = automations.find((one) => one.name === name && one.party === party)
  assert.ok(found !== undefined, `${name} of ${party}`)
  return found
}

/** What the sweep of alice should send, by the price of the network. */
async function expectedSweep(node: WalletNode): Promise<bigint> {
  type Balance = { effective_unlocked_qty: string; amulet_price: string }
  const held = await node.get<Balance>('alice', '/v0/wallet/balance')
  const rule = {
    sender: 'alice',
    receiver: 'bob',
    maxBalanceUsd: decimal('200'),
    minBalanceUsd: decimal('10'),
    usePreapproval: false,
  }
  const decision = decideSweep(rule, {
    balance: decimal(held.effective_unlocked_qty),
    price: decimal(held.amulet_price),
    outstanding: 0n,
  })
  assert.equal(decision.kind, 'act')
  return decision.kind === 'act' ? decision.plan.amount : 0n
}

async function hasNoOffers(node: WalletNode): Promise<boolean> {
  const open = await node.get<{ offers: [] }>('alice', '/v0/wallet/transfer-offers')
  type Accepted = { accepted_offers: [] }
  const accepted = await node.get<Accepted>('alice', '/v0/wallet/accepted-transfer-offers')
  return open.offers.length + accepted.accepted_offers.length === 0
}

async function countActs(node: WalletNode, party: string): Promise<number> {
  type Audit = { entries: { action: string; after: { updateId: string } }[] }
  const path = `/v2/audit?party=${encodeURIComponent(party)}`
  const { entries } = await node.ledger<Audit>('GET', path)
  const acts = entries.filter(({ action }) => action === 'automation.act')
  assert.equal(new Set(acts.map(({ after }) => after.updateId)).size, acts.length)
  return acts.length
}

/** The command shows what the API says. */
async function checkCommand(node: WalletNode & { alice: string }, said: string): Promise<void> {
  const { alice } = node
  const url = node.node.urls.validator.replace('/api/validator', '')
  const env = { ANNALS_TOKEN: await node.token(ADMIN) }
  const shown = await runCommand(['automations', '--dry-run', '--url', url], { env })
  assert.equal(shown.code, 0, shown.stderr)
  assert.ok(shown.stdout.includes(`sweep of ${alice}: ${said}`), shown.stdout)
  const table = await runCommand(['automations', '--url', url], { env })
  assert.match(table.stdout, /^AUTOMATION +PARTY +STATE +LAST RUN/)
  const json = await runCommand(['automations', '--json', '--url', url], { env })
  assert.match(JSON.parse(json.stdout).warnings[0], /^sweep of .* has no transfer preapproval/)
  const denied = await runCommand(['automations', '--url', url])
  assert.equal(denied.code, 4)
}

async function tap(node: WalletNode, user: string, usd: string): Promise<void> {
  await node.post(user, '/v0/wallet/tap', { amount: usd })
}

forEachEngine((engine) => {
  test(`${engine.name}: a node sweeps, accepts and pays in driven time, and tells of it everywhere`, async (t) => {
    const stranger = `stranger::1220${'ab'.repeat(32)}`
    const node = await startAutomatedNode(t, engine, ({ alice, bob }) => ({
      sweeps: [sweep(alice, bob), sweep(stranger, bob)],
      autoAccept: [{ receiver: bob, fromParties: [alice] }],
    }))
    const { alice, bob } = node
    // The seeded network has left an offer of hers to him.
    await until(() => hasNoOffers(node), 'the payment of the seeded offer')
    const acts = await countActs(node, alice)
    const before = await node.balance('bob')
    await tap(node, 'alice', '150')
    const rich = await node.balance('alice')
    const amount = await expectedSweep(node)
    await node.advance('40s')
    await until(async () => (await node.balance('bob')) === before + amount, 'the swept coins')
    assert.equal(await node.balance('alice'), rich - amount)

    const state = await stateOf(node, 'sweep', alice)
    assert.equal(state.state, 'on')
    assert.ok(state.last_run !== null && state.next_run !== null && state.next_run > state.last_run)
    assert.equal(state.failures_in_a_row, 0)
    const accepted = await stateOf(node, 'auto-accept', bob)
    assert.match(String(accepted.last_act?.update_id), /^1220[0-9a-f]{64}$/)

    const off = await stateOf(node, 'sweep', stranger)
    assert.equal(off.state, 'off')
    const { automations } = await node.get<States>(ADMIN, `${PATH}?dry_run=true`)
    const pruning = automations.find(({ name }) => name === 'pruning')
    assert.deepEqual(
      [pruning?.state, pruning?.why],
      ['off', 'participantPruningSchedule is not configured'],
    )
    assert.match(off.why, /has no wallet on this node/)
    const ready = await fetch(`${node.node.urls.validator}/readyz`)
    assert.equal(ready.status, 200)
    assert.match(await ready.text(), /^The node is ready\.\nWarning: sweep of stranger::1220/)

    const refused = await node.ask('alice', 'GET', PATH)
    assert.equal(refused.status, 403)
    assert.equal((await node.ask(ADMIN, 'GET', `${PATH}?dry_run=perhaps`)).status, 400)

    await until(
      async () => (await countActs(node, alice)) === acts + 2,
      'offer and payment recorded',
    )
    await node.advance('48h')
    await until(async () => {
      const { last_run } = await stateOf(node, 'sweep', alice)
      return last_run !== null && last_run > String(state.next_run)
    }, 'a run after the clock has jumped')
    const page = await (await fetch(node.node.urls.metrics)).text()
    assert.match(
      page,
      new RegExp(
        `splice_trigger_completed_total\\{.*trigger_name="sweep".*party="${alice}",outcome="acted"\\} 1`,
      ),
    )
  })

  test(`${engine.name}: a dry run says what would be done and does nothing, over HTTP and as a command`, async (t) => {
    const node = await startAutomatedNode(t, engine, ({ alice, bob }) => ({
      sweeps: [sweep(alice, bob, { useTransferPreapproval: true })],
    }))
    await tap(node, 'alice', '150')
    await node.post('bob', '/v0/wallet/transfer-preapproval')
    const held = await node.balance('alice')
    const { automations } = await node.get<States>(ADMIN, `${PATH}?dry_run=true`)
    const said = automations.find(({ name }) => name === 'sweep')?.dry_run ?? ''
    const amount = await expectedSweep(node)
    assert.ok(said.startsWith(`would send ${printAmount(amount)} to ${node.bob}, because `), said)
    assert.equal(await node.balance('alice'), held)
    if (engine.name === 'sqlite') await checkCommand(node, said)
    await node.advance('40s')
    await until(async () => (await node.balance('alice')) === held - amount, 'the sweep')
    await until(
      async () => (await node.get<States>(ADMIN, PATH)).warnings.length === 0,
      'the end of the warning',
    )
  })

  test(`${engine.name}: a top-up buys traffic for real`, async (t) => {
    const ledger = {
      secondSynchronizer: false,
      traffic: {
        burstAmount: 400_000_000,
        burstWindowMs: 1_200_000,
        extraTrafficPrice: '60',
        minTopupAmount: 200_000,
        readVsWriteScalingFactor: 4,
      },
    }
    const topUp = {
      targetThroughput: 40_000,
      minTopupIntervalMs: 60_000,
      reservedTraffic: 200_000,
      pollingIntervalMs: 30_000,
    }
    const node = await startAutomatedNode(t, engine, () => ({ topUp }), { ledger })
    type Status = { traffic_status: { target: { total_purchased: number } } }
    const purchased = async () => {
      const id = await node.ledger<{ participantId: string }>('GET', '/v2/parties/participant-id')
      const [domain] = (
        await node.ledger<{ connectedSynchronizers: { synchronizerId: string }[] }>(
          'GET',
          '/v2/state/connected-synchronizers',
        )
      ).connectedSynchronizers
      const path = `/v0/domains/${domain?.synchronizerId}/members/PAR::${id.participantId}/traffic-status`
      const status = (await (await fetch(node.node.urls.scan + path)).json()) as Status
      return status.traffic_status.target.total_purchased
    }
    await node.advance('30s')
    await until(async () => (await purchased()) >= 2_400_000, 'the purchase')
    const state = await stateOf(node, 'top-up', node.operator)
    await node.advance('40s')
    await until(async () => {
      const next = await stateOf(node, 'top-up', node.operator)
      return next.last_run !== state.last_run
    }, 'the next run')
    const { last_outcome } = await stateOf(node, 'top-up', node.operator)
    assert.equal(last_outcome?.kind, 'waited')
  })
})

test('automations of a node without wallets are a warning, and the node is ready', async (t) => {
  const party = `acme::1220${'ab'.repeat(32)}`
  const wallet = { enabled: false, sweeps: [sweep(party, `${party}0`)] }
  const node = await startWalletNode(t, { wallet })
  const ready = await fetch(`${node.node.urls.validator}/readyz`)
  assert.equal(ready.status, 200)
  assert.match(await ready.text(), /Warning: sweep of acme::1220.*: enableWallet is false;/)
  const answer = await node.ask(ADMIN, 'GET', PATH)
  assert.equal(answer.status, 404)
  assert.match(String(answer.body.error), /Set enableWallet to true/)
})

test('pruning stands among the automations: when, what it did, and what it would do', async (t) => {
  const cron = parseCron('0 0 3 * * ?')
  assert.ok('value' in cron)
  const pruning = { cron: cron.value, maxDurationMs: 300_000, retentionMs: 30 * 86_400_000 }
  const node = await startWalletNode(t, { config: { pruning } })
  const { participantId } = await node.ledger<{ participantId: string }>(
    'GET',
    '/v2/parties/participant-id',
  )
  const row = () => stateOf(node, 'pruning', participantId)
  await until(async () => (await row()).next_run !== null, 'the next window is known')
  const { next_run, ...before } = await row()
  assert.match(String(next_run), /T03:00:00\.000000Z$/)
  assert.deepEqual([before.state, before.last_run, before.last_outcome], ['on', null, null])
  const would = async () => {
    const { automations } = await node.get<States>(ADMIN, `${PATH}?dry_run=true`)
    return automations.find(({ name }) => name === 'pruning')?.dry_run
  }
  assert.equal(
    await would(),
    'would do nothing, because nothing is older than the retention of 30d that is not pruned yet',
  )
  const { offset: end } = await node.ledger<{ offset: number }>('GET', '/v2/state/ledger-end')
  const today = new Date(Number((await node.now()) / 1000n))
  today.setUTCDate(today.getUTCDate() + 40)
  const day = today.toISOString().slice(0, 10)
  await node.ledger('POST', '/v2/time', { set: `${day}T02:00:00Z` })
  await until(
    async () => (await row()).next_run === `${day}T03:00:00.000000Z`,
    'the window of the day',
  )
  await node.register('carol')
  await tap(node, 'carol', '1')
  await until(
    async () =>
      (await would())?.startsWith(
        `would prune ${end} offsets up to ${end} when the next window opens at ${day}T03:00:00Z, because that is older than the retention of 30d`,
      ) === true,
    'the history and the wallets follow',
  )
  const url = ['--url', node.node.urls.validator.replace('/api/validator', '')]
  const env = { ANNALS_TOKEN: await node.token(ADMIN) }
  const said = await runCommand(['automations', '--dry-run', ...url], { env })
  assert.match(said.stdout, new RegExp(`^pruning of ${participantId}: would prune ${end} `, 'm'))
  await node.advance('1h')
  await until(async () => (await row()).last_outcome?.kind === 'acted', 'the window')
  const after = await row()
  assert.equal(after.last_run, `${day}T03:00:00.000000Z`)
  assert.equal(after.last_outcome?.sentence, `pruned ${end} offsets up to ${end}`)
  const shown = await runCommand(['automations', ...url], { env })
  assert.match(shown.stdout, new RegExp(`^pruning .* on +${day}T03:00:00Z .* pruned ${end} `, 'm'))
})
