import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWalletConfig } from '../src/config/config.ts'
import { coin, coinOf } from '../src/ledger/coin.ts'
import { createCommand, exerciseCommand } from '../src/ledger/network.ts'
import { transfer } from '../src/ledger/payments.ts'
import { acceptOffer, transferOffer } from '../src/ledger/transfer-offer.ts'
import { rulesOf } from '../src/open-automations.ts'
import { decimal } from '../src/values/decimal.ts'
import type { Automation, AutomationName } from '../src/wallet/automation.ts'
import { withFiles } from './support/config-files.ts'
import {
  ALICE,
  BOB,
  CAROL,
  type DrivenWallets,
  OPERATOR,
  openDrivenWallets,
} from './support/driven-wallets.ts'
import { partyOf } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'

// Every automation on the real ledger, in driven time: the rules of each are tables beside its own file.

const MINUTE = 60_000_000n
const DAY = 1440n * MINUTE

const sweep = (of: object = {}) => ({
  sender: ALICE,
  receiver: BOB,
  maxBalanceUsd: '1000',
  minBalanceUsd: '100',
  useTransferPreapproval: false,
  ...of,
})

const topUp = (of: object = {}) => ({
  targetThroughput: 20_000,
  minTopupIntervalMs: 60_000,
  reservedTraffic: 200_000,
  pollingIntervalMs: 30_000,
  ...of,
})

function find({ automations }: DrivenWallets, name: AutomationName, party?: string): Automation {
  const found = automations
    .automations()
    .find((one) => one.name === name && (party ?? one.party) === one.party)
  assert.ok(found !== undefined)
  return found
}

async function acceptAll({ ledger, view, settle }: DrivenWallets, receiver: string): Promise<void> {
  await settle()
  for (const { contractId, payload } of view.offers(ALICE)) {
    if (payload.receiver !== receiver) continue
    const step = { template: transferOffer, contractId, choice: acceptOffer, argument: {} }
    await ledger.submit({ actAs: [receiver], commands: [exerciseCommand(ledger, step)] })
  }
}

// what the operator wrote: bytes a second and the interval, or undefined where nothing is bought
const TOP_UPS: [string, Record<string, string>, [number, number] | undefined][] = [
  ['topup: { targetThroughput: 20000, minTopupInterval: 1m }', {}, [20_000, 60_000]],
  ['topup: { enabled: true, targetThroughput: 20000, minTopupInterval: 1m }', {}, [20_000, 60_000]],
  ['topup: { enabled: false, targetThroughput: 20000, minTopupInterval: 1m }', {}, undefined],
  ['topup: { enabled: false }', {}, undefined],
  ['topup: { targetThroughput: 0, minTopupInterval: 1m }', {}, undefined],
  ['enableWallet: true', {}, undefined],
  [
    'enableWallet: true',
    { TARGET_TRAFFIC_THROUGHPUT: '20000', MIN_TRAFFIC_TOPUP_INTERVAL: '1m' },
    [20_000, 60_000],
  ],
  ['enableWallet: true', { TARGET_TRAFFIC_THROUGHPUT: '20000' }, [20_000, 600_000]],
  [
    'enableWallet: true',
    { TARGET_TRAFFIC_THROUGHPUT: '0', MIN_TRAFFIC_TOPUP_INTERVAL: '1m' },
    undefined,
  ],
]

for (const [yaml, env, bought] of TOP_UPS) {
  const variables = Object.entries(env).map(([name, value]) => `, ${name}=${value}`)
  test(`${yaml}${variables.join('')}: ${bought === undefined ? 'buys nothing' : 'buys'}`, () => {
    using files = withFiles({ 'v.yaml': yaml })
    const request = { env, cwd: files.dir, validatorValues: ['v.yaml'] }
    const { wallet, problems } = readWalletConfig(request, false)
    assert.ok(wallet !== undefined, JSON.stringify(problems))
    const { topUp } = rulesOf(wallet)
    assert.deepEqual(topUp && [topUp.targetThroughput, topUp.minTopupIntervalMs], bought)
  })
}

forEachEngine((engine) => {
  test(`${engine.name}: a sweep by offer is accepted and completed, once`, async (t) => {
    const config = {
      sweeps: [sweep()],
      autoAccept: [{ receiver: BOB, fromParties: [ALICE] }],
    }
    const world = await openDrivenWallets(t, engine, { config })
    await world.payIn(ALICE, decimal('10000'))
    assert.deepEqual(await world.run('sweep'), [`offer 9333.3333333333 to ${BOB}`])
    assert.deepEqual(await world.run('sweep'), [], 'the offer counts as gone')
    assert.deepEqual(await world.runAll(), [
      `accept the offer of 9333.3333333333 from ${ALICE}`,
      `pay 9333.3333333333 to ${BOB}`,
    ])
    assert.equal(await world.balance(ALICE), decimal('666.6666666667'))
    assert.equal(await world.balance(BOB), decimal('9333.3333333333'))
    assert.deepEqual(
      world.records.map(({ automation, party }) => `${automation} ${party}`),
      [`sweep ${ALICE}`, `auto-accept ${BOB}`, `completion ${ALICE}`],
    )
    assert.equal(new Set(world.records.map(({ updateId }) => updateId)).size, 3)
  })

  test(`${engine.name}: a sweep by preapproval waits for one and then sends at once`, async (t) => {
    const config = { sweeps: [sweep({ receiver: CAROL, useTransferPreapproval: true })] }
    const world = await openDrivenWallets(t, engine, { config })
    await world.payIn(ALICE, decimal('10000'))
    const waiting = await find(world, 'sweep').run()
    assert.ok(waiting.kind === 'wait' && waiting.isWarning)
    assert.match(waiting.because, /has no transfer preapproval; it must create one/)
    const expiresAtMicros = world.clock.nowMicros() + 100n * MINUTE
    await world.givePreapproval({ receiver: CAROL, provider: CAROL, expiresAtMicros })
    assert.deepEqual(await world.run('sweep'), [`send 9333.3333333333 to ${CAROL}`])
    assert.equal(await world.balance(ALICE), decimal('666.6666666667'))
    world.clock.advance(101n * MINUTE)
    await world.payIn(ALICE, decimal('10000'))
    assert.deepEqual(await world.run('sweep'), [], 'it has ended')
  })

  test(`${engine.name}: an offer that nobody accepted lapses and is made anew at the price of its day`, async (t) => {
    const world = await openDrivenWallets(t, engine, {
      config: { sweeps: [sweep({ receiver: CAROL })] },
    })
    await world.payIn(ALICE, decimal('10000'))
    await world.run('sweep')
    const waiting = await find(world, 'expiry', ALICE).run()
    const expiresAt = world.clock.nowMicros() + 10n * MINUTE
    assert.equal(waiting.kind === 'wait' && waiting.untilMicros, expiresAt)
    world.clock.advance(10n * MINUTE)
    await world.setPrice(decimal('0.2'))
    assert.deepEqual(await world.runAll(), [
      `remove the open offer of 9333.3333333333 from ${ALICE} to ${CAROL}`,
      `offer 9500 to ${CAROL}`,
    ])
  })

  test(`${engine.name}: an accepted offer without coins is given up, one out of time is removed`, async (t) => {
    const world = await openDrivenWallets(t, engine, {
      config: { sweeps: [sweep({ receiver: CAROL })] },
    })
    await world.payIn(ALICE, decimal('10000'))
    await world.run('sweep')
    await acceptAll(world, CAROL)
    const inputs = world.view
      .coins(ALICE)
      .map(({ contractId }) => ({ tag: 'InputAmulet' as const, value: contractId }))
    const network = await world.network()
    const amount = decimal('9000')
    await transfer(world.ledger, network, { sender: ALICE, receiver: BOB, amount, inputs })
    assert.deepEqual(await world.run('completion'), [`give up paying 9333.3333333333 to ${CAROL}`])
    await world.payIn(ALICE, decimal('10000'))
    await world.run('sweep')
    await acceptAll(world, CAROL)
    world.clock.advance(10n * MINUTE)
    assert.deepEqual(await world.run('completion'), [])
    const [removed] = await world.run('expiry')
    assert.match(removed ?? '', /^remove the accepted offer of /)
  })

  test(`${engine.name}: more coins than a transaction takes are made one first`, async (t) => {
    const expiresAtMicros = 2n ** 52n
    const world = await openDrivenWallets(t, engine, {
      config: {
        sweeps: [sweep({ receiver: CAROL, useTransferPreapproval: true, minBalanceUsd: '0' })],
      },
      price: '1',
    })
    await world.givePreapproval({ receiver: CAROL, provider: CAROL, expiresAtMicros })
    const { ledger } = world
    const dso = partyOf('DSO')
    const piece = coinOf(ALICE, decimal('5'), { dso, round: 0n })
    const commands = Array.from({ length: 205 }, () => createCommand(ledger, coin, piece))
    await ledger.submit({ actAs: [dso, ALICE], commands })
    assert.deepEqual(await world.run('sweep'), [
      'make one of 100 coins, to send more at once',
      'make one of 100 coins, to send more at once',
      `send 1025 to ${CAROL}`,
    ])
    assert.equal(await world.balance(ALICE), 0n)
  })

  test(`${engine.name}: a top-up buys when traffic runs low, not sooner than its interval, for as long as there is coin`, async (t) => {
    const state = { purchased: 0n, consumed: 0n }
    const world = await openDrivenWallets(t, engine, {
      config: { topUp: topUp() },
      traffic: { extraTrafficPrice: decimal('60') },
      trafficState: () => state,
    })
    const poor = await find(world, 'top-up').run()
    assert.ok(poor.kind === 'wait' && poor.isWarning)
    assert.match(poor.because, /1200000 bytes cost 72.00 USD = 480 coins, and the wallet holds 0;/)
    await world.payIn(OPERATOR, decimal('1000'))
    const buy = 'buy 1200000 bytes of traffic for 480 coins (72.00 USD)'
    const soon = await find(world, 'top-up').run()
    assert.equal(soon.kind === 'acted' && soon.done.what, 'begin to note purchases of traffic')
    const bought = await find(world, 'top-up').run()
    assert.equal(bought.kind === 'acted' && bought.done.what, buy)
    assert.equal(await world.balance(OPERATOR), decimal('1000') - decimal('480'))
    const early = await find(world, 'top-up').run()
    const [noted] = world.view.topUpStates(OPERATOR)
    const nextAt = (noted?.payload.lastPurchasedAt ?? 0n) + MINUTE
    assert.equal(early.kind === 'wait' && early.untilMicros, nextAt)
    world.clock.advance(nextAt - world.clock.nowMicros())
    state.purchased = 1_200_000n
    const full = await find(world, 'top-up').run()
    assert.match(
      full.kind === 'wait' ? full.because : '',
      /1200000 bytes of bought traffic are left/,
    )
    state.consumed = 1n
    assert.equal((await find(world, 'top-up').run()).kind, 'acted')
    assert.equal(await world.balance(OPERATOR), decimal('40'))
    world.clock.advance(60n * MINUTE)
    assert.equal((await find(world, 'top-up').run()).kind, 'wait', 'the wallet is empty')
  })

  test(`${engine.name}: on a development network a top-up costs the wallet nothing`, async (t) => {
    const world = await openDrivenWallets(t, engine, {
      config: { topUp: topUp() },
      isDevNet: true,
    })
    assert.deepEqual(await world.run('top-up').then((did) => did.slice(0, 2)), [
      'begin to note purchases of traffic',
      'buy 1200000 bytes of traffic for 133.36 coins (20.00 USD)',
    ])
    await world.settle()
    assert.equal(await world.balance(OPERATOR), 0n)
  })

  test(`${engine.name}: while traffic is short, what can wait is held back and purchases pass`, async (t) => {
    const state = { purchased: 200_000n, consumed: 0n }
    const config = {
      topUp: topUp(),
      sweeps: [sweep()],
      autoAccept: [{ receiver: OPERATOR, fromParties: [ALICE] }],
    }
    const world = await openDrivenWallets(t, engine, { config, trafficState: () => state })
    await world.payIn(ALICE, decimal('10000'))
    await assert.rejects(find(world, 'sweep').run(), { code: 'ABORTED' })
    await world.payIn(OPERATOR, decimal('200'))
    assert.equal((await find(world, 'top-up').run()).kind, 'acted')
    assert.equal((await find(world, 'top-up').run()).kind, 'acted', 'the purchase itself')
    await assert.rejects(find(world, 'sweep').run(), { name: 'TrafficReserved' })
    state.purchased = 1_400_000n
    world.clock.advance(2_000_000n)
    assert.deepEqual(await world.run('sweep'), [`offer 9333.3333333333 to ${BOB}`])
  })

  test(`${engine.name}: an acceptance that pays the next top-up is not held back`, async (t) => {
    const state = { purchased: 1_000_000n, consumed: 0n }
    const config = {
      topUp: topUp(),
      sweeps: [sweep({ receiver: OPERATOR })],
      autoAccept: [
        { receiver: OPERATOR, fromParties: [ALICE] },
        { receiver: BOB, fromParties: [ALICE] },
      ],
    }
    const world = await openDrivenWallets(t, engine, { config, trafficState: () => state })
    await world.payIn(ALICE, decimal('10000'))
    await world.run('sweep')
    state.consumed = 1_000_000n
    world.clock.advance(2_000_000n)
    assert.deepEqual(await world.run('auto-accept', OPERATOR), [
      `accept the offer of 9333.3333333333 from ${ALICE}`,
    ])
    await assert.rejects(find(world, 'completion', ALICE).run(), { code: 'ABORTED' })
  })

  test(`${engine.name}: a preapproval is renewed thirty days before its end`, async (t) => {
    const world = await openDrivenWallets(t, engine)
    const expiresAtMicros = world.clock.nowMicros() + 40n * DAY
    await world.givePreapproval({ receiver: ALICE, provider: OPERATOR, expiresAtMicros })
    await world.settle()
    const waiting = await find(world, 'preapproval-renewal').run()
    assert.equal(waiting.kind === 'wait' && waiting.untilMicros, expiresAtMicros - 30n * DAY)
    world.clock.advance(10n * DAY)
    assert.deepEqual(await world.run('preapproval-renewal'), [
      `renew the preapproval of ${ALICE} until 2026-04-11T00:00:00Z`,
    ])
    await world.settle()
    const [held] = world.view.preapprovals(ALICE)
    assert.equal(held?.payload.expiresAt, world.clock.nowMicros() + 90n * DAY)
  })

  test(`${engine.name}: what a crash or a lost answer leaves open is done once and recorded once`, async (t) => {
    const world = await openDrivenWallets(t, engine, {
      config: { sweeps: [sweep()] },
    })
    await world.payIn(ALICE, decimal('10000'))
    // The record fails after the ledger has accepted: as after a crash in between.
    world.failRecord = 1
    await assert.rejects(find(world, 'sweep').run(), /no room for the record/)
    assert.deepEqual(world.records, [])
    await world.settle()
    assert.equal(world.view.offers(ALICE).length, 1)
    const [taken] = await world.automations.context.acts.takeUp()
    assert.equal(taken?.what, `offer 9333.3333333333 to ${BOB}`)
    assert.equal(world.records.length, 1)
    assert.deepEqual(await world.automations.context.acts.takeUp(), [])
    assert.deepEqual(await world.run('sweep'), [])

    // The answer gets lost: nobody knows whether it was done, until it is looked up.
    await world.payIn(ALICE, decimal('10000'))
    world.loseAnswers = 1
    await assert.rejects(find(world, 'sweep').run(), /the answer got lost/)
    assert.equal(world.records.length, 1)
    const again = await find(world, 'sweep').run()
    assert.equal(again.kind, 'wait', 'the offer is there and counts')
    assert.equal(world.records.length, 2, 'and is on record')
    assert.deepEqual(await world.automations.context.acts.takeUp(), [])
    assert.equal(world.view.offers(ALICE).length, 2)
    const trackingIds = world.view.offers(ALICE).map(({ payload }) => payload.trackingId)
    assert.deepEqual(
      trackingIds.toSorted(),
      world.records.map(({ trackingId }) => trackingId).toSorted(),
    )
  })

  test(`${engine.name}: an act that did not arrive is tried again under its tracking id`, async (t) => {
    const world = await openDrivenWallets(t, engine, { config: { sweeps: [sweep()] } })
    await world.payIn(ALICE, decimal('10000'))
    world.loseRequests = 1
    await assert.rejects(find(world, 'sweep').run(), /the request got lost/)
    assert.equal((await find(world, 'sweep').run()).kind, 'acted')
    assert.deepEqual(
      world.records.map(({ trackingId }) => trackingId),
      ['tracking-1'],
    )
  })

  test(`${engine.name}: while the provider is away nothing is done, and afterwards it is done once`, async (t) => {
    const world = await openDrivenWallets(t, engine, { config: { sweeps: [sweep()] } })
    await world.payIn(ALICE, decimal('10000'))
    await world.settle()
    world.isProviderAway = true
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await assert.rejects(find(world, 'sweep').run(), { name: 'NoServiceToken' })
    }
    world.isProviderAway = false
    assert.deepEqual(await world.run('sweep'), [`offer 9333.3333333333 to ${BOB}`])
    assert.equal(world.records.length, 1)
  })
})
