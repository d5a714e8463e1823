import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decimal } from '../values/decimal.ts'
import { acceptPriority, decideAccept } from './auto-accept.ts'
import { COIN_INPUTS_MAX, chooseCoins } from './coin-inputs.ts'
import { decideCompletion } from './complete-transfers.ts'
import { decideExpiry } from './expire-offers.ts'
import { type Offer, outstandingTo } from './offer.ts'
import { decideRenewal } from './renew-preapprovals.ts'

const NOW = 1_767_225_600_000_000n

const offer = (of: Partial<Offer> = {}): Offer => ({
  contractId: '00',
  sender: 'bob',
  receiver: 'alice',
  amount: decimal('5'),
  expiresAtMicros: NOW + 1n,
  trackingId: 't',
  ...of,
})

// the offers of the receiver alice, who lists bob: the sender whose offer is accepted
const ACCEPTS: [string, Offer[], string | undefined][] = [
  ['no offer', [], undefined],
  ['an offer of a listed sender', [offer()], '00'],
  ['an offer of somebody else', [offer({ sender: 'carol' })], undefined],
  ['an offer to somebody else', [offer({ receiver: 'carol' })], undefined],
  ['an offer of the receiver itself', [offer({ sender: 'alice', receiver: 'bob' })], undefined],
  ['an expired offer', [offer({ expiresAtMicros: NOW })], undefined],
  ['a huge offer', [offer({ amount: decimal('1000000000') })], '00'],
  [
    'two offers, the first to expire first',
    [offer({ contractId: '01', expiresAtMicros: NOW + 9n }), offer()],
    '00',
  ],
]

for (const [name, offers, accepted] of ACCEPTS) {
  test(`auto-accept, ${name}: ${accepted === undefined ? 'waits' : 'accepts'}`, () => {
    const rule = { receiver: 'alice', fromParties: ['bob'] }
    const decision = decideAccept(rule, { offers, nowMicros: NOW })
    assert.equal(decision.kind === 'act' ? decision.plan.offer.contractId : undefined, accepted)
  })
}

test('an acceptance is of high priority only where it brings the coin for the next top-up', () => {
  assert.equal(acceptPriority({ isOperator: true, canPayTopUp: false }), 'high')
  assert.equal(acceptPriority({ isOperator: true, canPayTopUp: true }), 'low')
  assert.equal(acceptPriority({ isOperator: false, canPayTopUp: false }), 'low')
})

const coins = (...amounts: string[]) =>
  amounts.map((amount, n) => ({ contractId: `c${n}`, amount: decimal(amount) }))

// coins of the sender bob, accepted offers: what is done
const COMPLETIONS: [string, string[], Offer[], string][] = [
  ['nothing accepted', ['9'], [], 'wait'],
  ['enough coin', ['5'], [offer()], 'complete'],
  ['enough in several coins', ['2', '3'], [offer()], 'complete'],
  ['a unit too little', ['4.9999999999'], [offer()], 'abort'],
  ['no coin at all', [], [offer()], 'abort'],
  ['an expired one', ['5'], [offer({ expiresAtMicros: NOW })], 'wait'],
  ["somebody else's", ['5'], [offer({ sender: 'alice', receiver: 'bob' })], 'wait'],
]

for (const [name, amounts, accepted, outcome] of COMPLETIONS) {
  test(`completion, ${name}: ${outcome}`, () => {
    const decision = decideCompletion('bob', { accepted, coins: coins(...amounts), nowMicros: NOW })
    assert.equal(decision.kind === 'act' ? decision.plan.kind : 'wait', outcome)
  })
}

test('an abort names the reason', () => {
  const decision = decideCompletion('bob', {
    accepted: [offer()],
    coins: coins('2', '2.5'),
    nowMicros: NOW,
  })
  const plan = decision.kind === 'act' ? decision.plan : undefined
  assert.equal(plan?.kind === 'abort' && plan.reason, 'out of funds: the sender holds 4.5 of 5')
})

test('the largest coins are spent first, and no more than a transaction takes', () => {
  const few = chooseCoins(coins('1', '4', '2'), decimal('5'))
  assert.deepEqual(few.kind === 'enough' && few.inputs.map(({ contractId }) => contractId), [
    'c1',
    'c2',
  ])
  const dust = coins(...Array.from({ length: COIN_INPUTS_MAX + 1 }, () => '1'))
  const all = chooseCoins(dust, decimal(String(COIN_INPUTS_MAX)))
  assert.equal(all.kind === 'enough' && all.inputs.length, COIN_INPUTS_MAX)
  const more = chooseCoins(dust, decimal(`${COIN_INPUTS_MAX}.5`))
  assert.equal(more.kind, 'merge')
  assert.equal(more.kind === 'merge' && more.total, decimal(String(COIN_INPUTS_MAX)))
  assert.equal(chooseCoins(dust, decimal(String(COIN_INPUTS_MAX + 2))).kind, 'missing')
})

test('outstanding are the offers of one sender to one receiver', () => {
  const offers = [
    offer(),
    offer({ amount: decimal('0.5') }),
    offer({ receiver: 'carol' }),
    offer({ sender: 'carol' }),
  ]
  assert.equal(outstandingTo(offers, { sender: 'bob', receiver: 'alice' }), decimal('5.5'))
})

// whose wallet looks, whose wallets are here, when it expires: who removes it
const EXPIRIES: [string, string, string[], bigint, boolean][] = [
  ["the sender's node", 'bob', ['bob'], NOW, true],
  ["the sender's node, a microsecond early", 'bob', ['bob'], NOW + 1n, false],
  ["the receiver's node", 'alice', ['alice'], NOW, true],
  ['the receiver on the node of both', 'alice', ['alice', 'bob'], NOW, false],
  ['the sender on the node of both', 'bob', ['alice', 'bob'], NOW, true],
  ['somebody else', 'carol', ['carol'], NOW, false],
]

for (const [name, party, wallets, expiresAtMicros, removes] of EXPIRIES) {
  for (const state of ['open', 'accepted'] as const) {
    test(`an ${state} offer, ${name}: ${removes ? 'is removed' : 'stays'}`, () => {
      const held = [offer({ expiresAtMicros })]
      const decision = decideExpiry(party, {
        offers: state === 'open' ? held : [],
        accepted: state === 'accepted' ? held : [],
        nowMicros: NOW,
        hasWallet: (name) => wallets.includes(name),
      })
      assert.equal(decision.kind === 'act' && decision.plan.state === state, removes)
    })
  }
}

const DAY_MS = 86_400_000
const DAY = 86_400_000_000n
const RENEWAL = { lifetimeMs: 90 * DAY_MS, renewalMs: 30 * DAY_MS }

// days (and microseconds) until the end, provider: is it renewed
const RENEWALS: [string, bigint, string, boolean][] = [
  ['thirty days before its end', 30n * DAY, 'op', true],
  ['a microsecond earlier', 30n * DAY + 1n, 'op', false],
  ['a day before its end', DAY, 'op', true],
  ['at its end', 0n, 'op', false],
  ['of another provider', DAY, 'other', false],
]

for (const [name, left, provider, renewed] of RENEWALS) {
  test(`a preapproval ${name} is ${renewed ? '' : 'not '}renewed`, () => {
    const held = { contractId: '00', receiver: 'alice', provider, expiresAtMicros: NOW + left }
    const facts = { provider: 'op', preapprovals: [held], nowMicros: NOW }
    const decision = decideRenewal(RENEWAL, facts)
    assert.equal(decision.kind === 'act', renewed)
    if (decision.kind === 'act') assert.equal(decision.plan.newExpiresAtMicros, NOW + 90n * DAY)
  })
}
